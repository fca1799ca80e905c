"""A running estimate of how often a model predicts each class, for the adaptive corrections, and shares to aim at."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from debiaspl.debias import ranks
from debiaspl.debias.correction import Correction, at_least_float32, checked_counts, within

UNIFORM, LABELS = "uniform", "labels"


class RunningPrior(Correction):
    """A correction with a ``prior``: a moving average of the batch means of the model's **raw** probabilities.

    If a batch comes in several parts, call ``hold`` before and ``release`` after them, and do not save in between: the
    prior then moves once.
    """

    exact: tuple[str, ...] = ("prior",)
    """Buffers that stay in float32 when the module is converted."""
    prior: Tensor

    def __init__(self, num_classes: int, momentum: float) -> None:
        super().__init__()
        if not isinstance(num_classes, int) or num_classes < 2:
            raise ValueError(f"num_classes is {num_classes!r}, expected a whole number of at least 2.")
        self.num_classes, self.momentum = num_classes, float(within("momentum", momentum, "[0, 1)"))
        self.register_buffer("prior", torch.full((num_classes,), 1 / num_classes, dtype=torch.float32))
        self._holding = False
        # Not a buffer: each rank has its own value until release, and copying buffers between ranks would destroy it.
        self._held: Tensor | None = None
        self._first = True

    @torch.no_grad()
    def learn(self, weak_logits: Tensor) -> None:
        self.check(weak_logits)
        logits = at_least_float32(weak_logits).reshape(-1, self.num_classes)
        self._refuse_probabilities(logits)
        finite = logits.isfinite().all()
        # Sum, number of rows and number of bad batches in one message per step; ranks may have different sizes.
        rows = logits.new_full((1,), logits.shape[0])
        spoilt = (~finite).to(logits.dtype).reshape(1)
        total = torch.cat([self.counted(logits).sum(0).where(finite, 0), rows, spoilt])
        if self._holding:
            self._held = total if self._held is None else self._held + total
        else:
            self._move(total)

    def _refuse_probabilities(self, logits: Tensor) -> None:
        """Of the first batch: reading it waits for the device, which a recorded step cannot."""
        recorded = torch.compiler.is_compiling() or (logits.is_cuda and torch.cuda.is_current_stream_capturing())
        if not self._first or recorded:
            return
        self._first = False
        if logits.numel() and bool(((logits >= 0) & ((logits.sum(-1, keepdim=True) - 1).abs() < 1e-4)).all()):
            raise ValueError("weak_logits are probabilities, expected logits: before the softmax, or their log.")

    def hold(self) -> None:
        self._holding, self._held = True, None

    @torch.no_grad()
    def release(self) -> None:
        if self._holding and self._held is not None:
            self._move(self._held)
        self._holding = False

    def _move(self, total: Tensor) -> None:
        """Move towards the mean of the sums over all ranks."""
        total = ranks.summed(total)
        count, spoilt = total[-2], total[-1]
        batch_mean = (total[:-2] / count).to(self.prior.dtype)
        self._follow(batch_mean, (spoilt == 0) & (count > 0))

    def counted(self, logits: Tensor) -> Tensor:
        """What each row of a batch, (N, C), contributes to the prior: its raw probabilities."""
        return logits.softmax(-1)

    def _follow(self, batch_mean: Tensor, usable: Tensor) -> None:
        """Move towards the batch mean, (C,), where the scalar ``usable`` is true."""
        # lerp instead of m * p + (1 - m) * q: with m near 1 the rounding of m would make the sum drift away from 1.
        moved = self.prior.lerp(batch_mean, 1 - self.momentum)
        self.prior.copy_(torch.where(usable, moved, self.prior))

    def check(self, logits: Tensor) -> None:
        if not isinstance(logits, Tensor) or not logits.is_floating_point():
            found = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
            raise TypeError(f"the logits are of type {found}, expected a tensor of floating-point logits.")
        shape, classes = tuple(logits.shape), self.num_classes
        if len(shape) < 2 or shape[-1] != classes:
            raise ValueError(f"the logits have shape {shape}, expected (batch, {classes}), as num_classes={classes}.")

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RunningPrior":
        # In 8 bits of precision an average that moves by 1 % per step would not move: after .half() and .bfloat16() on
        # a model with this module, the prior stays in float32.
        before = {name: self.get_buffer(name) for name in self.exact}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it without types
        for name, value in before.items():
            if self.get_buffer(name).dtype in (torch.float16, torch.bfloat16):
                setattr(self, name, value.to(self.get_buffer(name).device))
        return self


def safe_log(shares: Tensor) -> Tensor:
    """Logarithm without -inf: a share that has decayed to 0 counts as the smallest normal number, which gives -87."""
    return shares.clamp_min(torch.finfo(shares.dtype).tiny).log()


def shares_of(target: str | Sequence[float], class_counts: Sequence[int]) -> Tensor:
    """The shares that ``target`` names, (C,), in float32."""
    classes = len(class_counts)
    if target == UNIFORM:
        return torch.full((classes,), 1 / classes)
    if target == LABELS:
        counts = checked_counts(class_counts)
        return counts / counts.sum()
    try:
        values = [float(share) for share in (target.split(",") if isinstance(target, str) else target)]
    except (TypeError, ValueError):
        values = []
    if len(values) != classes or not all(0 <= value < float("inf") for value in values) or not sum(values):
        raise ValueError(f"target is {target!r}, expected a name such as labels, or {classes} shares such as 0.5,0.3.")
    shares = torch.tensor(values, dtype=torch.float64)
    return (shares / shares.sum()).float()
