"""Networks, and averages of their weights."""

from debiaspl.models.average import Average, FurtherHead, further_heads
from debiaspl.models.experts import ResNetExperts, WideExperts
from debiaspl.models.network import LinearNetwork, Network, Scaling, SmallNet, scale
from debiaspl.models.predict import Seen, predict_set
from debiaspl.models.resnet import ResNet
from debiaspl.models.resnet9 import ResNet9
from debiaspl.models.start import (
    ALGORITHM,
    TrainedNetwork,
    first_heads,
    first_weights,
    start_digest,
    trained_network,
)
from debiaspl.models.wrn import ResNet18, WideResNet

MODELS: dict[str, type[Network]] = {
    "experts": WideExperts,
    "resnet": ResNet,
    "resnet9": ResNet9,
    "resnet18": ResNet18,
    "resnet-experts": ResNetExperts,
    "small": SmallNet,
    "wrn": WideResNet,
}
"""Networks by their names in recipes."""
