"""Photos of a folder that are worth a label next, with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.data.csv_text import csv_line
from debiaspl.data.listing import list_images
from debiaspl.deploy.next import STRENGTH, pick_next, uncertainty
from debiaspl.deploy.saved import SavedModel

COLUMNS = ("file_name", "label", "predicted", "confidence", "why")
"""``label`` is empty: it is there to be filled in."""


@dataclass(frozen=True)
class Suggestion:
    """A photo to look at."""

    file_name: str
    predicted: str
    """The class that ``debiaspl predict`` gives it."""
    confidence: float
    why: str


@dataclass(frozen=True)
class Suggestions:
    """Photos to label next, the most useful first."""

    picked: list[Suggestion]
    unlabeled: int
    """Photos that could have been picked."""
    bad: dict[str, str]
    """Photos that could not be read -> why."""

    def to_csv(self) -> str:
        rows = [(one.file_name, "", one.predicted, f"{one.confidence:.6f}", one.why) for one in self.picked]
        return "".join(map(csv_line, (COLUMNS, *rows)))


def suggest(
    model: SavedModel,
    photos: Path | str,
    count: int,
    labeled: set[str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Suggestions:
    """The ``count`` photos whose labels would tell the model most; ``labeled`` ones are left out."""
    found = list_images(Path(photos))
    taken = labeled or set()
    files: list[str] = []
    features: list[Tensor] = []
    probabilities: list[Tensor] = []
    bad: dict[str, str] = {}
    for seen in model.see(model.photos(found.root, found.files)):
        # Distances need no more, and 100,000 photos half the memory.
        features.append(seen.features.half().cpu())
        probabilities.append(seen.probabilities.cpu())
        files += [found.files[position] for position in seen.positions.tolist()]
        bad |= {found.files[position]: reason for position, reason in seen.skipped.items()}
        progress(len(files) + len(bad), len(found.files))
    if not set(files) - taken:
        what = "can be read" if bad and not files else "is without a label"
        raise DataError(f"no image of {found.root} {what}: there is nothing to pick.")
    every = torch.cat(probabilities)
    away = [place for place, file in enumerate(files) if file in taken]
    places = pick_next(torch.cat(features), every, count, away)
    return Suggestions(_told(model, files, every, places), len(files) - len(away), bad)


def _told(model: SavedModel, files: list[str], probabilities: Tensor, places: list[int]) -> list[Suggestion]:
    confidence, label = probabilities.max(-1)
    best = uncertainty(probabilities, STRENGTH)
    made = []
    for place in places:
        first, second = (model.classes[int(number)] for number in best.classes[place])
        share, rival = (float(value) for value in best.values[place])
        why = f"{first} ({share:.0%}) or {second} ({rival:.0%}), with the bias taken out"
        made.append(Suggestion(files[place], model.classes[int(label[place])], float(confidence[place]), why))
    return made
