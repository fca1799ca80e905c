"""DebiasPL: adaptive debiasing with an adaptive marginal loss (Wang et al., CVPR 2022), towards a target."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from debiaspl.debias.correction import LABEL_SHARES, at_least_float32, checked_counts, within
from debiaspl.debias.running import UNIFORM, RunningPrior, safe_log, shares_of

ESTIMATED = "estimated"
STRENGTH = 0.5
"""The paper's."""
FEW = 5.0
"""With this many labels a class an estimate counts as much as equal shares."""
LEAST = 0.01
"""The smallest share of kept labels, in equal shares: a class of which none is kept for a while can come back."""


class Debiaser(RunningPrior):
    """Keeps a running estimate of how often the model predicts each class, and removes that bias from pseudo-labels.

    In the paper's letters: ``prior`` is p-hat, ``strength`` is lambda, ``momentum`` is m.

    * ``debiaser(weak_logits)`` is ``softmax(f - strength * log(prior))`` (Eq. 3) with the prior from before the batch.
      In training mode the prior then moves towards the batch mean of the **raw** probabilities ``softmax(f)`` (Eq. 4).
      Every row counts, confident or not, over all ranks if ``torch.distributed`` is initialised.
    * ``debiaser.margin(strong_logits)`` is ``z + strength * log(prior)``, with the prior after the batch. Its
      cross-entropy is the adaptive marginal loss (Eq. 5), whose margins are ``strength * log(1 / prior)``.

    This is Eq. 4; the paper's Algorithm 1 has the debiased prediction instead of ``softmax(f)``. The prior does not
    change if the batch is empty or has a non-finite logit on any rank.

    All of the prior counts as bias, also the part that is true, so the predictions come to rest at equal shares. With
    another ``target``, the losses take out the shares of what they learn from, and the labels take in the target:

    * ``debiaser(weak_logits)`` is ``softmax(f + strength * log(target))``;
    * ``debiaser.margin(strong_logits)`` is ``z + margin_strength * log(kept)``, with ``kept``, the running shares of
      the labels that reach ``count_threshold``; ``debiaser.labeled_margin(logits)`` is ``z + labeled_strength *
      log(shares of the given labels)``;
    * ``estimated`` counts n / (n + 5) beside equal shares, for n labels a class. It starts at equal shares and moves
      with ``kept``; or ``expect`` was told the shares on a graph of features, and they stay: counts during training are
      of labels that the estimate has moved.

    Args:
        num_classes: number of classes, C; the prior starts at 1 / C.
        strength: how much of the bias is removed, 0 for nothing; by default the paper's 0.5, and with a target 1, which
            is Bayes' rule.
        momentum: momentum of the prior's moving average, in [0, 1).
        labeled_strength: strength of the same margin on the labeled loss; by default 0, as in the paper, and with a
            target that of the labels.
        margin_strength: strength of the margin on the unlabeled loss; by default that of the labels. With 0 only the
            labels are debiased, as in the paper's ablation.
        target: shares of the classes among the unlabeled images: ``uniform``, the paper; ``labels``, as among the given
            labels; ``estimated`` during training; or one share per class, such as ``0.5,0.3,0.2``.
        count_threshold: pseudo-labels with a lower confidence are not counted for a target.
        class_counts: number of labels per class; needed for a target.
    """

    estimate: Tensor
    kept: Tensor
    label_shares: Tensor
    expected: Tensor
    estimates = False

    def __init__(
        self,
        num_classes: int,
        strength: float | None = None,
        momentum: float = 0.99,
        labeled_strength: float | None = None,
        margin_strength: float | None = None,
        target: str | Sequence[float] = UNIFORM,
        count_threshold: float = 0.95,
        class_counts: Sequence[int] | None = None,
    ) -> None:
        super().__init__(num_classes, momentum)
        self.has_target = not (isinstance(target, str) and target == UNIFORM)
        strength = (1.0 if self.has_target else STRENGTH) if strength is None else strength
        labeled = (strength if self.has_target else 0.0) if labeled_strength is None else labeled_strength
        margin = strength if margin_strength is None else margin_strength
        self.strength = float(within("strength", strength, "[0, inf)"))
        self.labeled_strength = float(within("labeled_strength", labeled, "[0, inf)"))
        self.margin_strength = float(within("margin_strength", margin, "[0, inf)"))
        self.count_threshold = within("count_threshold", count_threshold, "[0, 1]")
        self.corrects_pseudo_labels_alone = not (self.has_target and self.labeled_strength)
        self.takes_out = "" if self.corrects_pseudo_labels_alone else LABEL_SHARES
        if self.has_target:
            self._aim_at(target, class_counts)

    def _aim_at(self, target: str | Sequence[float], class_counts: Sequence[int] | None) -> None:
        if class_counts is None or len(class_counts) != self.num_classes:
            raise ValueError(f"class_counts is {class_counts!r}, expected a number for each of {self.num_classes}.")
        counts = checked_counts(class_counts)
        self.estimates, per_class = isinstance(target, str) and target == ESTIMATED, sum(class_counts) / len(counts)
        # With few labels the predictions that are counted are wrong together: an estimate from them makes them more so.
        self.trust = per_class / (per_class + FEW)
        start = shares_of(UNIFORM if self.estimates else target, class_counts)
        self.register_buffer("estimate", start, persistent=self.estimates)
        self.register_buffer("expected", torch.tensor(False), persistent=self.estimates)
        self.register_buffer("label_shares", counts / counts.sum(), persistent=False)
        self.register_buffer("kept", self.label_shares.clone())
        self.exact = ("prior", "kept", "estimate")

    @property
    def target(self) -> Tensor:
        """The shares that are aimed at, (C,)."""
        equal = torch.full_like(self.estimate if self.has_target else self.prior, 1 / self.num_classes)
        if not self.has_target:
            return equal
        return self.estimate.lerp(equal, 1 - self.trust) if self.estimates else self.estimate

    @torch.no_grad()
    def expect(self, shares: Tensor) -> None:
        if not self.estimates:
            return
        # On the graph each class has the same mass, which makes a tail flatter. So if the shares are nearer to those of
        # the labels than to equal ones, both were drawn from the same place.
        shares, equal = shares.to(self.estimate), 1 / self.num_classes
        drawn = (shares - self.label_shares).abs().sum() < (shares - equal).abs().sum()
        self.estimate.copy_(self.label_shares if drawn else shares)
        self.expected.fill_(True)

    def places(self) -> frozenset[str]:
        strengths = {
            "labels": self.strength,
            "unlabeled loss": self.margin_strength,
            "labeled loss": self.labeled_strength,
        }
        return frozenset(place for place, strength in strengths.items() if strength)

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        self.check(weak_logits)
        bias = -safe_log(self.target) if self.has_target else safe_log(self.prior)
        return (at_least_float32(weak_logits.detach()) - self.strength * bias).softmax(-1)

    def margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        self.check(logits)
        shares = self.kept.clamp_min(LEAST / self.num_classes).log() if self.has_target else safe_log(self.prior)
        return at_least_float32(logits) + self.margin_strength * shares

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        if not self.labeled_strength:
            return super().labeled_margin(logits, labels)
        self.check(logits)
        shares = safe_log(self.label_shares) if self.has_target else safe_log(self.prior)
        return at_least_float32(logits) + self.labeled_strength * shares

    def counted(self, logits: Tensor) -> Tensor:
        raw = super().counted(logits)
        if not self.has_target:
            return raw
        confidence, label = self.probabilities(logits).max(-1)
        kept = F.one_hot(label, self.num_classes) * (confidence >= self.count_threshold)[:, None]
        return torch.cat((raw, kept.to(raw)), -1)

    def _follow(self, batch_mean: Tensor, usable: Tensor) -> None:
        super()._follow(batch_mean[: self.num_classes], usable)
        if not self.has_target:
            return
        kept = batch_mean[self.num_classes :]
        usable = usable & (kept.sum() > 0)
        for own, moves in ((self.kept, usable), (self.estimate, usable & ~self.expected))[: 1 + self.estimates]:
            own.copy_(torch.where(moves, own.lerp((kept / kept.sum()).to(own), 1 - self.momentum), own))
