"""The report of runs as one page: the values that the page's script draws."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debiaspl._confusion import Cells
from debiaspl._shares import pseudo_measures
from debiaspl.files import write_text
from debiaspl.report.confusion import MOST_CLASSES, confusion_order, matrix_of
from debiaspl.report.pages import build_page, rounded, short_name
from debiaspl.report.pictures import images_in
from debiaspl.report.runs.curves import curves, mean_stages, stages, stripes
from debiaspl.report.runs.fairness import differences, place_of
from debiaspl.report.runs.methods import (
    APART,
    Known,
    Method,
    accuracy_interval,
    command_of,
    flat,
    methods_of,
    what_was_tested,
)
from debiaspl.report.runs.photos import compared_runs, is_of_photos, photo_values
from debiaspl.report.runs.record import RunRecord, read_run
from debiaspl.training import RunError

MOST_CELLS = 20_000
PHOTO_SIDE = 96
FROM_RESULTS = (
    *("accuracy", "evaluated", "worst_recall", "pseudo_accuracy"),
    *("unlabeled", "test", "versions", "timing"),
)


def write_report(folders: Sequence[Path], out: Path, known: Known, photos: Path | None = None) -> Path:
    """Write the report of these runs to ``out``.

    Args:
        folders: runs, ended or not.
        out: the page.
        known: recipes by name, for the commands that make the runs again.
        photos: the folder of the photos, to show some of them.
    """
    write_text(out, runs_page([read_run(folder) for folder in folders], known, photos))
    return out


def runs_page(runs: Sequence[RunRecord], known: Known, photos: Path | None = None) -> str:
    """One self-contained HTML page. That of one run on photos is for the person who took them; the charts of its
    training are folded. Photos are shown if their folder is given: one that a run names is not opened.
    """
    title = f"Run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs"
    if len(runs) == 1 and is_of_photos(runs[0]):
        values = photo_values(runs[0], _class_names(runs), None if photos is None else images_in(photos, PHOTO_SIDE))
        research = runs_values(compared_runs(runs[0]), known)
        return build_page(runs[0].name, values | {"kind": "photos", "research": research})
    return build_page(title, runs_values(runs, known))


def runs_values(runs: Sequence[RunRecord], known: Known) -> dict[str, Any]:
    """All that the page shows."""
    from debiaspl.report.findings.runs import run_findings  # which are about what this package reads

    names = _class_names(runs)
    methods = methods_of(runs)
    ended = [method for method in methods if method.ended()]
    return {
        "kind": "runs",
        "about": runs[0].recipe.about,
        "classes": [short_name(name) for name in names],
        "findings": [vars(finding) for finding in run_findings(methods, names)],
        "unfair": [{"what": one.what, "values": one.told()} for one in differences(methods)],
        "same_data": len({_data(run) for run in runs if run.results is not None}) < 2,
        "methods": [_method(method, methods) for method in methods],
        "runs": [_run(run, place, len(names), known) for place, method in enumerate(methods) for run in method.runs],
        **_confusions(ended),
        "settings": _settings(methods),
    }


def _class_names(runs: Sequence[RunRecord]) -> list[str]:
    """Class names from a run that has ended; until then, numbers."""
    sizes = {size for run in runs if (size := run.num_classes()) is not None}
    if len(sizes) > 1:
        raise RunError(
            f"these runs have {' and '.join(map(str, sorted(sizes)))} classes, expected as many in each: only runs on "
            "the same classes can be compared on one page."
        )
    told = next((run.classes for run in runs if run.classes), None)
    if told is not None:
        return list(told)
    return [f"class {number}" for number in range(next(iter(sizes), 0))]


def _method(method: Method, methods: Sequence[Method]) -> dict[str, Any]:
    baseline = next((other for other in methods if other.supervised and other is not method), None)
    recalls = [one["recall"] for one in method.ended()]
    return {
        "title": method.title,
        "supervised": method.supervised,
        "runs": len(method.runs),
        "accuracy": method.accuracy(),
        "unmeasured": not method.ended() and all(run.results is not None for run in method.runs),
        "to_supervised": None if baseline is None else method.difference(baseline),
        "worst_recall": method.over_seeds("worst_recall"),
        **_shares(method.pseudo("distance"), method.pseudo("almost_none"), method.reference()),
        "pseudo_accuracy": method.over_seeds("pseudo_accuracy"),
        "recall": _mean_recall(recalls) if recalls else None,
        "stages": mean_stages([stages(run.log) for run in method.runs]),
    }


def _data(run: RunRecord) -> tuple[Any, ...]:
    results = run.results or {}
    return place_of(run.recipe.data), sum(results.get("labels", [])), results.get("test")


def _mean_recall(recalls: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Over seeds, class by class; None for a class without test images."""
    columns = ([value for value in column if value is not None] for column in zip(*recalls, strict=True))
    return [rounded(statistics.fmean(values)) if values else None for values in columns]


def _run(run: RunRecord, method: int, classes: int, known: Known) -> dict[str, Any]:
    results = run.results or {}
    shares = pseudo_measures(results)
    return {
        "name": run.name,
        "method": method,
        "seed": run.recipe.seed,
        "ended": run.results is not None,
        "step": run.step,
        "steps": run.steps,
        **{name: results.get(name) for name in FROM_RESULTS},
        **_shares(shares.get("distance"), shares.get("almost_none"), shares.get("reference")),
        "interval": accuracy_interval(results),
        "labels": sum(results["labels"]) if "labels" in results else None,
        "tested": what_was_tested(results),
        "data": run.recipe.data,
        "seconds": run.log[-1]["seconds"] if run.log else None,
        "command": command_of(run.recipe, known),
        "curves": curves(run.log),
        "pseudo": stripes(run.log, classes, "pseudo_labels") if classes else None,
        "prior": stripes(run.log, classes, "prior") if classes else None,
        "has_prior": any("prior" in record for record in run.log[-1:]),
    }


def _shares(distance: float | None, almost_none: float | None, reference: str | None) -> dict[str, Any]:
    """Distance of the pseudo-labels of the second half from the shares they should have."""
    return {"pseudo_distance": distance, "pseudo_almost_none": almost_none, "pseudo_reference": reference}


def _confusions(ended: Sequence[Method]) -> dict[str, Any]:
    """One matrix a method, over its seeds, all in one order of classes."""
    sums = {method.title: method.cells for method in ended}
    if not sums or next(iter(sums.values())).classes > MOST_CLASSES:
        return {"confusions": [], "order": []}
    drawn = [{"title": title, "matrix": matrix_of(cells, MOST_CELLS)} for title, cells in sums.items()]
    return {"confusions": drawn, "order": confusion_order(Cells.sum(list(sums.values())))}


def _settings(methods: Sequence[Method]) -> dict[str, Any]:
    """Settings that all methods share, and those that differ."""
    by_method = [{k: v for k, v in flat(method.runs[0].recipe).items() if k not in APART} for method in methods]
    names = list(dict.fromkeys(name for settings in by_method for name in settings))
    values = {name: [_shown(settings.get(name)) for settings in by_method] for name in names}
    return {
        "same": [[name, found[0]] for name, found in values.items() if len(set(found)) == 1],
        "different": [[name, *found] for name, found in values.items() if len(set(found)) > 1],
    }


def _shown(value: Any) -> str:
    return "default" if value is None else value if isinstance(value, str) else json.dumps(value)
