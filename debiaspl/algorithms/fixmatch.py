"""FixMatch (Sohn et al., 2020); with a Debiaser as correction it is DebiasPL (Wang et al., 2022)."""

import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, check_threshold
from debiaspl.algorithms.fixmatch_options import several_views, share_of_strong_views
from debiaspl.algorithms.predict import Logits, predict
from debiaspl.debias import Correction
from debiaspl.debias.correction import at_least_float32

VIEW_LABELS = ("three-sets", "paired")


class FixMatch(Algorithm):
    """Pseudo-labels from confident weak views are the targets of the strong views.

    ``FixMatch(correction=Debiaser(classes))`` is DebiasPL: labels come from ``softmax(f - lambda log p-hat)``, and the
    loss of the strong view uses ``z + lambda log p-hat``.

    Args:
        correction: applied to the predictions before they become labels; none by default.
        threshold: labels less confident than this are not used (tau).
        unlabeled_weight: weight of the unlabeled loss (lambda_u).
        views: 1 weak and 1 strong view, or the paper's multi-view: 2 of each.
        view_labels: with 2 views, which labels a strong view learns. ``three-sets``, as in the released code: one label
            set from each weak view and one from the mean of their logits, each with its own mask, each used for both
            strong views; the loss is the mean of the six, and the correction learns from the mean of the logits.
            ``paired``, as in the paper's text: each strong view learns the labels of one weak view; the loss is the
            mean of the two, and the correction learns from both weak views.
        cld_weight: weight of the CLD loss, which also uses images below the threshold; the paper: 0.1 to 0.3.
        joint: pass weak views through the student together with the others, with the same batch norm statistics.
        strong_share: share of the strong views that is used: those with the most confident labels. Views below the
            threshold have no loss, so a share above the kept part saves passes and changes only the batch norm
            statistics; a share below it drops the least confident kept labels. Each rank chooses among its own images.
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
        view_labels: str = "three-sets",
    ) -> None:
        super().__init__(correction)
        if views not in (1, 2):
            raise ValueError(f"views is {views}, expected 1 (FixMatch) or 2 (the paper's multi-view).")
        if view_labels not in VIEW_LABELS:
            raise ValueError(
                f"view_labels is {view_labels!r}, expected three-sets (the released code) or paired (the paper)."
            )
        if view_labels != VIEW_LABELS[0] and views == 1:
            raise ValueError(f"view_labels is {view_labels}, which needs 2 views, but views is 1. Use views=2 with it.")
        if not 0 < strong_share <= 1:
            raise ValueError(f"strong_share is {strong_share}, expected a share in (0, 1]; 1 uses all strong views.")
        if strong_share < 1 and (joint or views > 1 or cld_weight):
            raise ValueError(
                f"strong_share is {strong_share}: labels must be known before the strong views are chosen, and CLD and "
                "several label sets need all of them. Use joint=false, views=1 and cld_weight=0 with it."
            )
        self.views = Views(weak=views, strong=views)
        self.threshold, self.unlabeled_weight = check_threshold(threshold), unlabeled_weight
        self.cld_weight, self.joint, self.strong_share = cld_weight, joint, strong_share
        self.paired = view_labels == "paired"

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        if self.strong_share < 1:
            return share_of_strong_views(self, models, batch)
        return self.losses_of(predict(models, batch, self.joint), batch.labels)

    def losses_of(self, predicted: Logits, labels: Tensor) -> dict[str, Tensor]:
        """The losses from logits; ``labels`` are those of the labeled images."""
        if self.views.weak > 1 or self.cld_weight:
            return several_views(self, predicted, labels)
        logits, (logits_weak,), (logits_strong,) = predicted
        logits_weak = at_least_float32(logits_weak)

        # Debiased labels. The correction learns from the raw predictions, after it has been used.
        probabilities = self.correction(logits_weak)
        confidence, label = probabilities.max(-1)
        kept = confidence >= self.threshold

        # The margin is wider where the bias is stronger; the mean is over the whole batch, kept or not.
        unlabeled = F.cross_entropy(self.correction.margin(logits_strong, label), label, reduction="none")
        self.report(
            kept=kept,
            confidence=confidence.mean(),
            pseudo_label=label,
            marginal=logits_weak.softmax(-1).mean(0),
        )
        return {
            "labeled": F.cross_entropy(self.correction.labeled_margin(logits, labels), labels),
            "unlabeled": self.unlabeled_weight * (unlabeled * kept).mean(),
        }
