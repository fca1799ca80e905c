"""FixMatch (Sohn et al., 2020): strong views learn the confident label of the weak view; with a Debiaser: DebiasPL."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Logits, Models, Views, WeakToStrong, in_one_pass, predict, predict_weak
from debiaspl.algorithms.mixing import one_hot
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import at_least_float32, within

VIEW_LABELS = ("three-sets", "paired")
CLD_TEMPERATURE = 0.07


class FixMatch(WeakToStrong):
    """Pseudo-labels from confident weak views are the targets of the strong views.

    ``FixMatch(correction=Debiaser(classes))`` is DebiasPL: labels come from ``softmax(f - lambda log p-hat)``, and the
    loss of the strong view uses ``z + lambda log p-hat``.

    Args:
        views: 1 weak and 1 strong view, or the paper's multi-view: 2 of each.
        view_labels: with 2 views, which labels a strong view learns. ``three-sets``, as in the released code: those of
            each weak view and of the mean of their logits, from which the correction learns. ``paired``, as in the
            paper's text: those of one weak view each.
        cld_weight: weight of the CLD loss, which also uses images below the threshold; the paper: 0.1 to 0.3.
        strong_share: share of the strong views that is used, those with the most confident labels. Views below the
            threshold have no loss, so a share above the kept part changes only the batch norm statistics.
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
        super().__init__(correction, unlabeled_weight, joint)
        within("views", views, "[1, 2]")
        if view_labels not in VIEW_LABELS:
            raise ValueError(f"view_labels is {view_labels!r}, expected {' or '.join(VIEW_LABELS)}.")
        if within("strong_share", strong_share, "(0, 1]") < 1 and (joint or views > 1 or cld_weight):
            raise ValueError(f"strong_share is {strong_share}, which needs joint=false, views=1 and cld_weight=0.")
        self.views = Views(weak=views, strong=views)
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.cld_weight, self.strong_share = cld_weight, strong_share
        self.paired = view_labels == "paired"

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        if self.strong_share < 1:
            return self._losses_of_share(models, batch)
        return self.losses_of(predict(models, batch, self.joint), batch.labels)

    def losses_of(self, predicted: Logits, labels: Tensor) -> dict[str, Tensor]:
        """``labels`` are those of the labeled images."""
        if self.views.weak > 1 or self.cld_weight:
            return self._losses_of_views(predicted, labels)
        logits, (logits_weak,), (logits_strong,) = predicted

        # The correction learns from the raw predictions, after it has been used.
        confidence, label = self.correction(logits_weak).max(-1)
        kept = confidence >= self.threshold
        self.report_labels(logits_weak, confidence, label, kept)
        return self.both_losses(logits, labels, logits_strong, label, kept)

    def _losses_of_views(self, predicted: Logits, labels: Tensor) -> dict[str, Tensor]:
        """With several views, or the CLD loss."""
        logits, logits_weak, logits_strong = predicted
        mean_weak = at_least_float32(torch.stack(logits_weak)).mean(0)

        # Every label set uses the correction's state before this batch; only then does it learn.
        if self.paired:
            views = self.correction(torch.cat(logits_weak)).chunk(len(logits_weak))
            label_sets = [probabilities.max(-1) for probabilities in views]
            targets = list(zip(label_sets, logits_strong, strict=True))
        else:
            several = len(logits_weak) > 1
            label_sets = [self.correction.probabilities(view).max(-1) for view in logits_weak] if several else []
            label_sets.insert(0, self.correction(mean_weak).max(-1))
            targets = [(label_set, view) for label_set in label_sets for view in logits_strong]

        terms = [self.unlabeled_loss(view, label, sure >= self.threshold) for (sure, label), view in targets]
        losses = {
            "labeled": self.labeled_loss(logits, labels),
            "unlabeled": self.unlabeled_weight * torch.stack(terms).mean(),
        }
        if self.cld_weight:
            mean_strong = at_least_float32(torch.stack(logits_strong)).mean(0)
            losses["cld"] = self.cld_weight * cld(mean_weak.softmax(-1), mean_strong.softmax(-1))
        confidence, label = label_sets[0]
        self.report_labels(mean_weak, confidence, label, confidence >= self.threshold)
        return losses

    def _losses_of_share(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        """Only the strong views with the most confident labels: a fixed number of them, so that shapes are static."""
        (logits_weak,) = predict_weak(models, batch.weak)
        confidence, label = self.correction(logits_weak).max(-1)
        kept = confidence >= self.threshold
        count = max(1, round(self.strong_share * len(label)))
        rows = confidence.topk(count).indices
        logits, logits_strong = in_one_pass(models.student, [batch.labeled, batch.strong[0].index_select(0, rows)])
        self.report_labels(logits_weak, confidence, label, kept)
        unlabeled = self.unlabeled_loss(logits_strong, label[rows], kept[rows])
        return {
            "labeled": self.labeled_loss(logits, batch.labels),
            "unlabeled": self.unlabeled_weight * (count / len(label)) * unlabeled,
        }


def cld(weak: Tensor, strong: Tensor) -> Tensor:
    """Cross-level instance-group discrimination (Wang et al., 2021): weak probabilities, (N, C), are grouped by their
    **most** likely class, over all ranks, and each strong one is classified into its group by the groups' means."""
    weak = weak.detach()
    group = weak.argmax(-1)
    members = one_hot(group, weak)
    with torch.autocast(weak.device.type, enabled=False):  # a temperature of 0.07 amplifies rounding errors of bf16
        totals = ranks.summed(torch.cat([members.T @ weak, members.sum(0)[:, None]], 1))
        sums, size = totals[:, :-1], totals[:, -1]
        centroids = sums / size.clamp_min(1)[:, None]
        similarity = strong @ centroids.T / CLD_TEMPERATURE
    return F.cross_entropy(similarity.masked_fill(size == 0, float("-inf")), group)
