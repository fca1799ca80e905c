"""Pages of small pictures: photos to label next, and the predictions of a folder, class by class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debiaspl.deploy.next import Suggestions
from debiaspl.deploy.tables import Prediction
from debiaspl.report.pages import build_page, images_in, rounded, short_name, thumbnails

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
            {
                "name": file,
                "predicted": short_name(one.predicted),
                "confidence": rounded(one.confidence),
                "why": one.why,
            }
            for file, one in found.picked.items()
        ],
        "pictures": thumbnails(found.picked, images_in(photos, NEXT_SIDE, linked=True)),
    }
    return build_page(f"To label next in {photos}", values)


def sheet_page(rows: Sequence[Prediction], names: Sequence[str], run: Path, photos: Path) -> str:
    """One self-contained HTML page; ``names`` are all classes, also those that are never predicted."""
    classes: dict[str, list[Prediction]] = {name: [] for name in names}
    for row in rows:
        classes[row.label].append(row)
    each = max(min(EACH, IN_ALL // max(len(classes), 1)), 1)
    chosen = {name: _spread(classes[name], each) for name in sorted(classes)}
    folder = photos.parent if photos.is_file() else photos
    files = [row.file_name for shown in chosen.values() for row in shown]
    pictures = thumbnails(files, images_in(folder, SHEET_SIDE, linked=True), MOST_BYTES)
    values: dict[str, Any] = {
        "kind": "sheet",
        "run": str(run),
        "folder": str(photos),
        "images": len(rows),
        "classes": [_of_class(name, classes[name], shown) for name, shown in chosen.items()],
        "pictures": pictures,
    }
    return build_page(f"Predictions of {photos}", values)


def _of_class(name: str, rows: Sequence[Prediction], shown: Sequence[Prediction]) -> dict[str, Any]:
    return {
        "name": short_name(name),
        "count": len(rows),
        "confidence": rounded(sum(row.confidence for row in rows) / len(rows)) if rows else None,
        "shown": [{"name": row.file_name, "confidence": rounded(row.confidence)} for row in shown],
    }


def _spread(rows: Sequence[Prediction], most: int) -> list[Prediction]:
    """The surest first, and evenly down to the least sure, which is among them."""
    ordered = sorted(rows, key=lambda row: (-row.confidence, row.file_name))
    if len(ordered) <= most:
        return ordered
    last = len(ordered) - 1
    return [ordered[round(place * last / max(most - 1, 1))] for place in range(most)]
