"""benchmarks/tables.py: pages show its tables."""

from pathlib import Path

import pytest

from benchmarks import target
from benchmarks.tables import TABLES, compared

DOCS = Path(__file__).parent.parent.parent / "docs"


def page(name: str) -> str:
    (path,) = DOCS.rglob(name)  # pages may be sorted into folders
    return path.read_text()


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_pages_show_the_tables_that_the_results_give(name, table):
    assert f"<!-- table {table} -->\n\n{TABLES[name, table]()}\n" in page(name)


def test_the_figure_of_targets_is_that_of_the_results():
    assert (DOCS / "debiasing.svg").read_text() == target.figure()


def test_every_seed_of_a_difference_is_shown():
    assert compared([0.9, 0.8, 0.85], [0.8, 0.81, 0.8]) == "+4.7 (+10.0, -1.0, +5.0)"
