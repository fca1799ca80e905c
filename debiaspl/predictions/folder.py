"""The folder of a run as a source of predictions."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from debiaspl.predictions.errors import PredictionsError


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
    """What a run wrote about its weights; no tensor is read."""
    try:
        with safe_open(path, "np") as file:
            facts = json.loads((file.metadata() or {}).get("debiaspl", "{}"))
    except (OSError, SafetensorError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
