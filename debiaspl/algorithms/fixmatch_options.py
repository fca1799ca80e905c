"""Two options of FixMatch: the paper's multiple views with CLD, and using only the most confident strong views."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.algorithms.cld import cld
from debiaspl.algorithms.consistency import labeled_loss, report_labels, unlabeled_loss
from debiaspl.algorithms.predict import Logits, predict_own, predict_weak
from debiaspl.debias.correction import at_least_float32

if TYPE_CHECKING:
    from debiaspl.algorithms.fixmatch import FixMatch


def several_views(own: "FixMatch", predicted: Logits, labels: Tensor) -> dict[str, Tensor]:
    """One label set from each weak view and one from the mean of their logits, each used for every strong view; or each
    strong view with the labels of one weak view."""
    logits, logits_weak, logits_strong = predicted
    mean_weak = at_least_float32(torch.stack(logits_weak)).mean(0)

    # Every label set uses the correction's state before this batch; only then does it learn.
    if own.paired:
        both = own.correction(torch.cat(logits_weak)).chunk(len(logits_weak))
        label_sets = [probabilities.max(-1) for probabilities in both]
        learned = list(zip(label_sets, logits_strong, strict=True))
    else:
        several = len(logits_weak) > 1
        label_sets = [own.correction.probabilities(view).max(-1) for view in logits_weak] if several else []
        label_sets.insert(0, own.correction(mean_weak).max(-1))
        learned = [(made, view) for made in label_sets for view in logits_strong]

    terms = [
        unlabeled_loss(own.correction, view, label, confidence >= own.threshold)
        for (confidence, label), view in learned
    ]
    losses = {
        "labeled": labeled_loss(own.correction, logits, labels),
        "unlabeled": own.unlabeled_weight * torch.stack(terms).mean(),
    }
    if own.cld_weight:
        mean_strong = at_least_float32(torch.stack(logits_strong)).mean(0)
        losses["cld"] = own.cld_weight * cld(mean_weak.softmax(-1), mean_strong.softmax(-1))
    confidence, label = label_sets[0]
    report_labels(own, mean_weak, confidence, label, confidence >= own.threshold)
    return losses


def share_of_strong_views(own: "FixMatch", models: Models, batch: Batch) -> dict[str, Tensor]:
    """Losses of the strong views with the most confident labels: a fixed number of them, so that shapes are static."""
    (logits_weak,) = predict_weak(models, batch.weak)
    confidence, label = own.correction(logits_weak).max(-1)
    kept = confidence >= own.threshold
    count = max(1, round(own.strong_share * len(label)))
    rows = confidence.topk(count).indices
    logits, (logits_strong,) = predict_own(models, batch.labeled, [batch.strong[0].index_select(0, rows)])
    report_labels(own, logits_weak, confidence, label, kept)
    unlabeled = unlabeled_loss(own.correction, logits_strong, label[rows], kept[rows])
    return {
        "labeled": labeled_loss(own.correction, logits, batch.labels),
        "unlabeled": own.unlabeled_weight * (count / len(label)) * unlabeled,
    }
