"""Networks, and averages of their weights."""

from debiaspl.models.average import Average as Average, FurtherHead as FurtherHead, further_heads as further_heads
from debiaspl.models.experts import WideExperts as WideExperts
from debiaspl.models.network import (
    LinearNetwork as LinearNetwork,
    Network as Network,
    Scaling as Scaling,
    SmallNet as SmallNet,
    scale as scale,
)
from debiaspl.models.predict import Seen as Seen, predict_set as predict_set
from debiaspl.models.resnet import ResNet as ResNet
from debiaspl.models.resnet9 import ResNet9 as ResNet9
from debiaspl.models.start import (
    ALGORITHM as ALGORITHM,
    TrainedNetwork as TrainedNetwork,
    first_heads as first_heads,
    first_weights as first_weights,
    start_digest as start_digest,
    trained_network as trained_network,
)
from debiaspl.models.wrn import ResNet18 as ResNet18, WideResNet as WideResNet

MODELS: dict[str, type[Network]] = {
    "experts": WideExperts,
    "resnet": ResNet,
    "resnet9": ResNet9,
    "resnet18": ResNet18,
    "small": SmallNet,
    "wrn": WideResNet,
}
"""Networks by their names in recipes."""
