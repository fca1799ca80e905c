"""The folder of a run as a source of predictions."""

import json
import struct
from pathlib import Path
from typing import Any

from debiaspl.predictions.errors import PredictionsError

LARGEST_HEADER = 100_000_000
"""Bytes; safetensors itself allows no more."""


def predictions_of_run(folder: Path) -> Path:
    """``predictions.csv`` of a run that has ended."""
    path = folder / "predictions.csv"
    if path.exists():
        return path
    if held := [] if (folder / "config.json").exists() else sorted(folder.glob("*/predictions.csv")):
        raise PredictionsError(f"{folder} holds runs, expected one of them: debiaspl audit {held[0].parent}")
    if (folder / "results.json").exists():
        raise PredictionsError(
            f"the run in {folder} has ended, but its predictions.csv is missing, expected beside results.json. Bring "
            f"it back from a copy, or train anew. What else the run shows: debiaspl report {folder}"
        )
    if (folder / "config.json").exists():
        raise PredictionsError(
            f"the run in {folder} has not ended: it has no predictions.csv yet. Look at it meanwhile: "
            f"debiaspl watch {folder}"
        )
    raise PredictionsError(
        f"{folder} is no run of debiaspl: it has neither config.json nor predictions.csv, expected a run or a file."
    )


def classes_of_run(folder: Path) -> tuple[str, ...] | None:
    """All class names, also of classes never predicted, from the header of ``model.safetensors``; None without it."""
    facts = _facts(folder / "model.safetensors")
    names = facts.get("classes")
    return tuple(map(str, names)) if isinstance(names, list) else None


def _facts(path: Path) -> dict[str, Any]:
    """What a run wrote about its weights. The header is JSON behind its length in eight bytes; no tensor is read."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, LARGEST_HEADER)))
        facts = json.loads(header["__metadata__"]["debiaspl"])
        return facts if isinstance(facts, dict) else {}
    except (OSError, struct.error, ValueError, KeyError, TypeError):
        return {}
