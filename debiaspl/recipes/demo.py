"""A small version of the paper's experiment: supervised, FixMatch and DebiasPL with equal settings and seeds.

debiaspl demo
debiaspl demo --long-tail
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from debiaspl.recipes import recipe
from debiaspl.recipes.compare import compare, plan
from debiaspl.recipes.comparison import Comparison

BALANCED = replace(
    recipe("digits-10", method="debiaspl").changed(strength=2.0),
    name="digits-10-demo",
    about="digits, balanced, one label a class, with the demo's own strength",
)
"""digits-10 with a strength that was chosen on seeds 100 to 115, by accuracy on the unlabeled training images:
benchmarks/demo_settings.py."""

METHODS = ("supervised", "fixmatch", "debiaspl")


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
    """Train the three methods and compare them; ``out`` then holds the runs, the table and ``results.json``.
    ``watch`` is called with the steps done and the total."""
    planned = plan(recipe("digits-lt20-10pct") if long_tail else BALANCED, METHODS, seeds)
    return compare(planned, out, resume, overwrite, workers, watch, go_on, kind="demo", baseline="fixmatch")
