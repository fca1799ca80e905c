"""A branch ends where a run of its own ends, and what is not one run until pseudo-labels begin is refused."""

import json
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import branches
from benchmarks.fold import Fold
from debiaspl.recipes import recipe
from debiaspl.training import Recipe, train

# Averages that move, so that accuracy is not that of chance, and labels that are kept.
SETTINGS = ["steps=24", "log_every=8", "evaluate_every=12", "algorithm=contrastmatch", "labels_from=0.5"]
SETTINGS += ["threshold=0.4", "labeled_batch=8", "unlabeled_batch=16"]
SETTINGS += ["average_decay=0.5", "learning_rate=0.1", "momentum=0.5"]


def made(*settings: str) -> Recipe:
    return recipe("digits-10").with_settings([*SETTINGS, "seed=3", *settings])


def fold(first: Recipe, kept: Path | None = None) -> Fold:
    begun = Fold(first, time.time(), torch.device("cpu"))
    begun.common(8, kept)
    return begun


def own_run(settings: tuple[str, ...], out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    results = train(made(*settings), out)
    return results, [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_branch_is_the_run_of_its_own(tmp_path):
    begun = fold(made())
    variants = (), ("correction=none",), ("strength=2", "labeled_strength=1"), ("correction=tau-norm", "tau=2"), ()
    ends = []
    for number, settings in enumerate(variants):
        found = begun.variant(made(*settings))
        results, log = own_run(settings, tmp_path / f"run{number}")
        assert found["accuracy"] == results["accuracy"]
        assert found["recall"] == results["recall"]
        assert found["seconds"] >= found["training_seconds"] >= round(begun.seconds, 1)  # tenths: a short run has few
        assert [line["step"] for line in found["log"]] == [8, 12, 16, 24]
        for line, expected in zip(found["log"], log, strict=True):
            assert line["losses"] == {name: float(f"{loss:.4g}") for name, loss in expected["losses"].items()}
            if "pseudo_labels" in line:
                assert line["pseudo_labels"] == expected["pseudo_labels"]
            if "prior" in line:
                assert line["prior"] == [float(f"{share:.4g}") for share in expected["prior"]]
            assert ("accuracy" in line) == ("accuracy" in expected)
        # Of the common steps, a variant's own labels are not known.
        assert ("kept" in found["log"][0]) == (not settings)
        assert all("kept" in line for line in found["log"][1:])
        assert ("prior" in found["log"][-1]) == ("prior" in log[-1])
        ends.append((found["accuracy"], found["log"][-1]["losses"]["unlabeled"]))
    assert ends[0] == ends[-1]
    assert len(set(ends)) == 4
    assert ends[0][0] > 0.3


def test_the_accuracy_of_another_classifier_is_not_common():
    begun = fold(made("evaluate_every=8"))
    for settings, known in ((["correction=none"], True), (["correction=tau-norm"], False)):
        first = begun.variant(made("evaluate_every=8", *settings))["log"][0]
        assert ("accuracy" in first) == known


def test_common_steps_that_were_kept_are_those_of_this_recipe_alone(tmp_path):
    begun, again = fold(made(), tmp_path), fold(made(), tmp_path)
    assert again.seconds == begun.seconds
    assert again.variant(made("strength=2"))["log"] == begun.variant(made("strength=2"))["log"]
    assert fold(made("learning_rate=0.2"), tmp_path).seconds != begun.seconds


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        ("strength=0.5", "learning_rate=0.5", "changes learning_rate"),
        ("strength=0.5", "per_class=2", "changes protocol"),
        ("strength=0.5", "labels_from=0.4", "changes algorithm"),
        ("strength=0.5", "momentum=0.6", "differs from the first steps on, in algorithm.correction.prior"),
        ("correction=none", "strength=0.5", "has learned algorithm.correction.prior"),
    ],
)
def test_what_is_not_one_run_until_then_is_refused(first, other, words):
    begun = fold(made(first))
    with pytest.raises(SystemExit, match=words):
        begun.variant(made(other))


def test_a_loss_that_is_not_finite_ends_it():
    with pytest.raises(SystemExit, match="is not finite"):
        fold(made("learning_rate=1e30"))


@pytest.mark.slow
def test_the_command_writes_a_file_a_variant_and_repeats_nothing(tmp_path, monkeypatch):
    def in_this_process(options: Namespace, fold: int) -> None:
        branches.one_fold(Namespace(**{**vars(options), "fold": fold, "began": time.time()}))

    asked: list[str] = []
    original = Fold.variant
    monkeypatch.setattr(Fold, "variant", lambda self, chosen: asked.append(chosen.name) or original(self, chosen))
    monkeypatch.setattr(branches, "run", in_this_process)
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    variants = ["--variant", "digits-10", "--variant", "digits-10 strength=2"]
    program = ["branches.py", "--out", str(tmp_path), "--folds", "2", "--first", "3", "--commit", "none", *chosen]
    monkeypatch.setattr(sys, "argv", [*program, *variants])
    branches.main()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits-10-strength=2.json", "digits-10.json"]
    written = json.loads((tmp_path / "digits-10-strength=2.json").read_text())
    assert [found["fold"] for found in written["folds"]] == [3, 4]
    assert written["command"].endswith("--set momentum=0.5 --set strength=2 --set seed=3")
    assert written["common_with"] == "digits-10"
    assert written["recipe"] == made("strength=2").to_json()
    assert len(asked) == 4

    branches.main()
    assert len(asked) == 4
    monkeypatch.setattr(sys, "argv", [*program, *variants, "--variant", "digits-10 strength=1"])
    branches.main()
    assert len(asked) == 6
