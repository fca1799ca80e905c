"""A small version of the paper's experiment: supervised, FixMatch and DebiasPL with equal settings and seeds.

debiaspl demo
debiaspl demo --long-tail
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from debiaspl.files import write_json, write_text
from debiaspl.recipes import RECIPES, recipe
from debiaspl.recipes.folder import experiment_folder, timed
from debiaspl.report.comparison import Comparison
from debiaspl.report.runs import write_report
from debiaspl.training import Choice, Job, Recipe, train_all

BALANCED = replace(
    recipe("digits-10", method="debiaspl").changed(strength=2.0),
    name="digits-10-demo",
    about="digits, balanced, one label a class: DebiasPL, the demo's own strength",
)
"""digits-10 with a strength that was chosen on seeds 100 to 115, by accuracy on the unlabeled training images:
benchmarks/demo_settings.py."""

METHODS: dict[str, dict[str, Choice]] = {
    "supervised": {"algorithm": Choice("supervised"), "correction": Choice("none")},
    "fixmatch": {"correction": Choice("none")},
    "debiaspl": {},
}


def jobs_of(recipe: Recipe, seeds: Sequence[int], out: Path) -> dict[str, list[Job]]:
    """The runs of each method: one per seed, with recipes that differ only in the method."""
    jobs: dict[str, list[Job]] = {}
    for method, parts in METHODS.items():
        changed: dict[str, Any] = dict(parts)
        name = f"{recipe.name}-{method}"
        runs = [replace(recipe, name=f"{name}-seed{seed}", seed=seed, **changed) for seed in seeds]
        jobs[method] = [Job(run, out / f"{method}-seed{run.seed}") for run in runs]
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
    """Train the three methods and compare them; ``out`` then holds the runs, the table, ``report.html`` and
    ``results.json``.

    ``watch`` is called with the steps done and the total.
    """
    base = recipe("digits-lt20-10pct") if long_tail else BALANCED
    with experiment_folder(out, "demo", resume, overwrite):
        jobs = jobs_of(base, seeds, out)
        flat = [job for method in jobs.values() for job in method]
        ended, timing = timed(lambda done: train_all(flat, workers, done, go_on), flat, watch)
        results = iter(ended)
        comparison = Comparison(
            seeds, {method: [next(results) for _ in runs] for method, runs in jobs.items()}, "fixmatch"
        )
        summary = {"recipe": base.to_json(), **comparison.to_json(), "timing": timing}
        write_text(out / "table.md", comparison.to_markdown())
        write_report([job.out for job in flat], out / "report.html", RECIPES)
        write_json(out / "results.json", summary)
        return comparison
