"""Networks by name."""

import re
from typing import Any

from debiaspl.models.network import Network
from debiaspl.models.resnet import ResNet
from debiaspl.models.resnet9 import ResNet9
from debiaspl.models.resnet18 import ResNet18
from debiaspl.models.small import SmallNet
from debiaspl.models.wrn import WideResNet

MODELS: dict[str, type[Network]] = {
    "resnet": ResNet,
    "resnet9": ResNet9,
    "resnet18": ResNet18,
    "small": SmallNet,
    "wrn": WideResNet,
}


def build(name: str, num_classes: int, channels: int = 3, **settings: Any) -> Network:
    """A network: ``small``, ``resnet``, ``resnet9``, or a wide ResNet by depth and width, such as ``wrn-28-2``."""
    wide = re.fullmatch(r"wrn-(\d+)-(\d+)", name)
    if wide:
        return WideResNet(num_classes, channels, depth=int(wide[1]), width=int(wide[2]), **settings)
    if name not in MODELS:
        raise ValueError(
            f"there is no network named {name!r}; there are small, resnet, resnet9, and wrn-DEPTH-WIDTH such as "
            "wrn-28-2."
        )
    return MODELS[name](num_classes, channels, **settings)
