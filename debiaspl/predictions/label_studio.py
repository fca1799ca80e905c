"""Tasks of Label Studio: as ``debiaspl predict`` writes them, or exported with what people have chosen since."""

import json
from pathlib import Path
from typing import Any

from debiaspl.predictions.errors import PredictionsError, reason
from debiaspl.predictions.raw import Names, Raw, as_text


def read_tasks(path: Path, names: Names) -> Raw:
    """The first prediction of each task; what a person has chosen is the truth."""
    try:
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise PredictionsError(f"{path} cannot be read as JSON: {reason(error)}.") from error
    if isinstance(tasks, dict) and "source" in tasks and "counts" in tasks:
        raise PredictionsError(
            f"{path} is what an audit has counted, not the predictions themselves, expected these. Audit what it was "
            f"made from: {tasks['source']}"
        )
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and "data" in task for task in tasks):
        raise PredictionsError(
            f"{path} holds no tasks of Label Studio, expected a list of them. An object per prediction belongs on a "
            "line of its own, in a file that ends in .jsonl."
        )
    if not tasks:
        raise PredictionsError(f"{path} has no tasks, expected one per image.")
    rows = [_row(task, number, path) for number, task in enumerate(tasks, 1)]
    columns = dict(zip(("file_name", "label", "confidence", "truth"), zip(*rows, strict=True), strict=True))
    if not all(columns["confidence"]):  # it is of use for all or none
        del columns["confidence"]
    if not any(columns["truth"]):
        del columns["truth"]
    return Raw(str(path), {name: as_text(list(cells)) for name, cells in columns.items()})


def _row(task: dict[str, Any], number: int, path: Path) -> tuple[str, str, str, str]:
    data = task["data"] if isinstance(task["data"], dict) else {}
    score, label = _chosen(task.get("predictions"))
    if not label:
        raise PredictionsError(
            f"task {number:,} of {path} has no prediction with a choice, expected one in every task. "
            "debiaspl predict --format label-studio writes them."
        )
    name = data.get("file_name") or data.get("image") or ""
    return str(name), label, score, _chosen(task.get("annotations"))[1]


def _chosen(entries: Any) -> tuple[str, str]:
    """Score and choice of the first entry that has one and was not cancelled; empty without."""
    from debiaspl.data.label_studio import choices_of  # with torch, which other formats do without

    for entry, _, choices in choices_of(entries):
        if len(choices) == 1:
            score = entry.get("score")
            return "" if score is None else str(score), choices[0]
    return "", ""
