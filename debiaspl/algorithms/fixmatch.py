"""FixMatch (Sohn et al., 2020); with a Debiaser as correction it is DebiasPL (Wang et al., 2022)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, check_threshold
from debiaspl.algorithms.cld import cld
from debiaspl.algorithms.predict import predict, predict_own, predict_weak
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32


class FixMatch(Algorithm):
    """The label of the weak view, where it is confident, is what the strong view must learn.

    ``FixMatch(correction=Debiaser(classes))`` is DebiasPL: labels come from ``softmax(f - lambda log p-hat)``, and the
    strong view's loss is that of ``z + lambda log p-hat``.

    Args:
        correction: what is done to the predictions before they become labels; nothing, if not given.
        threshold: labels less confident than this are not used (tau).
        unlabeled_weight: weight of the unlabeled loss (lambda_u).
        views: 1 weak and 1 strong view, or the paper's multi-view: 2 of each. Then there are three label sets, one of
            each weak view and one of the mean of their logits, each with a mask of its own, each used for both strong
            views; the loss is the mean of the six. The correction learns from the mean.
        cld_weight: weight of the CLD loss, which also uses what lies below the threshold; the paper: 0.1 to 0.3.
        joint: weak views share the student's batch, and so its batch norm, with the others.
        strong_share: share of the strong views that is learned from: those whose labels are the most confident. Views
            below the threshold have no loss, so that a share above what is kept costs nothing but the statistics of
            batch norm, and saves their passes; one below it leaves out the least confident of the kept. Each rank
            chooses among its own images.
    """

    def __init__(
        self,
        correction: Correction | None = None,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
        views: int = 1,
        cld_weight: float = 0.0,
        joint: bool = True,
        strong_share: float = 1.0,
    ) -> None:
        super().__init__(correction)
        if views not in (1, 2):
            raise ValueError(f"views is {views}, expected 1 (FixMatch) or 2 (the paper's multi-view).")
        self.views = Views(weak=views, strong=views)
        self.threshold, self.unlabeled_weight = check_threshold(threshold), unlabeled_weight
        if not 0 < strong_share <= 1:
            raise ValueError(f"strong_share is {strong_share}, expected a share in (0, 1]; 1 learns from all.")
        if strong_share < 1 and (joint or views > 1 or cld_weight):
            raise ValueError(
                f"strong_share is {strong_share}: labels must be known before the strong views are chosen, and CLD and "
                "several label sets need them all. Use joint=false, views=1 and cld_weight=0 with it."
            )
        self.cld_weight, self.joint, self.strong_share = cld_weight, joint, strong_share

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        if self.strong_share < 1:
            return self._losses_of_a_share(models, batch)
        logits, logits_weak, logits_strong = predict(models, batch, self.joint)
        mean_weak = at_least_float32(torch.stack(logits_weak)).mean(0)

        # Every label set is made with the correction from before this batch; only then does it learn.
        label_sets = [self.correction.probabilities(view) for view in logits_weak] if len(logits_weak) > 1 else []
        label_sets.insert(0, self.correction(mean_weak))

        terms = [self._consistency(probabilities, view) for probabilities in label_sets for view in logits_strong]
        losses = {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits, batch.labels), batch.labels),
            "unlabeled": self.unlabeled_weight * torch.stack(terms).mean(),
        }
        if self.cld_weight:
            mean_strong = at_least_float32(torch.stack(logits_strong)).mean(0)
            losses["cld"] = self.cld_weight * cld(mean_weak.softmax(-1), mean_strong.softmax(-1))

        self._report(mean_weak, label_sets[0])
        return losses

    def _losses_of_a_share(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        """The same, when the labels decide which strong views are looked at: a fixed number, so that shapes stay."""
        (logits_weak,) = predict_weak(models, batch.weak)
        probabilities = self.correction(logits_weak)
        count = max(1, round(self.strong_share * len(probabilities)))
        rows = probabilities.amax(-1).topk(count).indices
        logits, (logits_strong,) = predict_own(models, batch.labeled, [batch.strong[0].index_select(0, rows)])
        share = count / len(probabilities)
        self._report(at_least_float32(logits_weak), probabilities)
        return {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits, batch.labels), batch.labels),
            "unlabeled": self.unlabeled_weight * share * self._consistency(probabilities[rows], logits_strong),
        }

    def _report(self, logits_weak: Tensor, probabilities: Tensor) -> None:
        confidence, label = probabilities.max(-1)
        self.report(
            kept=confidence >= self.threshold,
            confidence=confidence.mean(),
            pseudo_label=label,
            marginal=logits_weak.softmax(-1).mean(0),
        )

    def _consistency(self, probabilities: Tensor, logits_strong: Tensor) -> Tensor:
        """Cross-entropy with the hard labels, over the confident ones, divided by the size of the whole batch."""
        confidence, label = probabilities.max(-1)
        keep = confidence >= self.threshold
        return (F.cross_entropy(self.correction.margin(logits_strong, label), label, reduction="none") * keep).mean()
