"""Networks by name."""

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
