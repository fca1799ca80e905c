"""A run on photos, for the person who took them: how many are right, which model is used, and what to do next."""

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from debiaspl._measures import Cells, wilson
from debiaspl.data import DataError
from debiaspl.data.text import csv_rows
from debiaspl.deploy.labeled import TEACHER, UNCHECKED
from debiaspl.deploy.saved import chosen_folder
from debiaspl.deploy.shares import on_all_photos, unlike_labels
from debiaspl.features.crosscheck import GRAPH
from debiaspl.files import unguarded
from debiaspl.report.pages import Find, short_name, thumbnails
from debiaspl.report.runs.record import RunRecord, is_share, read_run
from debiaspl.training.method import method_of

SUPERVISED, FROZEN = "supervised", "frozen"
"""The folders of the models that a run was compared with, if they are runs of their own."""
IN_WORDS = {
    "supervised": "labels only",
    FROZEN: "the encoder as it is",
    GRAPH: "labels spread to similar photos",
    "debiaspl": "DebiasPL: labels and all other photos",
}
SHOWN = 24
"""Photos of each kind that are shown."""


@dataclass(frozen=True)
class Model:
    """One of the models that were compared on the checked labels."""

    name: str
    cells: Cells
    used: bool

    def to_json(self) -> dict[str, Any]:
        counts = {"right": int(self.cells.right.sum()), "checked": self.cells.images, "interval": self.cells.interval}
        return {"name": IN_WORDS.get(self.name, self.name), "used": self.used} | counts


def is_of_photos(run: RunRecord) -> bool:
    """Whether the run was trained on photos with labels, and has ended."""
    results = run.results or {}
    return isinstance(results.get("check"), dict) and "confusion" in results


def compared_runs(run: RunRecord) -> list[RunRecord]:
    """The runs that this one was compared with, and, last, itself."""
    return [*_ended(run.folder / SUPERVISED), run]


def _ended(folder: Path) -> list[RunRecord]:
    runs = [read_run(folder)] if (folder / "config.json").exists() else []
    return [run for run in runs if run.results is not None]


def photo_values(run: RunRecord, classes: list[str], find: Find | None = None) -> dict[str, Any]:
    """What the page of a run on photos shows. ``find`` finds a photo by its name, if photos are available."""
    results = run.results or {}
    check = results["check"]
    models = _models(run, check)
    used = next((model for model in models if model.used), models[-1])
    told = results.get("zeroshot")
    told = told if isinstance(told, dict) else {}
    if handed_out := str(told.get("handed out", "")):  # its teacher, which is no run, or a student, with the reason
        models = [replace(model, name=handed_out) if model is used else model for model in models]
    rows = _predictions(run.folder)
    learned = set(map(str, results.get("learned_from", ())))
    unsure = sorted((row for row in rows if row[0] not in learned), key=lambda row: row[2])[:SHOWN]
    copies = _doubts(check.get("copies"), classes)
    mistakes = [one for one in _doubts(check.get("mistakes"), classes) if one[0] not in {name for name, *_ in copies}]
    doubts = [*((*one, {"copy": 1}) for one in copies), *((*one, {}) for one in mistakes)][:SHOWN]
    names = dict.fromkeys([name for name, *_ in doubts] + [name for name, *_ in unsure])
    labels, predicted = results.get("labels", []), Counter(label for _, label, _ in rows)
    shares = _shares(results, len(classes))
    known = check.get("kind") not in UNCHECKED
    counts = [predicted[name] for name in classes]
    note = on_all_photos(labels, counts, used.cells.recall, shares.get("estimate", ())) if known else ""
    return {
        "name": run.name,
        "photos": len(rows),
        "labels": sum(labels),
        "checked": {"kind": check.get("kind"), "known": known, "note": note},
        "evaluated": {} if known else _evaluated(told, handed_out),
        "recall": fmean(share for share in used.cells.recall if share is not None),
        "models": [model.to_json() for model in models],
        "why": f"Used because {told.get('why')}." if handed_out else _why(models, used, bool(check.get("folds"))),
        "classes": _classes(used.cells, classes, labels, predicted if rows else None, shares),
        "unlike_labels": unlike_labels(shares, list(map(short_name, classes))) if shares else "",
        "mistakes": [
            {"name": name, "predicted": short_name(other), "label": label} | more for name, label, other, more in doubts
        ],
        "unsure": [{"name": name, "predicted": short_name(label), "confidence": sure} for name, label, sure in unsure],
        "pictures": {} if find is None else thumbnails(names, find),
        "next": _next(used.cells, classes, labels) if known else [],
        "commands": _commands(run, check.get("kind") == TEACHER),
    }


def _models(run: RunRecord, check: Mapping[str, Any]) -> list[Model]:
    """By the results of this run; or each by those of its own run."""
    told = check.get("candidates")
    size = len((run.results or {})["recall"])
    candidates = [
        Model(str(one["name"]), cells, one.get("chosen") is True)
        for one in (told if isinstance(told, list) else ())
        if isinstance(one, dict) and "name" in one and (cells := _cells(one.get("confusion"), size))
    ]
    if candidates and len(candidates) == len(told or ()):
        return candidates
    runs, chosen = compared_runs(run), chosen_folder(run.folder)
    runs[-1:-1] = _ended(run.folder / FROZEN)
    names = [*(one.folder.name for one in runs[:-1]), method_of(run.recipe)]
    return [
        Model(name, cells, one.folder == chosen)
        for name, one in zip(names, runs, strict=True)
        if (cells := _cells((one.results or {})["confusion"], size))
    ]


