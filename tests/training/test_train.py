"""Whole runs: what they learn from, and that they are the same bits where they must be."""

import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn

from debiaspl.data import FewLabels, IndexStream, Task, load
from debiaspl.training import loop as loop_module, train
from debiaspl.training.step import Step
from tests.training.tiny import EAGER, TINY, changed, log, outcome
from tests.typed import rows_of


def test_a_run_leaves_a_complete_folder(tmp_path):
    returned = train(TINY, tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")}
    assert names == {"config.json", "log.jsonl", "checkpoint", "model.safetensors", "predictions.csv", "results.json"}
    assert [line["step"] for line in log(tmp_path / "run")] == [5, 10, 12]
    assert returned["recipe"] == TINY.to_json()
    rows = rows_of(tmp_path / "run" / "predictions.csv")
    assert len(rows) == 500
    right = sum(row["label"] == row["truth"] for row in rows)
    assert returned["accuracy"] == pytest.approx(right / 500)
    assert returned["worst_recall"] == min(returned["recall"])
    assert sum(map(sum, returned["confusion"])) == 500
    assert returned["labels"] == [1] * 10


def test_the_same_recipe_gives_the_same_bits_and_another_seed_others(tmp_path):
    """And the user's own random numbers neither matter nor change."""
    drawn = torch.get_rng_state()
    train(EAGER, tmp_path / "a")
    assert torch.equal(torch.get_rng_state(), drawn)
    torch.rand(7)
    train(EAGER, tmp_path / "b")
    train(changed(EAGER, "seed=1"), tmp_path / "c")
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")
    assert outcome(tmp_path / "a")[0] != outcome(tmp_path / "c")[0]


def test_strength_zero_is_fixmatch_bit_for_bit_over_a_whole_run(tmp_path):
    """Defect 10: a strength of 0 that is not FixMatch because something else differs."""
    train(changed(EAGER, "strength=0"), tmp_path / "debiaspl")
    train(changed(EAGER, "correction=none"), tmp_path / "fixmatch")
    train(EAGER, tmp_path / "debiased")
    zero, fixmatch, debiased = (outcome(tmp_path / name)[0] for name in ("debiaspl", "fixmatch", "debiased"))
    assert zero == fixmatch
    assert debiased != fixmatch


def test_weights_change_and_accuracy_beats_chance(tmp_path):
    """Defect 9: a public fit that never calls backward."""
    size = {"labeled_batch": 32, "width": 8, "per_class": 4}
    recipe = TINY.changed(steps=150, learning_rate=0.1, average_statistics=True, **size)
    assert train(recipe, tmp_path / "run")["accuracy"] > 0.3  # chance is 0.10; ten seeds gave 0.49 to 0.84
    untrained = Step(TINY, task(), torch.device("cpu")).student.state_dict()
    trained = outcome(tmp_path / "run")[0]
    assert all(untrained[name].numpy().tobytes() != trained[name] for name in ("head.weight", "features.0.weight"))


def task() -> Task:
    return Task.of(load("digits"), FewLabels(1), seed=0)


def test_pseudo_label_accuracy_is_measured_against_the_truth():
    """Defect 7: measured against the pseudo-labels themselves, it would always be 1."""
    step = Step(EAGER, task(), torch.device("cpu"))
    truth_free = replace(step.task.unlabeled, truth=torch.full_like(step.task.unlabeled.truth, -1))
    stream = IndexStream(len(step.task.unlabeled), EAGER.unlabeled_batch, seed=2 * EAGER.seed + 1)
    expected_right = expected_kept = 0
    for number in range(3):
        positions = stream[number]
        step(number)
        kept, label = step.algorithm.monitors["kept"], step.algorithm.monitors["pseudo_label"]
        for place, position in enumerate(positions.tolist()):
            if kept[place]:
                expected_kept += 1
                expected_right += int(label[place] == step.task.unlabeled.truth[position])
    record = step.monitor.summary()
    assert record["pseudo_accuracy"] == pytest.approx(expected_right / expected_kept)
    assert sum(record["pseudo_labels"]) == expected_kept
    step.task = replace(step.task, unlabeled=truth_free)
    step(3)
    assert step.monitor.summary()["pseudo_accuracy"] is None


def test_only_the_last_averaged_model_is_reported(tmp_path):
    """Defect 8: the best epoch chosen on the test set."""
    watched = train(changed(TINY, "evaluate_every=4"), tmp_path / "watched")
    assert watched["accuracy"] == train(TINY, tmp_path / "plain")["accuracy"]
    assert "averaged weights after the last step" in watched["evaluated"]
    assert [line["step"] for line in log(tmp_path / "watched") if "accuracy" in line] == [4, 8, 12]


def test_a_step_that_is_let_go_is_gone_at_once():
    """One that refers to itself would keep the processes that read its images, and a program would wait for them at
    its end."""
    step = Step(TINY, task(), torch.device("cpu"))
    step(0)
    seen = weakref.ref(step)
    del step
    assert seen() is None


def test_classes_of_an_image_set_reach_the_predictions(tmp_path):
    names = tuple(f'"{number}", ü' for number in range(10))
    renamed = task().with_sets(lambda images: replace(images, classes=names))
    train(changed(TINY, "steps=1"), tmp_path / "run", renamed)
    assert {row["truth"] for row in rows_of(tmp_path / "run" / "predictions.csv")} == set(names)


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_step(tmp_path, monkeypatch):
    calls = iter(range(100))
    original = nn.functional.cross_entropy

    def poisoned(*arguments, **options):
        value = original(*arguments, **options)
        return value * float("nan") if next(calls) == 2 * 9 else value  # two losses a step: step 9

    monkeypatch.setattr("debiaspl.algorithms.fixmatch.F.cross_entropy", poisoned)
    with pytest.raises(loop_module.RunError, match=r"step 9.*step 8"):
        train(TINY, tmp_path / "run")
    assert [path.name for path in sorted((tmp_path / "run" / "checkpoint").iterdir())] == [
        "step-000000004.safetensors",
        "step-000000008.safetensors",
    ]
    assert not (tmp_path / "run" / "results.json").exists()
    monkeypatch.undo()
    train(TINY, tmp_path / "run", resume=True)
    train(TINY, tmp_path / "never-poisoned")
    assert outcome(tmp_path / "run") == outcome(tmp_path / "never-poisoned")
