"""Checks students with labels that they were not trained with."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data import UNLABELED
from debiaspl.data.given import fold_of
from debiaspl.training import Choice, Recipe
from debiaspl.zeroshot.check import CheckedMethod, LabelCheck, decide, is_clear
from debiaspl.zeroshot.predictions import Predictions

FOLDS = 3
CHECKS = "check"
"""Folder of the runs of folds."""


def check_with_labels(
    out: Path,
    students: Mapping[str, tuple[Recipe, Path]],
    predictions: Predictions,
    labels: Tensor,
    trained: Callable[[Recipe, Path, Tensor, str], Tensor],
) -> LabelCheck:
    """How often the teacher and its students are right on labels that they were not trained with, and the decision.

    Args:
        out: the folder of the experiment.
        students: recipe and folder by method: first the student of only the labels, then the taught one.
        predictions: the teacher's predictions.
        labels: labels from a person, one for each prediction, -1 for none.
        trained: trains a recipe into a folder with these labels, and returns the student's label of each image; its
            last argument is the name of the run, for the progress line.
    """
    seed = next(iter(students.values()))[0].seed
    parts = folds(labels, seed)
    held_out = torch.zeros_like(labels, dtype=torch.bool)
    for part in parts:
        held_out |= part != labels
    rows = [CheckedMethod(f"{predictions.teacher} alone", (predictions.label == labels)[held_out])]
    for method, (recipe, place) in students.items():

        def of_fold(
            number: int, part: Tensor, recipe: Recipe = recipe, place: Path = place, method: str = method
        ) -> Tensor:
            below = out / CHECKS / f"{place.name}-fold{number}"
            told = f"{method}, fold {number + 1} of {len(parts)}"
            settings = {**recipe.protocol.settings, "folds": len(parts), "fold": number}
            found = trained(replace(recipe, protocol=Choice(recipe.protocol.name, settings)), below, part, told)
            # Models of folds are not needed, and may be large.
            (below / "model.safetensors").unlink(missing_ok=True)
            shutil.rmtree(below / "checkpoint", ignore_errors=True)
            return found

        rows.append(CheckedMethod(method, (cross_checked(labels, parts, of_fold) == labels)[held_out]))
    teacher, alone, taught = rows
    clear = is_clear(predictions.label, labels, len(predictions.classes))
    return LabelCheck(tuple(rows), decide(teacher, alone, taught, clear))


def folds(labels: Tensor, seed: int) -> list[Tensor]:
    """For each fold the training labels: those that it is checked with are -1. Empty if no class has two."""
    known, counts = labels[labels >= 0], torch.bincount(labels[labels >= 0])
    again = int((counts[known] > 1).sum())
    if again < 2:
        return []
    fold = fold_of(labels, min(FOLDS, again), seed)
    return [torch.where(fold == number, UNLABELED, labels) for number in range(int(fold.max()) + 1)]


def cross_checked(labels: Tensor, parts: list[Tensor], trained: Callable[[int, Tensor], Tensor]) -> Tensor:
    """The label of each image by the student that was not trained with it, (N,); -1 if none was held out.

    ``trained(fold, labels)`` returns all labels of a student that was trained with these.
    """
    found = torch.full_like(labels, UNLABELED)
    for number, part in enumerate(parts):
        held_out = (labels >= 0) & (part < 0)
        found[held_out] = trained(number, part)[held_out]
    return found
