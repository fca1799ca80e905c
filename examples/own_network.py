"""Train a network of your own
===========================

Any module that turns images into logits can be trained, resumed, used and exported: one of yours, of timm or of
torchvision. Write a function that returns it; its last linear layer is the classifier. Images come with values in
-1..1; ``Normalised`` gives a pretrained network what it has learned with. Prints the accuracy on 500 test digits after
100 steps. Takes about 6 seconds on one core. From the command line:

    debiaspl train photos/ --network examples/own_network.py:build
    debiaspl predict runs/photos photos/ --out predicted.csv --network examples/own_network.py:build
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from debiaspl import load_model, recipe, train


class Normalised(nn.Module):
    """Images of -1..1 as (0..1 - mean) / std."""

    gain: Tensor
    offset: Tensor

    def __init__(self, network: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("gain", 0.5 / torch.tensor(std).reshape(-1, 1, 1))
        self.register_buffer("offset", ((0.5 - torch.tensor(mean)) / torch.tensor(std)).reshape(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(images * self.gain + self.offset)
        return logits


class ConvMixer(nn.Sequential):
    """Patches, then a convolution for each channel and one over channels, again and again."""

    def __init__(self, num_classes: int, channels: int, width: int, depth: int = 4) -> None:
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 2, stride=2), nn.GELU(), nn.BatchNorm2d(width)]
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 3, padding=1, groups=width), nn.GELU(), nn.BatchNorm2d(width)]
            layers += [nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes))


def build(num_classes: int, channels: int, width: int = 32) -> nn.Module:
    """With timm: ``timm.create_model("vit_small_patch16_224", pretrained=True, num_classes=num_classes)``.

    Args:
        width: channels of the network; a setting: ``--set width=64``.
    """
    return Normalised(ConvMixer(num_classes, channels, width), mean=(0.5,) * channels, std=(0.25,) * channels)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = train(recipe("digits-10").changed(steps=100, average_decay=0.9), Path(folder) / "run", network=build)
        print(f"accuracy {100 * results['accuracy']:.1f} % on {results['test']} test digits")
        model = load_model(Path(folder) / "run", network=build)
        print(f"features of width {model.network.num_features}")
