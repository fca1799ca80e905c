"""What every algorithm is: a small module that turns a batch of views into named losses."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from debiaspl.debias import Correction
from debiaspl.models import FurtherHead, Network


class Views(NamedTuple):
    """How many views of each unlabeled image an algorithm asks for."""

    weak: int = 0
    strong: int = 0


class Models(NamedTuple):
    """The network being trained; that which labels weak views, its average or itself; and the average, whoever labels.

    Called with images, a network gives logits; ``network.embed(images)`` are its features, (N, D), and
    ``network.head(features)`` their logits.
    """

    student: Network
    teacher: Network
    average: Network | None = None


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
    labeled_strong: tuple[Tensor, ...] = ()
    """Strong views of the labeled images, for an algorithm that asks for them, each (B, C, H, W)."""


class Algorithm(nn.Module, ABC):
    """``losses(models, batch)`` gives named losses whose sum is minimised.

    It is a pure tensor program: static shapes, no ``.item()``, nothing that waits for the device. Whatever it learns
    across steps is a buffer, what it trains beside the student a parameter. What it wants to be seen it hands to
    ``report``. What it must be told of the run it names in its constructor: ``num_classes``, ``num_features`` (of
    ``network.embed``), ``num_unlabeled``, ``class_counts`` (labels of each class), ``classes``, ``channels``,
    ``unlabeled_ids`` and ``hints`` (what another model says of the unlabeled images, or None)."""

    views = Views()
    labeled_strong = 0
    """How many strong views of each labeled image it asks for, beside the weak one."""
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
    hints_from_graph = False
    """Where the task has no hints, they are labels that spread over the graph of the features of the first step."""
    hard_labels = True
    """Every unlabeled loss has one class for its target; not so with soft or mixed targets."""
    own_correction = "none"
    """The correction that its paper has built in, by name."""
    own_settings: tuple[str, ...] = ()
    """Settings of that correction, and of itself, that its paper has with it, as ``--set`` takes them."""
    heads: tuple[str, ...] = ()
    """Of its state, what is worth taking over into a run that begins with this one, by the first part of its names."""
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

    def load_pretrained(self) -> None:
        """Read the files that a run begins with. A run that is resumed does not: they are in its state by then."""

    def files(self) -> dict[str, Path]:
        """Those files, by the names under which results.json records their digests."""
        return {}

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        """Between two generations: a label for each unlabeled image, (N,), -1 where it stays without.

        ``probabilities``, (N, C), are what the averaged student of generation ``generation`` (from 0) predicts for all
        unlabeled images. Those given a label are labeled images of the next generation."""
        raise NotImplementedError(f"{type(self).__name__} has {self.generations} generations, but no adopt().")

    def anew(self) -> dict[str, Tensor]:
        """What each generation begins with again, by its name in the state: parameters, which adopt cannot set."""
        return {}

    def classifier(self) -> FurtherHead | None:
        """The further head whose average is used in place of the student's own classifier, where one is: it is
        evaluated, saved as the run's model, and asked for the probabilities of ``adopt``. None is the student's own.

        A further head is trained like everything that is a parameter here; its average is kept by the training."""
        return None

    def parts(self) -> tuple["Algorithm", ...]:
        """The algorithms that this one is made of."""
        return (self,)

    def report(self, **monitors: Tensor) -> None:
        """Show these tensors: scalars are averaged over steps. Three names are known: ``kept`` and ``pseudo_label``,
        one entry per unlabeled image, are compared with the truth outside the algorithm, where it is known;
        ``marginal`` is the mean raw probability of each class."""
        self.monitors = {name: value.detach() for name, value in monitors.items()}


def check_threshold(threshold: float) -> float:
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold!r}, expected a confidence in [0, 1]; FixMatch uses 0.95.")
    return threshold
