"""Networks and their averages."""

import pytest
import torch
from torch import nn

from debiaspl.kernels.norm import NormActivate
from debiaspl.models import MODELS, Average, scale


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_wrn_follows_fixmatch():
    model = MODELS["wrn"](10, 3)
    assert parameters(model) == 1_467_610
    assert [block.activate_shortcut for block in model.blocks] == [True] + [False] * 11
    norms = [module for module in model.modules() if isinstance(module, NormActivate)]
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    assert len(norms) == 25
    assert len(convolutions) == 25 + 3
    assert {norm.momentum for norm in norms} == {0.001}
    images = torch.zeros(1, 3, 32, 32)
    features, inner = model.eval().stem(images), None
    for block in model.blocks:
        features, inner = block(features, inner)
    assert features.shape == inner.shape == (1, 128, 8, 8)
    assert model.embed(images).shape == (1, model.num_features)


def test_resnet9_halves_the_image_three_times_and_has_two_residual_blocks():
    model = MODELS["resnet9"](10, 3, widths=(4, 6, 8, 10)).eval()
    images = torch.randn(2, 3, 32, 32)
    _, active = model.norm(model.stem(images))
    shapes = []
    for stage in model.stages:
        active = stage(active)
        shapes.append(tuple(active.shape[1:]))
    assert shapes == [(6, 16, 16), (8, 8, 8), (10, 4, 4)]
    assert [len(stage.inner) for stage in model.stages] == [2, 0, 2]
    torch.testing.assert_close(model.embed(images), active.mean((2, 3)))


def test_a_residual_block_without_weights_is_its_shortcut():
    stage = MODELS["resnet9"](10, 3, widths=(4, 6, 8, 10)).eval().stages[0]
    images = torch.randn(2, 4, 8, 8)
    nn.init.zeros_(stage.inner[1].weight)
    total, _ = stage.norms[0](torch.nn.functional.max_pool2d(stage.conv(images), 2))
    torch.testing.assert_close(stage(images), stage.norms[2](total)[1])


@pytest.mark.parametrize("name", ["small", "resnet", "resnet9", "wrn"])
def test_the_smallest_images_a_network_takes(name):
    network = MODELS[name](num_classes=3, channels=3).eval()
    least = network.least_side
    assert network(torch.zeros(2, 3, least, least)).shape == (2, 3)
    assert least == (8 if name == "resnet9" else 1)
    if least > 1:
        for shape in ((least - 1, least), (least, least - 1)):
            with pytest.raises(ValueError, match=rf"images are {shape[1]} x {shape[0]} pixels, expected {least} or"):
                network(torch.zeros(2, 3, *shape))


@pytest.mark.parametrize(
    ("name", "channels", "side"),
    [("wrn", 3, 32), ("wrn", 1, 28), ("small", 1, 8), ("resnet9", 3, 32), ("resnet", 3, 64)],
)
def test_every_network_gives_logits_and_gradients_to_all_its_weights(name, channels, side):
    model = MODELS[name](7, channels)
    logits = model(torch.randn(4, channels, side, side))
    assert logits.shape == (4, 7)
    logits.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "settings", "word"),
    [
        ("wrn", {"depth": 27}, "depth is 27"),
        ("wrn", {"width": 0}, "width"),
        ("resnet", {"depth": 34}, "depth is 34"),
        ("resnet9", {"widths": (64, 128)}, "four"),
        ("resnet18", {"widths": (8, 8)}, "equally many"),
        ("resnet18", {"widths": (), "blocks": ()}, "at least 1"),
        ("resnet18", {"blocks": (1, 1, 0, 1)}, "at least 1"),
    ],
)
def test_wrong_sizes_are_refused(name, settings, word):
    with pytest.raises(ValueError, match=word):
        MODELS[name](10, 3, **settings)


def test_scale_spans_minus_one_to_one():
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 3, 1, 1)
    assert scale(images).flatten().tolist() == pytest.approx([-1, -0.6, 1])


def test_the_average_is_never_trained():
    average = Average(MODELS["small"](3, 1), decay=0.9).train()
    assert not average.model.training
    assert not any(parameter.requires_grad for parameter in average.parameters())


@pytest.mark.parametrize("decay", [1.0, -0.1, 2.0])
def test_a_wrong_decay_teaches(decay):
    with pytest.raises(ValueError, match=r"decay is .*, expected a number in"):
        Average(MODELS["small"](3, 1), decay=decay)


def test_resnet18_keeps_the_size_of_small_images_and_halves_them_three_times():
    model = MODELS["resnet18"](10, 3)
    assert parameters(model) == 11_172_170
    assert model.stem.stride == (1, 1)
    features, inner = model.eval().stem(torch.zeros(1, 3, 32, 32)), None
    shapes = []
    for block in model.blocks:
        features, inner = block(features, inner)
        shapes.append(tuple(inner.shape[1:]))
    stages = [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]
    assert shapes == [shape for shape in stages for _ in range(2)]
    assert [block.activate_shortcut for block in model.blocks] == [True] + [False] * 7


def test_resnet18_is_a_preactivation_network_written_out():
    """y = shortcut(x) + conv(act(norm(conv(act(norm(x)))))), block after block, in plain torch."""
    torch.manual_seed(0)
    model = MODELS["resnet18"](3, 3, widths=(4, 6), blocks=(1, 2)).double()

    def active(norm: NormActivate, images: torch.Tensor) -> torch.Tensor:
        mean, variance = images.mean((0, 2, 3), keepdim=True), images.var((0, 2, 3), correction=0, keepdim=True)
        normal = (images - mean) / (variance + norm.eps).sqrt()
        return nn.functional.leaky_relu(normal * norm.weight.view(-1, 1, 1) + norm.bias.view(-1, 1, 1), 0.1)

    for norm in model.modules():
        if isinstance(norm, NormActivate):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    images = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    features = model.stem(images)
    for number, block in enumerate(model.blocks):
        first = active(block.norm1, features)
        shortcut = block.shortcut(features if number else first)
        features = shortcut + block.conv2(active(block.norm2, block.conv1(first)))
    expected = model.head(active(model.norm, features).mean((2, 3)))
    torch.testing.assert_close(model(images), expected)
