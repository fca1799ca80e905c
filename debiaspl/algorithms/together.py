"""Two algorithms in one run: one learns labels, and a self-supervised one learns features beside it."""

from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.models import FurtherHead

PREFIX = "beside_"
"""Prefix of the names of the second algorithm's losses: both may have one called ``contrast``."""


class Together(Algorithm):
    """The losses of ``main``, and those of ``other`` with the weight ``weight * max(0, 1 - progress / until)``.

    Each has its own views of the same images, and its own passes: they are independent. Correction, teacher,
    generations and monitors are those of ``main``. A step is one fixed program, so the passes of ``other`` continue to
    the end, even when its weight is 0.
    """

    def __init__(self, main: Algorithm, other: Algorithm, weight: float = 1.0, until: float = 1.0) -> None:
        nn.Module.__init__(self)  # the correction belongs to main: under a second name it would be saved twice
        one, two = type(main).__name__, type(other).__name__
        if not main.learns_labels:
            raise ValueError(
                f"{one} is self-supervised, and so is {two} beside it: nothing would learn the labels. "
                "Use beside=none, or an algorithm that learns labels."
            )
        if other.learns_labels:
            raise ValueError(f"{two} learns labels, expected a self-supervised algorithm beside {one}.")
        self.main, self.other = main, other
        self.weight, self.until = weight, until
        object.__setattr__(self, "correction", main.correction)
        self.monitors = {}
        self.labeled_strong = main.labeled_strong
        self.views = Views(*(sum(pair) for pair in zip(main.views, other.views, strict=True)))
        self.needs_pictures = other.needs_pictures or main.needs_pictures
        self.teacher, self.needs_average = main.teacher, main.needs_average
        self.makes_pseudo_labels, self.hard_labels = main.makes_pseudo_labels, main.hard_labels
        self.advice = other.advice if main.advice == Algorithm.advice else main.advice
        self.own_correction, self.own_settings = main.own_correction, main.own_settings
        self.generations = main.generations
        repeated = other.state_dict() if main.generations > 1 else {}
        self._first = {f"other.{name}": value.clone() for name, value in repeated.items()}

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        weak, strong = self.main.views
        for_main = replace(batch, weak=batch.weak[:weak], strong=batch.strong[:strong])
        for_other = replace(batch, weak=batch.weak[weak:], strong=batch.strong[strong:])
        # The other one first, so that batch norm's running statistics are updated last by the main one.
        beside = self.other.losses(self._models_of_other(models), for_other)
        losses = self.main.losses(models, for_main)
        self.monitors = self.main.monitors
        # Exactly 0 from ``until`` on; on a GPU 1 - progress / until may be rounded to slightly more.
        weight = (self.until - batch.progress).clamp_min(0) * (self.weight / self.until)
        weighted = {f"{PREFIX}{name}": weight * loss for name, loss in beside.items()}
        if clash := losses.keys() & weighted.keys():
            raise ValueError(
                f"{type(self.main).__name__} has a loss named {', '.join(sorted(clash))}, and so has "
                f"{type(self.other).__name__} beside it. Rename it, without {PREFIX}."
            )
        return losses | weighted

    def load_pretrained(self) -> None:
        self.main.load_pretrained()

    def files(self) -> dict[str, Path]:
        return self.main.files()

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        return self.main.adopt(probabilities, generation)

    def anew(self) -> dict[str, Tensor]:
        """The heads and memory of ``other``, which do not fit the features of a new student."""
        return self._first

    def classifier(self) -> FurtherHead | None:
        return self.main.classifier()

    def parts(self) -> tuple[Algorithm, ...]:
        return self.main, self.other

    def _models_of_other(self, models: Models) -> Models:
        """The models for ``other``: its teacher is that of its paper, whichever the main one uses."""
        if self.other.teacher == "student":
            return models._replace(teacher=models.student)
        if models.average is None:
            raise ValueError(
                f"{type(self.other).__name__} learns from an average of the student, but there is none. "
                "Use Models(student, teacher, average)."
            )
        return models._replace(teacher=models.average)


def nothing() -> None:
    """The default for ``beside``: no second algorithm."""
