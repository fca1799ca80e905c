"""The audit as one page: the values that the page's script draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl._measures import Cells
from debiaspl.report.audit.findings import UNCERTAIN, favoured, findings
from debiaspl.report.audit.measures import Change
from debiaspl.report.audit.numbers import Audit
from debiaspl.report.pages import MOST_CLASSES, Find, build_page, confusion_order, matrix_of, short_name, thumbnails

MOST_PAIRS = 500
"""Rows of a table of confusions or moves; rarer ones are left out."""
CHANGED, MISTAKEN = 60, 20
"""Images that are shown."""


def audit_page(audit: Audit, command: str = "", find: Find | None = None) -> str:
    """One self-contained HTML page; it shows the ``command`` that made it, and images, where these are available."""
    return build_page(f"Audit of {audit.predictions.origin}", audit_values(audit, command, find))


def audit_values(audit: Audit, command: str = "", find: Find | None = None) -> dict[str, Any]:
    shown = _picks(audit)
    # Each once, the most useful first.
    names = dict.fromkeys(one["name"] for part in ("uncertain", "changed", "mistaken") for one in shown[part])
    return {
        "kind": "audit",
        "origin": audit.predictions.origin,
        "command": command,
        "findings": [vars(finding) for finding in findings(audit)],
        "facts": _facts(audit),
        "classes": _classes(audit),
        "thresholds": audit.thresholds,
        "confusion": audit.cells and _confusion(audit.cells),
        "calibration": audit.calibration,
        "change": audit.change and _change(audit.change),
        "picks": shown,
        "pictures": {} if find is None else thumbnails(names, find),
    }


def _facts(audit: Audit) -> dict[str, Any]:
    facts = {"predictions": len(audit.predictions), "classes": len(audit.classes), **audit.shares.to_json()}
    facts["never_predicted"] = len(audit.shares.never)
    if (cells := audit.cells) is not None:
        facts |= {"accuracy": cells.accuracy, "interval": cells.interval, "truth_known": cells.images}
        facts["worst_recall"] = min(value for value in cells.recall if value is not None)
    return facts


def _classes(audit: Audit) -> dict[str, Any]:
    counts, confidence = audit.shares.counts, audit.predictions.confidence
    columns: dict[str, list[Any]] = {
        "name": [short_name(name) for name in audit.classes],
        "predicted": counts.tolist(),
        "times_even": audit.shares.times_even.tolist(),
    }
    if confidence is not None:
        total = np.bincount(audit.predictions.label, confidence, minlength=len(counts))
        columns["confidence"] = [value / count if count else None for value, count in zip(total, counts, strict=True)]
    if (cells := audit.cells) is not None:
        columns |= {"truth": cells.of_true.tolist(), "precision": cells.precision, "recall": cells.recall}
    if audit.change is not None:
        columns["debiased"] = audit.change.shares.counts.tolist()
    return columns


def _confusion(cells: Cells) -> dict[str, Any]:
    mistakes = cells.mistakes()
    pairs = _columns(mistakes.true, mistakes.predicted, mistakes.count)
    drawn = None if cells.classes > MOST_CLASSES else matrix_of(cells)
    return {"order": confusion_order(cells), "matrix": drawn, "mistakes": pairs, "all_mistakes": len(mistakes.count)}


def _columns(*columns: NDArray[np.int64]) -> list[list[int]]:
    return [column[:MOST_PAIRS].tolist() for column in columns]


def _change(found: Change) -> dict[str, Any]:
    moves = _columns(found.moved.true, found.moved.predicted, found.moved.count)
    counts = {"never_predicted": len(found.shares.never), "all_moves": len(found.moved.count)}
    return found.to_json() | counts | {"moves": moves}


def _picks(audit: Audit) -> dict[str, Any]:
    """Images to look at, in the order they are shown."""
    found, most = audit.predictions, favoured(audit)
    rows: dict[str, NDArray[np.int64]] = {name: np.empty(0, np.int64) for name in ("uncertain", "changed", "mistaken")}
    if found.confidence is not None:
        own = np.flatnonzero(found.label == most.number)
        rows["uncertain"] = own[np.argsort(found.confidence[own], kind="stable")][:UNCERTAIN]
        if found.truth is not None:  # wrong, and sure of it
            wrong = np.flatnonzero((found.truth >= 0) & (found.truth != found.label))
            rows["mistaken"] = wrong[np.argsort(-found.confidence[wrong], kind="stable")][:MISTAKEN]
    if audit.change is not None:
        rows["changed"] = audit.change.rows[:CHANGED]
    images = {name: [_image(audit, row) for row in chosen.tolist()] for name, chosen in rows.items()}
    return {"favoured": most.number, "holds": most.holds, **images}


def _image(audit: Audit, row: int) -> dict[str, Any]:
    found, after = audit.predictions, audit.change
    return {
        "name": found.name(row),
        "label": int(found.label[row]),
        "confidence": None if found.confidence is None else float(found.confidence[row]),
        "truth": None if found.truth is None or found.truth[row] < 0 else int(found.truth[row]),
        "new": None if after is None else int(after.label[row]),
        "new_confidence": None if after is None else float(after.confidence[row]),
    }
