"""Real runs, trained once for all tests of the report: three methods, two seeds, a second each."""

from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl.training import Choice, train
from tests.report.chromium import Chromium
from tests.training.tiny import EAGER

PARTS = {
    "supervised": {"algorithm": Choice("supervised"), "correction": Choice("none")},
    "fixmatch": {"correction": Choice("none")},
    "debiaspl": {},
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    """A folder of runs called METHOD-seedN."""
    folder = tmp_path_factory.mktemp("runs")
    for method, parts in PARTS.items():
        for seed in range(2):
            recipe = replace(EAGER, name=f"digits-10-{method}-seed{seed}", seed=seed, evaluate_every=6, **parts)
            train(recipe, folder / f"{method}-seed{seed}")
    return folder


@pytest.fixture(scope="session")
def chromium():
    with Chromium() as browser:
        yield browser
