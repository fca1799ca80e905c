"""First weights of convolutional networks."""

from torch import nn

from debiaspl.models.network import Network


def initialise(network: Network) -> None:
    """As FixMatch does it: convolutions after He et al. (2015), the classifier after Glorot and Bengio (2010)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    nn.init.xavier_normal_(network.head.weight)
    nn.init.zeros_(network.head.bias)
