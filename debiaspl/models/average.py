"""Averages of a network over its training steps."""

from copy import deepcopy

from torch import nn

from debiaspl.models.network import Network


class Average(nn.Module):
    """An exponential moving average of a network: ``average.model``, in eval mode and without gradients.

    The weights are averaged: ``average <- decay * average + (1 - decay) * weights``. What else the network keeps, the
    statistics of batch norm, is taken over as it is (EMA, what FixMatch evaluates) or, with ``statistics=True``,
    averaged too (EMAN: Cai et al., 2021), which makes the average a teacher that agrees with itself.

    EMAN's statistics lag twice, behind the norm's own moving average and behind this one: give the network a
    ``norm_momentum`` near 0.1 with it.
    """

    def __init__(self, model: Network, decay: float = 0.999, statistics: bool = False) -> None:
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"decay is {decay!r}, expected a number in [0, 1): 0 is no averaging, 1 would never move.")
        self.decay, self.statistics = decay, statistics
        self.model: Network = deepcopy(model).eval().requires_grad_(False)

    def train(self, mode: bool = True) -> "Average":
        """Stays in eval mode: the average is never trained."""
        return super().train(False)
