"""A branch ends where a run of its own ends, and recipes that are not one from the first step on are refused."""

import json
import time
from pathlib import Path

import pytest
import torch

from benchmarks.branches import Fold
from debiaspl.recipes import recipe
from debiaspl.training import Recipe, train

SETTINGS = ("steps=24", "log_every=8", "evaluate_every=16", "algorithm=contrastmatch", "labels_from=0.5")
SETTINGS += ("threshold=0.1", "joint=false", "seed=3", "labeled_batch=8", "unlabeled_batch=16")


def made(*settings: str) -> Recipe:
    return recipe("digits-10").with_settings([*SETTINGS, *settings])


def fold(first: Recipe, kept: Path | None = None) -> Fold:
    begun = Fold(first, time.time(), torch.device("cpu"))
    begun.common(12, kept)
    return begun


def test_a_branch_is_the_run_of_its_own(tmp_path):
    begun = fold(made(), tmp_path / "kept")
    # What was kept is not trained again, and goes on to the same end.
    again = fold(made(), tmp_path / "kept")
    assert again.seconds == begun.seconds
    ends = []
    for number, settings in enumerate(((), ("correction=none",), ("strength=2", "labeled_strength=1"))):
        found = (again if number else begun).variant(made(*settings))
        results = train(made(*settings), tmp_path / f"run{number}")
        log = [json.loads(line) for line in (tmp_path / f"run{number}" / "log.jsonl").read_text().splitlines()]
        assert found["accuracy"] == results["accuracy"]
        assert found["recall"] == results["recall"]
        assert [line["step"] for line in found["log"]] == [8, 16, 24]
        for line, expected in zip(found["log"], log, strict=True):
            assert line["losses"] == {name: float(f"{loss:.4g}") for name, loss in expected["losses"].items()}
        assert found["log"][-1]["pseudo_labels"] == log[-1]["pseudo_labels"]
        ends.append(found["log"][-1]["losses"]["unlabeled"])
    assert len(set(ends)) == 3


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        ("strength=0.5", "learning_rate=0.5", "differs from the first steps on"),
        ("strength=0.5", "momentum=0.5", "differs from the first steps on, in algorithm.correction.prior"),
        ("correction=none", "strength=0.5", "has learned algorithm.correction.prior"),
    ],
)
def test_what_is_not_one_from_the_first_step_on_is_refused(first, other, words):
    begun = Fold(made(first), time.time(), torch.device("cpu"))
    with pytest.raises(SystemExit, match=words):
        begun._check(made(other))
