"""The base classes of all algorithms, which turn a batch of views into named losses, and the logits of the views."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias import Correction
from debiaspl.debias.correction import LABEL_SHARES, at_least_float32
from debiaspl.models import FurtherHead, Network


class Views(NamedTuple):
    """How many views of each unlabeled image an algorithm needs."""

    weak: int = 0
    strong: int = 0


class Models(NamedTuple):
    """The student, which is trained; the teacher, which labels weak views (the average or the student); the average."""

    student: Network
    teacher: Network
    average: Network | None = None


@dataclass(frozen=True)
class Batch:
    """The images of one step, as floats. Labels of unlabeled images are not included, so no loss can use them."""

    labeled: Tensor
    """Weak views of the labeled images, (B, C, H, W)."""
    labels: Tensor
    """Their labels, (B,)."""
    weak: tuple[Tensor, ...] = ()
    """Weak views of the unlabeled images, each (U, C, H, W)."""
    strong: tuple[Tensor, ...] = ()
    """Strong views of the same images in the same order."""
    positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    """Indices of these images in the unlabeled set, (U,), for state that is kept per image."""
    progress: Tensor = field(default_factory=lambda: torch.zeros(()))
    """Completed share of the training, a scalar from 0 to below 1."""
    generator: torch.Generator | None = None
    """The run's own, on the device of the images."""
    labeled_strong: tuple[Tensor, ...] = ()
    """Strong views of the labeled images, each (B, C, H, W), as many as ``Algorithm.labeled_strong``."""


class Algorithm(nn.Module, ABC):
    """``losses(models, batch)`` returns named losses; training minimises their sum.

    Algorithms are pure tensor programs: static shapes, no ``.item()``, nothing that waits for the device. State that
    lasts across steps is in buffers, and whatever is trained beside the student is a parameter. The constructor
    declares what it needs to know about the run: ``num_classes``, ``num_features`` (of ``network.embed``),
    ``num_unlabeled``, ``class_counts`` (labels per class), ``classes``, ``channels``, ``unlabeled_ids`` and ``hints``
    (another model's labels of the unlabeled images, or None).

    Settings of the same meaning in many algorithms, which say more only where they differ:

    Args:
        correction: applied to the predictions before they become labels; none by default.
        threshold: labels less confident than this are not used.
        unlabeled_weight: weight of the unlabeled loss.
    """

    about = ""
    """What ``debiaspl list algorithms`` says; empty: the first line of its module."""
    views = Views()
    labeled_strong = 0
    """How many strong views of each labeled image it needs, in addition to the weak one."""
    balanced_labels = False
    """Draw the same number of labeled images of every class, instead of all of them equally often."""
    teacher = "student"
    """Default for what labels the weak views: the ``student``, or its ``average``."""
    needs_average = False
    """Cannot work if the student labels for itself."""
    makes_pseudo_labels = True
    """False if it learns from labels alone, or without any."""
    learns_labels = True
    """False for a self-supervised algorithm, which trains only the features."""
    needs_pictures = ""
    """Why it cannot learn from vectors, as a sentence; empty if it can."""
    needs_experts = False
    """Trains the heads of a network that has several."""
    advice = "Try a smaller learning_rate first."
    """What to change if the features collapse, in the order to try; it may depend on the settings."""
    hints_from_graph = False
    """Its hints, if the task has none, are labels propagated over the graph of the first features."""
    hard_labels = True
    """Every target is one class; false for soft or mixed targets."""
    own_correction = "none"
    """The correction that is part of the paper's method, by name."""
    own_settings: Mapping[str, Any] = MappingProxyType({})
    """Settings of that correction, and of the algorithm, that the paper uses with it."""
    heads: tuple[str, ...] = ()
    """First parts of the names of its state that a run copies which starts from this one."""
    balanced_places: frozenset[str] = frozenset()
    """Where it takes out the shares of the labels itself, of ``PLACES``: a correction must not do so a second time."""
    generations = 1
    """How often the student is trained from the start, with labels from ``adopt``."""

    def __init__(self, correction: Correction | None = None) -> None:
        super().__init__()
        self.correction = Correction() if correction is None else correction
        self.monitors: dict[str, Tensor] = {}
        self._check_correction()

    @abstractmethod
    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        """Named losses, weighted: training minimises their sum."""

    def load_pretrained(self) -> None:
        """Read files, in a new run; a resumed one has what they hold in its state."""

    def files(self) -> dict[str, Path]:
        """Those files, by their names in results.json, which records their digests."""
        return {}

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        """After generation ``generation`` (from 0): a label for each unlabeled image, (N,), or -1, from the averaged
        student's probabilities, (N, C). Images with a label are labeled ones of the next. Also resets other state."""
        raise NotImplementedError

    def classifier(self) -> FurtherHead | None:
        """The head whose average replaces the student's own classifier in the result; None: the student's own."""
        return None

    def labeled_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of labeled images, with the correction's margin and class weights."""
        margined, weights = self.correction.labeled_margin(logits, labels), self.correction.class_weights()
        if weights is None:
            return F.cross_entropy(margined, labels)
        return hard_loss(margined, labels, weights[labels])

    def unlabeled_loss(self, logits: Tensor, label: Tensor, weight: Tensor) -> Tensor:
        """The same with hard pseudo-labels and a weight for each image; the mean is over the whole batch."""
        weights = self.correction.class_weights()
        weight = weight if weights is None else weight * weights[label]
        return hard_loss(self.correction.margin(logits, label), label, weight)

    def report_labels(
        self, logits_weak: Tensor, confidence: Tensor, label: Tensor, kept: Tensor | None = None, **others: Tensor
    ) -> None:
        """Log which labels are kept (by default all), their confidence, and the predictions without a correction."""
        marginal = at_least_float32(logits_weak).softmax(-1).mean(0)
        kept = torch.ones_like(label, dtype=torch.bool) if kept is None else kept
        self.report(kept=kept, confidence=confidence.mean(), pseudo_label=label, marginal=marginal, **others)

    def report(self, **monitors: Tensor) -> None:
        """Log scalars, as means over steps, and three more: ``kept`` and ``pseudo_label``, with an entry per unlabeled
        image, are compared with the true labels, if known; ``marginal`` is the mean raw probability of each class."""
        self.monitors = {name: value.detach() for name, value in monitors.items()}

    def _check_correction(self) -> None:
        """Raise if the correction, or a part of it, would have no effect or makes no sense with this algorithm."""
        name = type(self).__name__
        for part in self.correction.each():
            other = type(part).__name__
            if not self.learns_labels and type(part) is not Correction:
                raise ValueError(f"{name} learns without labels: {other} has nothing to correct. Use correction=none.")
            if part.corrects_pseudo_labels_alone and not self.makes_pseudo_labels:
                raise ValueError(f"{name} makes no pseudo-labels, so {other} would do nothing. Use correction=none.")
            if part.takes_out == LABEL_SHARES and self.balanced_places & part.places():
                raise ValueError(f"{name} removes {LABEL_SHARES} itself, and {other} would again. Use correction=none.")
            if part.needs_hard_labels and not self.hard_labels:
                raise ValueError(f"{name} has soft or mixed targets, but {other} needs one class each. Use fixmatch.")


