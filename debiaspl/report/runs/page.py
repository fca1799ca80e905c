"""The report of runs as one page: the values that the page's script draws. Logs become curves of limited length."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from debiaspl._measures import Cells, pseudo_measures
from debiaspl.files import write_text
from debiaspl.report.pages import MOST_CLASSES, build_page, confusion_order, images_in, matrix_of, short_name
from debiaspl.report.runs.findings import run_findings
from debiaspl.report.runs.methods import (
    APART,
    Method,
    accuracy_interval,
    command_of,
    flat,
    methods_of,
    place_of,
    setting_text,
    what_was_tested,
)
from debiaspl.report.runs.photos import compared_runs, is_of_photos, photo_values
from debiaspl.report.runs.record import RunRecord, read_run
from debiaspl.training import RunError

MOST_CELLS = 20_000
PHOTO_SIDE = 96
POINTS = 200
"""Points of a line."""
STRIPES = 12_000
"""Shares of classes through time that are drawn as stripes: with more classes, fewer times."""
FROM_RESULTS = ("accuracy", "evaluated", "worst_recall", "pseudo_accuracy", "unlabeled", "test", "versions", "timing")

Record = dict[str, Any]  # a line of a log


def write_report(folders: Sequence[Path], out: Path, photos: Path | None = None) -> Path:
    """Write the report of these runs, ended or not, to ``out``. Some photos are shown if their folder is given."""
    write_text(out, runs_page([read_run(folder) for folder in folders], photos))
    return out


def runs_page(runs: Sequence[RunRecord], photos: Path | None = None) -> str:
    """One self-contained HTML page. That of one run on photos is for the person who took them; the charts of its
    training are folded. Photos are shown if their folder is given: one that a run names is not opened."""
    title = f"Run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs"
    if len(runs) == 1 and is_of_photos(runs[0]):
        values = photo_values(runs[0], _class_names(runs), None if photos is None else images_in(photos, PHOTO_SIDE))
        research = runs_values(compared_runs(runs[0]))
        return build_page(runs[0].name, values | {"kind": "photos", "research": research})
    return build_page(title, runs_values(runs))


def runs_values(runs: Sequence[RunRecord]) -> dict[str, Any]:
    names = _class_names(runs)
    methods = methods_of(runs)
    data = {
        (place_of(run.recipe.data), sum(run.results.get("labels", [])), run.results.get("test"))
        for run in runs
        if run.results is not None
    }
    return {
        "kind": "runs",
        "about": runs[0].recipe.about if len({run.recipe.about for run in runs}) == 1 else "",
        "classes": [short_name(name) for name in names],
        "findings": [vars(finding) for finding in run_findings(methods, names)],
        "same_data": len(data) < 2,
        "methods": [_method(method, methods) for method in methods],
        "runs": [_run(run, place, len(names)) for place, method in enumerate(methods) for run in method.runs],
        **_confusions([method for method in methods if method.ended()]),
        "settings": _settings(methods),
    }


def _class_names(runs: Sequence[RunRecord]) -> list[str]:
    """Class names from a run that has ended; until then, numbers."""
    sizes = {size for run in runs if (size := run.num_classes()) is not None}
    if len(sizes) > 1:
        raise RunError(f"these runs have {' and '.join(map(str, sorted(sizes)))} classes, expected as many in each.")
    numbers = [f"class {number}" for number in range(next(iter(sizes), 0))]
    return next((list(run.classes) for run in runs if run.classes), numbers)


def _method(method: Method, methods: Sequence[Method]) -> dict[str, Any]:
    baseline = next((other for other in methods if other.supervised and other is not method), None)
    # A class without test images has None, which becomes NaN, then masked, and None again.
    recalls = np.ma.masked_invalid(np.array([one["recall"] for one in method.ended()], float))
    return {
        "title": method.title,
        "supervised": method.supervised,
        "runs": len(method.runs),
        "accuracy": method.accuracy(),
        "unmeasured": not method.ended() and all(run.results is not None for run in method.runs),
        "to_supervised": None if baseline is None else method.difference(baseline),
        "worst_recall": method.mean("worst_recall"),
        "off": method.pseudo(),
        "pseudo_accuracy": method.mean("pseudo_accuracy"),
        "recall": recalls.mean(0).tolist() if len(recalls) else None,
    }


def _run(run: RunRecord, method: int, classes: int) -> dict[str, Any]:
    results = run.results or {}
    return {
        "name": run.name,
        "method": method,
        "seed": run.recipe.seed,
        "ended": run.results is not None,
        "step": run.step,
        "steps": run.recipe.steps,
        **{name: results.get(name) for name in FROM_RESULTS},
        "off": pseudo_measures(results) or None,
        "interval": accuracy_interval(results),
        "labels": sum(results["labels"]) if "labels" in results else None,
        "tested": what_was_tested(results),
        "data": run.recipe.data,
        "seconds": run.log[-1]["seconds"] if run.log else None,
        "command": command_of(run.recipe),
        "curves": curves(run.log),
        "pseudo": stripes(run.log, classes, "pseudo_labels") if classes else None,
        "prior": stripes(run.log, classes, "prior") if classes else None,
        "has_prior": any("prior" in record for record in run.log[-1:]),
    }


def _confusions(ended: Sequence[Method]) -> dict[str, Any]:
    """One matrix a method, over its seeds, all in one order of classes."""
    sums = {method.title: method.cells for method in ended}
    if not sums or next(iter(sums.values())).classes > MOST_CLASSES:
        return {"confusions": [], "order": []}
    drawn = [{"title": title, "matrix": matrix_of(cells, MOST_CELLS)} for title, cells in sums.items()]
    return {"confusions": drawn, "order": confusion_order(Cells.sum(list(sums.values())))}


def _settings(methods: Sequence[Method]) -> dict[str, Any]:
    by_method = [{k: v for k, v in flat(method.runs[0].recipe).items() if k not in APART} for method in methods]
    names = dict.fromkeys(name for settings in by_method for name in settings)
    rows = {name: [setting_text(settings.get(name)) for settings in by_method] for name in names}
    return {
        "same": [[name, row[0]] for name, row in rows.items() if len(set(row)) == 1],
        "different": [[name, *row] for name, row in rows.items() if len(set(row)) > 1],
    }


def windows(log: Sequence[Record], most: int) -> list[list[Record]]:
    """The lines of the log in groups of neighbours, at most ``most`` groups."""
    size = -(-len(log) // most) if log else 1
    return [list(log[start : start + size]) for start in range(0, len(log), size)]


def curves(log: Sequence[Record]) -> dict[str, Any]:
    """Numbers during training, a list per name, None where a value is missing."""
    parts = windows(log, POINTS)
    names = list(dict.fromkeys(name for record in log for name in record["losses"]))
    measured = [part[-1] for part in windows([record for record in log if "health" in record], POINTS)]
    health = {name: [record["health"].get(name) for record in measured] for name in ("rank", "spread")}
    return {
        "step": [part[-1]["step"] for part in parts],
        "losses": {name: [_mean([record["losses"].get(name) for record in part]) for part in parts] for name in names},
        "pseudo_accuracy": [_right(part) for part in parts],
        **{
            name: [_mean([record.get(name) for record in part]) for part in parts]
            for name in ("kept", "pseudo_distance", "distance")
        },
        "measured": [[record["step"], record["accuracy"]] for record in log if "accuracy" in record],
        "health": {"step": [record["step"] for record in measured], **health} if measured else None,
    }


def stripes(log: Sequence[Record], classes: int, of: str) -> dict[str, Any] | None:
    """Shares of all classes through time, in times of an even share: of ``pseudo_labels``, or of the ``prior``, for
    which a run without one gives its mean prediction."""
    most = int(np.clip(STRIPES // classes, 8, 120))
    steps, values = [], []
    for part in windows(log, most):
        if of == "pseudo_labels":
            counts = np.sum([record[of] for record in part if of in record], axis=0, dtype=np.int64)
            shares = counts / counts.sum() if counts.any() else None
        else:
            shares = part[-1].get("prior") or part[-1].get("marginal")
        if shares is not None:
            steps.append(part[-1]["step"])
            values.append((np.asarray(shares) * classes).tolist())
    return {"step": steps, "times_even": values} if values else None


def _right(part: Sequence[Record]) -> float | None:
    known = sum(record.get("pseudo_known", 0) for record in part)
    return sum(record.get("pseudo_right", 0) for record in part) / known if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None
