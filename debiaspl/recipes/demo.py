"""The paper's point in small: supervised, FixMatch and DebiasPL, the same settings and seeds, on embedded real data.

debiaspl demo
debiaspl demo --long-tail
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from debiaspl.recipes.digits import LONG_TAIL, ONE_LABEL
from debiaspl.report import Comparison, compare, draw_comparison, require_matplotlib
from debiaspl.training import Choice, Job, Recipe, RunError, train_all
from debiaspl.training.files import write_json, write_text

METHODS: dict[str, dict[str, Choice]] = {
    "supervised": {"algorithm": Choice("supervised"), "correction": Choice("none")},
    "FixMatch": {"correction": Choice("none")},
    "DebiasPL": {},
}


def jobs_of(recipe: Recipe, seeds: Sequence[int], out: Path) -> dict[str, list[Job]]:
    """The runs of each method: one per seed, the same recipe but for the method."""
    jobs: dict[str, list[Job]] = {}
    for method, parts in METHODS.items():
        changed: dict[str, Any] = dict(parts)
        name = f"{recipe.name}-{method.lower()}"
        runs = [replace(recipe, name=f"{name}-seed{seed}", seed=seed, **changed) for seed in seeds]
        jobs[method] = [Job(run, out / f"{method.lower()}-seed{run.seed}") for run in runs]
    return jobs


def demo(
    out: Path,
    seeds: Sequence[int],
    long_tail: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    watch: Callable[[int, int], None] = lambda done, total: None,
    go_on: str = "demo(..., resume=True)",
) -> Comparison:
    """Train the three methods and compare them; ``out`` then holds the runs, the table, a figure and ``results.json``.

    ``watch`` is told steps done and steps in all.
    """
    require_matplotlib()
    recipe = LONG_TAIL if long_tail else ONE_LABEL
    _prepare(out, resume, overwrite)
    jobs = jobs_of(recipe, seeds, out)
    flat = [job for method in jobs.values() for job in method]
    total = sum(job.recipe.steps for job in flat)
    started = time.monotonic()
    ended = train_all(flat, workers, lambda steps: watch(steps, total), go_on)
    seconds = time.monotonic() - started

    results = iter(ended)
    comparison = compare(seeds, {method: [next(results) for _ in runs] for method, runs in jobs.items()}, "FixMatch")
    draw_comparison(comparison, out / "comparison.png")
    timing = {"seconds": round(seconds, 1), "seconds_of_runs": sum(run["timing"]["seconds"] for run in ended)}
    summary = {"recipe": recipe.to_json(), **comparison.to_json(), "timing": timing}
    write_text(out / "table.md", comparison.to_markdown())
    write_json(out / "results.json", summary)
    return comparison


def _prepare(out: Path, resume: bool, overwrite: bool) -> None:
    """A folder that is free, or the demo's own."""
    mark = out / ".demo"
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or a name that is free. Choose another --out.")
    if out.exists() and any(out.iterdir()):
        if not mark.exists():
            raise RunError(f"{out} is not empty and holds no demo. Choose another --out.")
        if overwrite:
            # Renamed first: a kill while it is being deleted must not leave half of a demo under its name.
            old = out.with_name(f".{out.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            out.replace(old)
            shutil.rmtree(old)
        elif not resume:
            raise RunError(f"{out} already holds a demo. Go on with it: --resume. Begin it anew: --overwrite.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise RunError(f"could not write {out}: {error.strerror}. Choose another --out.") from error
