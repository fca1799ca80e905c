"""How a run is measured when it has ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from debiaspl.data import Task
from debiaspl.training.evaluate import Evaluation

Predict = Callable[[Any], Evaluation]
"""Predictions of the finished model for an ImageSet. Ranks share the work: what one asks for, all must ask for."""


@dataclass(frozen=True)
class Ending:
    """What a run ends with, beside its weights."""

    confusion: list[list[int]]
    """Rows: true class. Columns: predicted class. All other numbers follow from it."""
    evaluated: str
    """Which model was measured, and on what, in words."""
    predictions: str
    """The text of ``predictions.csv``."""
    skipped: frozenset[str] = frozenset()
    """Files that could not be read."""
    more: dict[str, Any] = field(default_factory=dict)
    """Further results, by name."""

    @property
    def images(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> float:
        """Top-1, 0 to 1."""
        return sum(row[number] for number, row in enumerate(self.confusion)) / self.images

    @property
    def recall(self) -> list[float | None]:
        """Of each class: the share of its images that were recognised; None for a class without images."""
        return [row[number] / sum(row) if sum(row) else None for number, row in enumerate(self.confusion)]


End = Callable[[Predict, Task], Ending]


def on_the_test_set(predict: Predict, task: Task) -> Ending:
    """The usual end."""
    found = predict(task.test)
    text = "the averaged weights after the last step, on the test set"
    return Ending(found.confusion, text, found.to_csv(), frozenset(found.skipped))
