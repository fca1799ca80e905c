"""Pages of small pictures: photos to label next, and the predictions of a folder, class by class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from debiaspl.deploy.next import Suggestions
from debiaspl.deploy.tables import Prediction
from debiaspl.report.pages import build_page, images_in, short_name, thumbnails

NEXT_SIDE, SHEET_SIDE = 128, 96
"""Pixels of a picture, so that a person can see the class."""
EACH = 36
"""Photos of a class that are shown."""
IN_ALL = 1_000
"""Photos that are shown; of many classes, fewer each."""
MOST_BYTES = 5_000_000
"""Of all pictures of a sheet together, as text."""


def next_page(found: Suggestions, model: str, photos: Path, table: Path, labeled: int | None) -> str:
    """One self-contained HTML page; ``model`` is the run or the encoder that chose the photos, ``labeled`` how many
    were left out, None where that is not known."""
    values = {
        "kind": "next",
        "model": model,
        "folder": str(photos),
        "table": str(table),
        "unlabeled": found.unlabeled,
        "labeled": labeled,
        "picked": [
            {"name": file, "predicted": short_name(one.predicted), "confidence": one.confidence, "why": one.why}
            for file, one in found.picked.items()
        ],
        "pictures": thumbnails(found.picked, images_in(photos, NEXT_SIDE, linked=True)),
    }
    return build_page(f"To label next in {photos}", values)


def sheet_page(rows: Sequence[Prediction], names: Sequence[str], run: Path, photos: Path) -> str:
    """One self-contained HTML page; ``names`` are all classes, also those that are never predicted."""
    classes: dict[str, list[Prediction]] = {name: [] for name in sorted(names)}
    for row in rows:
        classes[row.label].append(row)
    each = max(min(EACH, IN_ALL // max(len(classes), 1)), 1)
    told: list[dict[str, Any]] = []
    for name, own in classes.items():
        own.sort(key=lambda row: (-row.confidence, row.file_name))
        # The surest first, and evenly down to the least sure, which is among them.
        shown = [own[int(place)] for place in np.linspace(0, len(own) - 1, min(each, len(own))).round()]
        mean = sum(row.confidence for row in own) / len(own) if own else None
        pictures = [{"name": row.file_name, "confidence": row.confidence} for row in shown]
        told.append({"name": short_name(name), "count": len(own), "confidence": mean, "shown": pictures})
    folder = photos.parent if photos.is_file() else photos
    files = [picture["name"] for one in told for picture in one["shown"]]
    values = {
        "kind": "sheet",
        "run": str(run),
        "folder": str(photos),
        "images": len(rows),
        "classes": told,
        "pictures": thumbnails(files, images_in(folder, SHEET_SIDE, linked=True), MOST_BYTES),
    }
    return build_page(f"Predictions of {photos}", values)