def _cells(confusion: Any, size: int) -> Cells | None:
    """None unless they are counts of this many classes, not all 0. Runs are untrusted."""
    try:
        cells = Cells.from_json(confusion, size)
    except ValueError:
        return None
    return cells if cells.images else None


def _predictions(folder: Path) -> list[tuple[str, str, float]]:
    """File, class and confidence of every photo by the model in use; nothing if they cannot be read."""
    try:
        text = (chosen_folder(folder) / "predictions.csv").read_text(encoding="utf-8", errors="surrogateescape")
        header, *rows = (row.cells for row in csv_rows(text) if not row.is_blank)
        places = [header.index(name) for name in ("file_name", "label", "confidence")]
        return [(unguarded(row[places[0]]), unguarded(row[places[1]]), float(row[places[2]])) for row in rows]
    except (OSError, ValueError, IndexError, DataError):
        return []


def _doubts(told: Any, classes: list[str]) -> list[tuple[str, str, str]]:
    """File, label and another class: of checked labels that the model in use predicts otherwise, or that a copy has."""
    rows = [row for row in told if isinstance(row, list) and len(row) == 3] if isinstance(told, list) else []
    good = [row for row in rows if all(isinstance(one, int) and 0 <= one < len(classes) for one in row[1:])]
    return [(str(name), classes[label], classes[other]) for name, label, other in good]


def _shares(results: Mapping[str, Any], size: int) -> dict[str, list[float]]:
    """Shares of the classes among the labels, and those estimated of the photos without one, with their interval;
    nothing if the run has none. Runs are untrusted."""
    told, names = results.get("shares"), ("estimate", "low", "high", "labels")
    if not isinstance(told, dict) or not results.get("unlabeled"):
        return {}
    found = {name: values for name in names if isinstance(values := told.get(name), list) and len(values) == size}
    shares = {name: values for name, values in found.items() if all(map(is_share, values))}
    return shares if len(shares) == len(names) and sum(shares["estimate"]) and sum(shares["labels"]) else {}


def _why(models: list[Model], used: Model, checked: bool) -> str:
    """Why this model is used, in a sentence."""
    if len(models) == 1:
        return "No other model is compared here."
    # That was measured with frozen encoders, where the graph is compared too.
    measured = any(model.name == GRAPH for model in models)
    best = "It was the best on average over many sets of photos" if measured else "It learned from all photos"
    if not checked:
        return f"{best}. No class has a second label to check with."
    if used is models[-1]:
        return f"{best}, and no other is significantly better on your labels."
    last, mine = models[-1].to_json(), used.to_json()
    numbers = f"{mine['right']} of {mine['checked']} right instead of {last['right']}"
    return f"It is significantly better on your labels than {last['name']}: {numbers}."


def _evaluated(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """How many true labels, which were used for nothing else, this model of a zero-shot run has right."""
    try:
        values = told["methods"][name]
        checked, right = int(values["evaluated"]), round(values["accuracy"] * values["evaluated"])
        return {"right": right, "checked": checked, "interval": wilson(right, checked)}
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return {}


def _classes(
    cells: Cells,
    classes: list[str],
    labels: list[int],
    predicted: Mapping[str, int] | None,
    shares: Mapping[str, list[float]],
) -> list[dict[str, Any]]:
    """A row for each class; with its shares, if they are known."""
    right, checked, taken = cells.right.tolist(), cells.of_true.tolist(), cells.taken_for()
    return [
        {
            "name": short_name(name),
            "labels": labels[number] if len(labels) == len(classes) else None,
            "right": right[number],
            "checked": checked[number],
            "photos": None if predicted is None else predicted.get(name, 0),
            "taken_for": short_name(classes[taken[number][0]]) if number in taken else None,
            **({"shares": {key: values[number] for key, values in shares.items()}} if shares else {}),
        }
        for number, name in enumerate(classes)
    ]


def _next(cells: Cells, classes: list[str], labels: list[int]) -> list[str]:
    """Classes that more labels would help most, the worst ones; none where no checked label is wrong."""
    if (cells.right == cells.of_true).all():
        return []
    recall = np.where(cells.of_true > 0, cells.right / np.maximum(cells.of_true, 1), 0.0)
    order = np.lexsort((np.asarray(labels) if len(labels) == len(classes) else cells.of_true, recall))
    return [short_name(classes[number]) for number in order[:2] if recall[number] < 1]


def _commands(run: RunRecord, by_teacher: bool) -> dict[str, str]:
    photos, folder, settings = run.recipe.data, str(run.folder), run.recipe.protocol.settings
    # Further labels go where the others are; not among those of a teacher.
    more = ["--out", str(settings["table"])] if settings.get("table") and not by_teacher else []
    for role in ("file", "label"):
        if name := settings.get(f"{role}_column"):
            more += ["--column", f"{role}={name}"]
    return {
        "label": shlex.join(["debiaspl", "label", photos, "--run", folder, *more]),
        "next": shlex.join(["debiaspl", "next", folder, photos, "--out", "next.csv"]),
        "predict": f"{shlex.join(['debiaspl', 'predict', folder])} PHOTOS --out predicted.csv",
    }
