"""DebiasPL: adaptive debiasing with an adaptive marginal loss (Wang et al., CVPR 2022)."""

from collections.abc import Callable

import torch
from torch import Tensor, distributed

from debiaspl.debias.correction import Correction, Traits, at_least_float32


class Debiaser(Correction):
    """Keeps a running estimate of how often the model predicts each class, and takes that bias out of its labels.

    In the paper's letters: ``prior`` is p-hat, ``strength`` is lambda, ``momentum`` is m.

    * ``debiaser(weak_logits)`` is ``softmax(f - strength * log(prior))`` (Eq. 3) with the prior from before the batch.
      In training mode the prior then moves towards the batch mean of the **raw** probabilities ``softmax(f)`` (Eq. 4):
      of every row, whether its label will be kept or not, over all ranks when ``torch.distributed`` is initialised.
    * ``debiaser.margin(strong_logits)`` is ``z + strength * log(prior)``, with the prior after the batch. Cross-entropy
      of it is the adaptive marginal loss (Eq. 5), whose margins are ``strength * log(1 / prior)``.

    A batch with a logit that is not finite, on any rank, or without rows leaves the prior as it was.

    Args:
        num_classes: number of classes, C; the prior starts at 1 / C.
        strength: how much of the bias is removed; 0 removes nothing.
        momentum: how slowly the prior follows the model, in [0, 1).
    """

    traits = Traits(
        helps_training=True,
        needs_no_class_distribution=True,
        adapts=True,
        works_on_balanced=True,
        allows_shift=True,
    )
    corrects_pseudo_labels_alone = True
    prior: Tensor

    def __init__(self, num_classes: int, strength: float = 0.5, momentum: float = 0.99) -> None:
        super().__init__()
        if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
            raise ValueError(f"num_classes is {num_classes!r}, expected a whole number of at least 2.")
        if not 0 <= strength < float("inf"):
            raise ValueError(
                f"strength is {strength!r}, expected a number >= 0: 0 removes no bias, the paper uses 0.5; "
                "a negative one would add to the bias."
            )
        if not 0 <= momentum < 1:
            raise ValueError(
                f"momentum is {momentum!r}, expected a number in [0, 1): with 0 the prior is that of the last batch, "
                "with 1 it would never move. 0.99 is a good start."
            )
        self.num_classes = num_classes
        self.strength = float(strength)
        self.momentum = float(momentum)
        self.register_buffer("prior", torch.full((num_classes,), 1 / num_classes, dtype=torch.float32))

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        self._check(weak_logits, "weak_logits")
        return (at_least_float32(weak_logits.detach()) - self._bias()).softmax(-1)

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        self._check(strong_logits, "strong_logits")
        return at_least_float32(strong_logits) + self._bias()

    @torch.no_grad()
    def learn(self, weak_logits: Tensor) -> None:
        self._check(weak_logits, "weak_logits")
        logits = at_least_float32(weak_logits).reshape(-1, self.num_classes)
        finite = logits.isfinite().all()
        # Sum, number of rows and number of spoilt batches travel together: one message a step, ranks of any size.
        rows = logits.new_full((1,), logits.shape[0])
        spoilt = (~finite).to(logits.dtype).reshape(1)
        total = torch.cat([logits.softmax(-1).sum(0).where(finite, 0), rows, spoilt])
        if distributed.is_available() and distributed.is_initialized():
            distributed.all_reduce(total)
        count, spoilt = total[-2], total[-1]
        batch_mean = (total[:-2] / count).to(self.prior.dtype)
        # lerp rather than m * p + (1 - m) * q: with m near 1 the rounding of m itself would let the sum drift off 1.
        moved = self.prior.lerp(batch_mean, 1 - self.momentum)
        self.prior.copy_(torch.where((spoilt == 0) & (count > 0), moved, self.prior))

    def _bias(self) -> Tensor:
        # A prior that has decayed to 0 would give -inf; the smallest normal number gives -87.
        return self.strength * self.prior.clamp_min(torch.finfo(self.prior.dtype).tiny).log()

    def _check(self, logits: Tensor, name: str) -> None:
        if not logits.is_floating_point():
            raise TypeError(f"{name} has dtype {logits.dtype}, expected floating-point logits, not labels or counts.")
        if logits.ndim < 2 or logits.shape[-1] != self.num_classes:
            raise ValueError(
                f"{name} has shape {tuple(logits.shape)}, expected (batch, {self.num_classes}): one row of logits per "
                f"image, one column per class. This Debiaser was made with num_classes={self.num_classes}."
            )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Debiaser":
        # .half() and .bfloat16() on a model that holds this module: an average that moves by 1 % a step would stand
        # still in 8 bits of precision, so the prior follows to the new device but stays in float32.
        exact = self.prior
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it without types
        if self.prior.dtype in (torch.float16, torch.bfloat16):
            self.prior = exact.to(self.prior.device)
        return self

    def extra_repr(self) -> str:
        return f"num_classes={self.num_classes}, strength={self.strength}, momentum={self.momentum}"
