"""benchmarks/tables.py: pages show its tables."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.tables import TABLES, compared

DOCS = Path(__file__).parent.parent.parent / "docs"


def page(name: str) -> str:
    (path,) = DOCS.rglob(name)  # pages may be sorted into folders
    return path.read_text()


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_pages_show_the_tables_that_the_results_give(name, table):
    assert f"<!-- table {table} -->\n\n{TABLES[name, table]()}\n" in page(name)


def test_a_difference_is_that_of_a_paired_t_test():
    ours, theirs = np.random.default_rng(0).normal(0.8, 0.05, (2, 6))
    low, high = ttest_rel(ours, theirs).confidence_interval(0.95)
    doubt = " n.s." if low <= 0 <= high else ""
    shown = f"{100 * (ours - theirs).mean():+.1f} ({100 * low:+.1f} to {100 * high:+.1f}){doubt}"
    better = f"{(ours > theirs).sum()} of 6"
    assert compared(ours, theirs) == [shown, f"{100 * (ours - theirs).min():+.1f}", better]


def test_seeds_that_all_differ_by_one_image_prove_nothing():
    assert compared([0.501] * 3, [0.5] * 3, finest=0.001)[0].endswith("n.s.")
