"""Predictions of a folder as one page of small pictures, class by class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debiaspl.deploy.tables import Prediction
from debiaspl.report.audit.thumbnails import thumbnails
from debiaspl.report.next_page import path_text, photos_in
from debiaspl.report.pages import build_page, rounded, short_name

SIDE = 96
EACH = 36
"""Photos of a class that are shown."""
IN_ALL = 1_000
"""Photos that are shown; of many classes, fewer each."""
MOST_BYTES = 5_000_000
"""Of all pictures together, as text."""


def sheet_page(rows: Sequence[Prediction], names: Sequence[str], run: Path, photos: Path) -> str:
    """One self-contained HTML page; ``names`` are all classes, also those that are never predicted."""
    classes: dict[str, list[Prediction]] = {name: [] for name in names}
    for row in rows:
        classes[row.label].append(row)
    each = max(min(EACH, IN_ALL // max(len(classes), 1)), 1)
    chosen = {name: _spread(classes[name], each) for name in sorted(classes)}
    folder = photos.parent if photos.is_file() else photos
    files = [row.file_name for shown in chosen.values() for row in shown]
    values: dict[str, Any] = {
        "kind": "sheet",
        "run": path_text(run),
        "folder": path_text(photos),
        "images": len(rows),
        "classes": [_of_class(name, classes[name], shown) for name, shown in chosen.items()],
        "pictures": _known_by_text(thumbnails(files, photos_in(folder, SIDE), MOST_BYTES)),
    }
    return build_page(f"Predictions of {photos}", values)


def _of_class(name: str, rows: Sequence[Prediction], shown: Sequence[Prediction]) -> dict[str, Any]:
    return {
        "name": short_name(name),
        "count": len(rows),
        "confidence": rounded(sum(row.confidence for row in rows) / len(rows)) if rows else None,
        "shown": [{"name": _text(row.file_name), "confidence": rounded(row.confidence)} for row in shown],
    }


def _spread(rows: Sequence[Prediction], most: int) -> list[Prediction]:
    """The surest first, and evenly down to the least sure, which is among them."""
    ordered = sorted(rows, key=lambda row: (-row.confidence, row.file_name))
    if len(ordered) <= most:
        return ordered
    last = len(ordered) - 1
    return [ordered[round(place * last / max(most - 1, 1))] for place in range(most)]


def _known_by_text(pictures: dict[str, str]) -> dict[str, str]:
    return {_text(name): picture for name, picture in pictures.items()}


def _text(name: str) -> str:
    """Bytes of a file name that are no UTF-8 cannot stand in a page."""
    return name.encode(errors="replace").decode()
