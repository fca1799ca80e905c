"""The scale of the loss in float16, in which small gradients would be 0 (Micikevicius et al., Mixed precision training,
2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor

FIRST = 2.0**16
FINITE_STEPS = 2000
"""After this many in a row the scale doubles."""


class LossScale:
    """The loss is multiplied by a scale before its gradient is taken, and the gradient divided by it afterwards. Where
    the gradient is not finite, the step is left out and the scale halved.

    To know that, each step waits for the device, which a recorded step may not: float16 is for GPUs that record none.
    """

    def __init__(self, device: torch.device) -> None:
        self.state = torch.tensor([FIRST, 0.0], device=device)
        """The scale, and the number of finite steps since it changed."""

    def scaled(self, loss: Tensor) -> Tensor:
        return loss * self.state[0]

    def unscale(self, gradients: Sequence[Tensor]) -> bool:
        """Divide gradients by the scale, in place; returns whether they are finite. Then changes the scale."""
        scale, finite_steps = self.state.tolist()
        for gradient in gradients:
            gradient.div_(scale)
        finite = all(torch.stack([gradient.isfinite().all() for gradient in gradients]).tolist())
        finite_steps = finite_steps + 1 if finite else 0
        if not finite or finite_steps == FINITE_STEPS:
            scale, finite_steps = scale * (2 if finite else 0.5), 0
        self.state.copy_(torch.tensor([scale, finite_steps]))
        return finite
