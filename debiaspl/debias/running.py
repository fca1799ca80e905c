"""A running estimate of how often a model predicts each class: what the adaptive corrections learn."""

from collections.abc import Callable

import torch
from torch import Tensor

from debiaspl.debias import ranks
from debiaspl.debias.correction import Correction, at_least_float32


class RunningPrior(Correction):
    """A correction whose ``prior`` follows the model: a moving average of the batch means of the **raw** probabilities.

    Every row counts, whether its label will be kept or not, over all ranks when ``torch.distributed`` is initialised.
    A batch with a logit that is not finite, on any rank, or without rows leaves the prior as it was. A batch that comes
    in several parts is learned from once, between ``hold`` and ``release``; they are no state, so save before or after.

    Args:
        num_classes: number of classes, C; the prior starts at 1 / C.
        momentum: how slowly the prior follows the model, in [0, 1).
    """

    exact: tuple[str, ...] = ("prior",)
    """Buffers that stay in float32, whatever the module is brought to."""
    prior: Tensor

    def __init__(self, num_classes: int, momentum: float) -> None:
        super().__init__()
        if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
            raise ValueError(f"num_classes is {num_classes!r}, expected a whole number of at least 2.")
        if not 0 <= momentum < 1:
            raise ValueError(
                f"momentum is {momentum!r}, expected a number in [0, 1): with 0 the prior is that of the last batch, "
                "with 1 it would never move. 0.99 is a good start."
            )
        self.num_classes = num_classes
        self.momentum = float(momentum)
        self.register_buffer("prior", torch.full((num_classes,), 1 / num_classes, dtype=torch.float32))
        self._holding = False
        # Not a buffer: each rank holds its own until release, and what copies buffers from rank to rank would spoil it.
        self._held: Tensor | None = None

    @torch.no_grad()
    def learn(self, weak_logits: Tensor) -> None:
        self.check(weak_logits, "weak_logits")
        logits = at_least_float32(weak_logits).reshape(-1, self.num_classes)
        finite = logits.isfinite().all()
        # Sum, number of rows and number of spoilt batches travel together: one message a step, ranks of any size.
        rows = logits.new_full((1,), logits.shape[0])
        spoilt = (~finite).to(logits.dtype).reshape(1)
        total = torch.cat([self.counted(logits).sum(0).where(finite, 0), rows, spoilt])
        if not self._holding:
            self._move(total)
        elif self._held is None:
            self._held = total
        elif self._held.dtype != total.dtype or self._held.device != total.device:
            self._held = total + self._held.to(total)
        else:
            self._held.add_(total)  # in place: a recorded step adds to this very tensor

    def hold(self) -> None:
        self._holding = True
        if self._held is not None:
            self._held.zero_()

    @torch.no_grad()
    def release(self) -> None:
        if self._holding and self._held is not None:
            self._move(self._held)
        self._holding = False

    def _move(self, total: Tensor) -> None:
        """Towards the mean of what was summed, on all ranks."""
        total = ranks.summed(total)
        count, spoilt = total[-2], total[-1]
        batch_mean = (total[:-2] / count).to(self.prior.dtype)
        self._follow(batch_mean, (spoilt == 0) & (count > 0))

    def counted(self, logits: Tensor) -> Tensor:
        """What each row of a batch, (N, C), counts for: its raw probabilities."""
        return logits.softmax(-1)

    def _follow(self, batch_mean: Tensor, usable: Tensor) -> None:
        """Move towards the mean of what was counted, (C,), where ``usable``, a scalar, is true."""
        # lerp rather than m * p + (1 - m) * q: with m near 1 the rounding of m itself would let the sum drift off 1.
        moved = self.prior.lerp(batch_mean, 1 - self.momentum)
        self.prior.copy_(torch.where(usable, moved, self.prior))

    def log_prior(self) -> Tensor:
        return safe_log(self.prior)

    def check(self, logits: Tensor, name: str) -> None:
        if not logits.is_floating_point():
            raise TypeError(f"{name} has dtype {logits.dtype}, expected floating-point logits, not labels or counts.")
        if logits.ndim < 2 or logits.shape[-1] != self.num_classes:
            raise ValueError(
                f"{name} has shape {tuple(logits.shape)}, expected (batch, {self.num_classes}): one row of logits per "
                f"image, one column per class. This {type(self).__name__} was made with num_classes={self.num_classes}."
            )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RunningPrior":
        # .half() and .bfloat16() on a model that holds this module: an average that moves by 1 % a step would stand
        # still in 8 bits of precision, so the prior follows to the new device but stays in float32.
        before = {name: self.get_buffer(name) for name in self.exact}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it without types
        for name, value in before.items():
            if self.get_buffer(name).dtype in (torch.float16, torch.bfloat16):
                setattr(self, name, value.to(self.get_buffer(name).device))
        return self


def safe_log(shares: Tensor) -> Tensor:
    """A share that has decayed to 0 would give -inf; the smallest normal number gives -87."""
    return shares.clamp_min(torch.finfo(shares.dtype).tiny).log()
