"""What every algorithm is: a small module that turns a batch of views into named losses."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from debiaspl.debias import Correction
from debiaspl.models import Network


class Views(NamedTuple):
    """How many views of each unlabeled image an algorithm asks for."""

    weak: int = 0
    strong: int = 0


class Models(NamedTuple):
    """The network being trained, and the network that labels the weak views: an average of the student, or itself.

    Called with images, a network gives logits; ``network.embed(images)`` are its features, (N, D), and
    ``network.head(features)`` their logits.
    """

    student: Network
    teacher: Network


@dataclass(frozen=True)
class Batch:
    """One step's images, as floats. Labels of unlabeled images are not among them, so no loss can use them."""

    labeled: Tensor
    """Weak views of the labeled images, (B, C, H, W)."""
    labels: Tensor
    """Their labels, (B,)."""
    weak: tuple[Tensor, ...] = ()
    """Weak views of the unlabeled images, each (U, C, H, W)."""
    strong: tuple[Tensor, ...] = ()
    """Strong views of the same images in the same order."""
    positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    """Which unlabeled images these are, (U,): places in the unlabeled set, for what is remembered of each image."""
    progress: Tensor = field(default_factory=lambda: torch.zeros(()))
    """Share of the training that is done, a scalar from 0 to below 1, for what grows as it goes on."""
    generator: torch.Generator | None = None
    """What random numbers are drawn from: the run's own generator, on the device of the images."""


class Algorithm(nn.Module, ABC):
    """``losses(models, batch)`` gives named losses whose sum is minimised.

    It is a pure tensor program: static shapes, no ``.item()``, nothing that waits for the device. Whatever it learns
    across steps is a buffer, what it trains beside the student a parameter. What it wants to be seen it hands to
    ``report``. What it must be told of the run it names in its constructor: ``num_classes``, ``num_features`` (of
    ``network.embed``), ``num_unlabeled``, ``class_counts`` (labels of each class), ``classes``, ``unlabeled_ids``
    and ``hints`` (what another model says of the unlabeled images, or None).
    """

    views = Views()
    teacher = "student"
    """Who labels the weak views when the recipe does not say: the ``student``, or its ``average``."""
    needs_average = False
    """Has no meaning when the student labels for itself."""
    makes_pseudo_labels = True
    """Learns from images that nobody has labeled."""
    learns_labels = True
    """Trains the classifier; a self-supervised algorithm trains the features alone, and looks at no label."""
    needs_pictures = ""
    """Why it cannot learn from the vectors of a frozen encoder, in a sentence; empty where it can."""
    advice = "Try a smaller learning_rate first."
    """What to change where the features collapse, in the order to try it; it may depend on the settings."""
    gone: tuple[str, ...] = ()
    """Settings that runs of earlier versions record, and that did nothing."""
    hard_labels = True
    """Every unlabeled loss has one class for its target; not so with soft or mixed targets."""
    own_correction = "none"
    """The correction that its paper has built in, by name."""
    generations = 1
    """How often the student is trained anew, with what ``adopt`` took over; other state is for ``adopt`` to renew."""

    def __init__(self, correction: Correction | None = None) -> None:
        super().__init__()
        self.correction = Correction() if correction is None else correction
        self.monitors: dict[str, Tensor] = {}
        name, other = type(self).__name__, type(self.correction).__name__
        if not self.learns_labels and type(self.correction) is not Correction:
            raise ValueError(
                f"{name} learns without labels, so there is nothing for {other} to correct. Use correction=none."
            )
        if self.correction.corrects_pseudo_labels_alone and not self.makes_pseudo_labels:
            raise ValueError(
                f"{name} makes no pseudo-labels, and {other} corrects nothing else: the pair would do nothing. "
                "Use correction=none, or a correction of the labeled loss or of the classifier."
            )
        if self.correction.needs_hard_labels and not self.hard_labels:
            raise ValueError(
                f"{name} learns from soft or mixed targets, and {other} needs one class per image for its margin. "
                f"Use {other} with an algorithm of hard labels, such as fixmatch."
            )

    @abstractmethod
    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        """Named losses, weighted: their sum is what the step minimises."""

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        """Between two generations: a label for each unlabeled image, (N,), -1 where it stays without.

        ``probabilities``, (N, C), are what the averaged student of generation ``generation`` (from 0) predicts for all
        unlabeled images. Those given a label are labeled images of the next generation.
        """
        raise NotImplementedError(f"{type(self).__name__} has {self.generations} generations, but no adopt().")

    def report(self, **monitors: Tensor) -> None:
        """Show these tensors: scalars are averaged over steps. Three names are known: ``kept`` and ``pseudo_label``,
        one entry per unlabeled image, are compared with the truth outside the algorithm, where it is known;
        ``marginal`` is the mean raw probability of each class."""
        self.monitors = {name: value.detach() for name, value in monitors.items()}


class SelfSupervised(Algorithm):
    """Learns features from two strong views, without a label: a start, for runs that learn from labels afterwards.

    Args:
        correction: none, since there are no labels to correct.
        num_features: width of the network's features.
    """

    views = Views(strong=2)
    makes_pseudo_labels = False
    learns_labels = False
    needs_pictures = "it trains the features themselves, and those of a frozen encoder stay as they are."


def check_decay(decay: float, followers: str) -> float:
    if not 0 <= decay < 1:
        raise ValueError(
            f"decay is {decay!r}, expected a number in [0, 1): with 0 {followers} are those of the last batch, with 1 "
            "they would never move. The paper uses 0.999, for runs of a million steps."
        )
    return decay


def check_threshold(threshold: float) -> float:
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold!r}, expected a confidence in [0, 1]; FixMatch uses 0.95.")
    return threshold
