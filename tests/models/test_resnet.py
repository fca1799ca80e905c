"""ResNet: its size, its names, its slow twin, and what the cost model on paper counts."""

import pytest
import torch
from torch import nn

from debiaspl.models import MODELS
from tests.reference import resnet as slow


@pytest.mark.parametrize(("depth", "parameters"), [(18, 11_689_512), (50, 25_557_032)])
def test_it_has_the_known_number_of_parameters(depth, parameters):
    with torch.device("meta"):
        network = MODELS["resnet"](1000, depth=depth)
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    assert network.num_features == network.head.in_features == {18: 512, 50: 2048}[depth]


def made(depth: int, channels: int = 3) -> nn.Module:
    """In eval mode, with statistics that differ from layer to layer."""
    torch.manual_seed(depth)
    network = MODELS["resnet"](7, channels, depth=depth).double()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.0)
            nn.init.normal_(module.bias, std=0.1)
    return network.eval()


@pytest.mark.parametrize("depth", [18, 50])
def test_it_equals_its_slow_twin(depth):
    network = made(depth)
    images = torch.rand(2, 3, 64, 48, dtype=torch.float64) * 2 - 1
    with torch.no_grad():
        expected = slow.features(network.state_dict(), depth, images)
        torch.testing.assert_close(network.embed(images), expected, atol=1e-6, rtol=1e-5)
    assert expected.std() > 0.01


def test_names_are_those_of_published_checkpoints():
    names = set(MODELS["resnet"](10, depth=50).state_dict())
    assert {"conv1.weight", "bn1.running_var", "layer1.0.conv1.weight", "layer1.0.downsample.0.weight"} <= names
    assert {"layer1.0.downsample.1.running_mean", "layer4.2.bn3.bias", "layer3.5.conv2.weight"} <= names
    assert len(names) == 320  # a published ResNet-50 has as many, with fc for head


def test_grey_images_are_not_normalised_by_colour():
    network = made(18, channels=1)
    assert network.gain.flatten().tolist() == [1.0]
    assert network.offset.flatten().tolist() == [0.0]
    assert network(torch.zeros(1, 1, 32, 32, dtype=torch.float64)).shape == (1, 7)


def test_convolutions_begin_as_he_et_al_say():
    weight = MODELS["resnet"](7, depth=18).layer2[1].conv2.weight
    assert float(weight.detach().std()) == pytest.approx((2 / (128 * 9)) ** 0.5, rel=0.02)