class Supervised(Algorithm):
    """The baseline for all algorithms: cross-entropy on the labeled images; unlabeled images are not used."""

    about = "the baseline, which learns the labeled images alone."
    makes_pseudo_labels = False

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        return {"labeled": self.labeled_loss(models.student(batch.labeled), batch.labels)}


class WeakToStrong(Algorithm):
    """The strong view of an image learns a label that comes from its weak view.

    Args:
        joint: pass weak views through the student together with the others, with the same batch norm statistics.
    """

    views = Views(weak=1, strong=1)

    def __init__(self, correction: Correction | None = None, unlabeled_weight: float = 1.0, joint: bool = True) -> None:
        super().__init__(correction)
        self.unlabeled_weight, self.joint = unlabeled_weight, joint

    def both_losses(
        self, logits: Tensor, labels: Tensor, logits_strong: Tensor, label: Tensor, weight: Tensor
    ) -> dict[str, Tensor]:
        unlabeled = self.unlabeled_weight * self.unlabeled_loss(logits_strong, label, weight)
        return {"labeled": self.labeled_loss(logits, labels), "unlabeled": unlabeled}


class SelfSupervised(Algorithm):
    """Learns features from two strong views, without labels."""

    views = Views(strong=2)
    makes_pseudo_labels = False
    learns_labels = False
    needs_pictures = "it trains the features themselves, and those of a frozen encoder do not change."


def hard_loss(logits: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy with one class per image, times its weight; mean over all images."""
    return (F.cross_entropy(logits, label, reduction="none") * weight).mean()


class Logits(NamedTuple):
    labeled: Tensor
    weak: tuple[Tensor, ...]
    strong: tuple[Tensor, ...]


def predict(models: Models, batch: Batch, joint: bool, features: bool = False) -> Logits:
    """Logits, or features, of the labeled, weak and strong views; only the labeled and strong ones have gradients.

    The student sees labeled and strong views in one batch. With ``joint``, as in FixMatch, the weak views are part of
    it, so that batch norm sees all of them; a separate batch, which a teacher always has, saves their backward pass.
    """
    separate = not joint or models.teacher is not models.student
    weak = predict_weak(models, batch.weak, features) if separate and batch.weak else ()
    trained = 1 + len(batch.strong)
    parts = in_one_pass(models.student, [batch.labeled, *batch.strong, *(() if separate else batch.weak)], features)
    return Logits(parts[0], weak or tuple(part.detach() for part in parts[trained:]), parts[1:trained])


def predict_twice(models: Models, batch: Batch, joint: bool, further: FurtherHead) -> tuple[Logits, Logits]:
    """``predict`` with the network's own classifier and with a further one on the same features, without extra passes;
    a teacher labels with the average of the further one."""
    trained, weak = [batch.labeled, *batch.strong], None
    is_student = models.teacher is models.student
    views = [*trained, *batch.weak] if joint and is_student else trained
    if views is trained:
        with torch.no_grad():
            weak = models.teacher.embed(torch.cat(batch.weak))
    features = models.student.embed(torch.cat(views))

    def logits_of(head: Callable[[Tensor], Tensor], labelling: Callable[[Tensor], Tensor]) -> Logits:
        rows = torch.split(head(features), [len(images) for images in views])
        labels = rows[len(trained) :]
        if weak is not None:
            with torch.no_grad():
                labels = torch.split(labelling(weak), [len(images) for images in batch.weak])
        return Logits(rows[0], tuple(row.detach() for row in labels), rows[1 : len(trained)])

    further_labels = further if is_student else further.averaged
    return logits_of(models.student.head, models.teacher.head), logits_of(further, further_labels)


@torch.no_grad()
def predict_weak(models: Models, weak: Sequence[Tensor], features: bool = False) -> tuple[Tensor, ...]:
    """From the network that labels, in a separate batch."""
    return in_one_pass(models.teacher, weak, features)


def in_one_pass(model: Network, views: Sequence[Tensor], features: bool = False) -> tuple[Tensor, ...]:
    images = torch.cat(list(views))
    return torch.split(model.embed(images) if features else model(images), [len(view) for view in views])
