"""Evaluates a model on images it was not trained with, and makes the results.json of a run."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import Cells, almost_none, distance, ratio
from debiaspl._version import __version__
from debiaspl.algorithms import Algorithm
from debiaspl.data import ImageSet, Task
from debiaspl.data.text import csv_line
from debiaspl.debias import ranks
from debiaspl.models import Network, predict_set
from debiaspl.models.predict import BATCH
from debiaspl.training.group import ALONE, Group
from debiaspl.training.monitor import health_results, true_counts
from debiaspl.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions for a set with known labels."""

    images: ImageSet
    label: Tensor
    """Predicted class of every image."""
    confidence: Tensor
    """Probability of the predicted class."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, with the reason; they are not counted."""

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy, 0 to 1."""
        return float((self.label == self.images.truth.cpu()).double().mean())

    @property
    def confusion(self) -> Cells:
        return Cells.of(self.images.truth.cpu(), self.label, self.images.num_classes)

    def to_csv(self) -> str:
        """``file_name,label,confidence,truth``, one line per image."""
        lines = [csv_line(["file_name", "label", "confidence", "truth"])]
        names = (*self.images.classes, "")  # -1, for an unknown class, is the last one
        columns = self.images.ids, self.label.tolist(), self.confidence.tolist(), self.images.truth.tolist()
        for name, label, confidence, truth in zip(*columns, strict=True):
            lines.append(csv_line([name, names[label], f"{confidence:.6f}", names[truth]]))
        return "".join(lines)


def predict_all(model: Network, images: ImageSet, group: Group = ALONE) -> Tensor:
    """Probabilities of every image, (N, C), in float32; uniform for a file that cannot be read. The ranks of a group
    share the work, and get the same result."""
    result = torch.zeros((len(images), images.num_classes), device=images.labels.device)
    for seen in predict_set(model, images, BATCH, group.number, group.count):
        if seen.skipped:
            result[torch.tensor(list(seen.skipped), device=result.device)] = 1 / images.num_classes
        result[seen.positions.to(result.device)] = seen.probabilities
    if group.count > 1:
        group.largest(0)  # first between the hosts: on a GPU a rank that hangs would not be noticed
        ranks.add_up(result)  # exact, because every row is 0 on all ranks but one
    return result


def evaluate(model: Network, images: ImageSet, group: Group = ALONE) -> Evaluation:
    """Predict every readable image, in float32, with a model in eval mode. The ranks of a group share the work, and get
    the same result."""
    batches = predict_set(model, images, BATCH, group.number, group.count)
    # Cloned: a view of the positions of all images would be sent with all of them, in every batch.
    own = [(seen.positions.clone(), *seen.probabilities.max(-1), seen.skipped) for seen in batches]
    own = [(places, confidence.cpu(), label.cpu(), skipped) for places, confidence, label, skipped in own]
    parts = [part for one in group.everyone(own) for part in one]
    positions, confidences, labels, skipped = zip(*parts, strict=True)
    read, order = torch.cat(positions).sort()
    seen = images if len(read) == len(images) else images.select(read)
    reasons = sorted(pair for one in skipped for pair in one.items())
    bad = {images.ids[position]: reason for position, reason in reasons}
    return Evaluation(seen, torch.cat(labels)[order], torch.cat(confidences)[order], bad)


Predict = Callable[[Any], Evaluation]
"""Predictions of the final model for an ImageSet. Ranks share the work: all must make the same calls."""


@dataclass(frozen=True)
class Ending:
    """The results of a run, in addition to its weights."""

    confusion: Cells | None
    """All other numbers follow from it; None without labels."""
    evaluated: str
    """Which model was measured, and on what, as text."""
    predictions: str | None
    """The text of ``predictions.csv``; None without a classifier."""
    skipped: frozenset[str] = frozenset()
    """Files that could not be read."""
    more: dict[str, Any] = field(default_factory=dict)
    """More results, by name."""


End = Callable[[Predict, Task], Ending]


def on_the_test_set(predict: Predict, task: Task) -> Ending:
    found, text, more = predict(task.test), "the averaged weights after the last step, on the test set", {}
    if task.test.ids == task.labeled.ids:
        text = "the labels it was trained with, because there are no others: this says nothing about other images"
        more = {"check": {"kind": "none", "folds": 0, "labels": len(task.labeled)}}
    return Ending(found.confusion, text, found.to_csv(), frozenset(found.skipped), more)


WITHOUT_LABELS = Ending(None, "nothing: features were learned without labels, and no image has one", None)


def basic_results(recipe: Recipe, mode: str, ending: Ending, labels: list[int], unlabeled: int) -> dict[str, Any]:
    """What the results of every run say. ``labels`` are those per class that it was trained with."""
    numbers, confusion = dict[str, Any](), ending.confusion
    if confusion is not None:
        numbers = {
            "accuracy": confusion.accuracy,
            "recall": confusion.recall,
            "worst_recall": min(share for share in confusion.recall if share is not None),
            "confusion": confusion.to_json(),
        }
    return {
        "recipe": recipe.to_json(),
        "mode": mode,
        "evaluated": ending.evaluated,
        **numbers,
        "labels": labels,
        "unlabeled": unlabeled,
        "test": 0 if confusion is None else confusion.images,
        "versions": {"debiaspl": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def measured(
    recipe: Recipe, task: Task, mode: str, predict: Predict, ending: Ending, log: list[dict[str, Any]]
) -> dict[str, Any]:
    """The results except timings, which are the same for the same recipe."""
    results = basic_results(recipe, mode, ending, task.labeled.counts(), len(task.unlabeled))
    if task.validation is not None:
        held_out = predict(task.validation)
        results["validation"] = {"accuracy": held_out.accuracy, "labels": len(held_out.images)}
    if skipped := {name for record in log for name in record.get("skipped", {})} | ending.skipped:
        results["skipped"] = sorted(skipped)
    if (true := true_counts(task.unlabeled)) is not None:
        results["true_counts"] = true
    return results | ending.more | pseudo_labels(log, true) | health_results(log)


def mode(recipe: Recipe, algorithm: Algorithm) -> str:
    """Whether a run follows the algorithm's paper, and which views share batch norm; see docs/lab/notebook.md."""
    other_teacher = recipe.teacher == "average" and algorithm.teacher == "student"
    if other_teacher or getattr(algorithm, "strong_share", 1.0) < 1:
        return "fast"
    joint = getattr(algorithm, "joint", None)
    return "faithful" if joint is None else f"faithful, {'joint' if joint else 'separate'}"


def pseudo_labels(log: list[dict[str, Any]], true: list[int] | None) -> dict[str, Any]:
    """The pseudo-labels in the second half of a run, beside the ``true`` shares (or uniform ones); empty if no label
    was confident enough."""
    half = [record for record in log if "pseudo_labels" in record and 2 * record["step"] > log[-1]["step"]]
    counts = [sum(column) for column in zip(*(record["pseudo_labels"] for record in half), strict=True)]
    if not any(counts):
        return {}
    known = sum(record["pseudo_known"] for record in half)
    return {
        "pseudo_labels": counts,
        "pseudo_distance": distance(counts, true),
        "pseudo_almost_none": almost_none(counts, true),
        "pseudo_imbalance": ratio(counts),
        "pseudo_accuracy": sum(record["pseudo_right"] for record in half) / known if known else None,
    }


def timing(seconds: float, device: torch.device) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"seconds": round(seconds, 1), "device": name, "threads": torch.get_num_threads()}


def about(recipe: Recipe, images: ImageSet) -> dict[str, Any]:
    """What is needed to use the weights again."""
    return {
        "network": recipe.to_json()["network"],
        "classes": images.classes,
        "channels": images.channels,
        "size": list(images.images.shape[2:]),
    }
