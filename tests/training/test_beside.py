"""Runs in which a self-supervised algorithm is trained beside another: settings, steps, resuming, ranks, refusals."""

import json
import re
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from debiaspl.algorithms import ALGORITHMS, STARTS, Models, Together
from debiaspl.data import FewLabels, LongTail, Task, load
from debiaspl.photos.choose import supervised
from debiaspl.training import Choice, Recipe, Run, RunError, train
from debiaspl.training import loop as loop_module
from debiaspl.training.frozen import check_frozen
from debiaspl.training.settings import settings
from debiaspl.training.step import Step
from tests.ranks import on_ranks
from tests.training.test_every_algorithm import bits, on, recipe_of, seen_by
from tests.training.test_ranks import RECIPE as FOR_RANKS
from tests.training.test_ranks import assert_close, in_float64, trained
from tests.training.test_stream import stop_at
from tests.training.tiny import EAGER, TINY, changed, log, outcome

SHORT = {"moco": ["beside.memory=64"], "swav": ["prototypes=12", "small_views=1"], "byol": ["hidden=16"], "simclr": []}
MOCO = changed(EAGER, "beside=moco", "beside.memory=64", "beside_weight=0.5", "beside_until=0.6")
LENGTH = 4
CREST = replace(
    MOCO,
    protocol=Choice("long-tail", {"gamma": 20.0, "labeled_fraction": 0.1}),
    algorithm=Choice("crest", {"threshold": 0.1, "joint": False, "generations": 3}),
    checkpoint_every=1,
)


def digits() -> Task:
    return Task.of(load("digits"), FewLabels(1), seed=0)


def step_of(recipe: Recipe, task: Task | None = None) -> Step:
    return Step(recipe, digits() if task is None else task, torch.device("cpu"))


# Settings.


def test_a_setting_that_two_parts_have_belongs_to_the_other_part():
    recipe = changed(EAGER, "algorithm=comatch", "beside=moco")
    assert {key: recipe.owner(key) for key in ("temperature", "memory", "beside.memory", "key_decay", "width")} == {
        "temperature": "algorithm",
        "memory": "algorithm",
        "beside.memory": "beside",
        "key_decay": "beside",
        "width": "network",
    }
    new = changed(recipe, "temperature=0.3", "beside.temperature=0.1", "key_decay=0.5")
    assert new.algorithm.settings["temperature"] == 0.3
    assert new.beside == Choice("moco", {"temperature": 0.1, "key_decay": 0.5})
    listed = {one.name: one for one in settings(new) if one.part == "beside"}
    assert listed.keys() == {"beside.width", "beside.temperature", "beside.memory", "key_decay"}
    assert (listed["beside.temperature"].value, listed["beside.temperature"].default) == (0.1, 0.2)


def test_a_recipe_is_written_and_read_again_and_one_without_the_fields_is_read():
    assert Recipe.from_json(json.loads(json.dumps(MOCO.to_json()))) == MOCO
    old = EAGER.to_json()
    for name in ("beside", "beside_weight", "beside_until"):
        del old[name]
    assert Recipe.from_json(old) == EAGER


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["beside=fixmatch"], "there is no beside named 'fixmatch'. There are byol, moco, none, simclr, swav."),
        (["beside.temperature=0.1"], "'beside.temperature': beside is none, which has none. Name the part before"),
        (["key_decay=0.5"], "has no setting 'key_decay'"),
        (["beside=moco", "beside.prototypes=9"], "beside is moco, which has key_decay, memory, temperature, width."),
        (["beside_weight=0"], "beside_weight is 0.0, expected a number above 0"),
        (["beside_until=-1"], "beside_until is -1.0, expected a number above 0"),
        (["beside_until=inf"], "beside_until is inf, expected a number above 0"),
    ],
)
def test_wrong_settings_are_refused_when_they_are_typed(typed, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        changed(EAGER, *typed)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["beside_weight=0.5"], "beside_weight is 0.5, but beside is none, so it has no effect. Leave it out, or name"),
        (["beside_until=0.5"], "beside_until is 0.5, but beside is none, so it has no effect."),
        (
            ["algorithm=moco", "correction=none", "beside=simclr"],
            "MoCo is self-supervised, and so is SimCLR beside it",
        ),
        (["beside=moco", "beside.temperature=0"], "temperature is 0.0, expected 0.001 or more"),
        (["beside=moco", "algorithm=supervised"], "Supervised makes no pseudo-labels, and Debiaser corrects nothing"),
    ],
)
def test_what_has_no_meaning_is_refused_before_anything_is_written(tmp_path, typed, words):
    with pytest.raises(ValueError, match=words):
        train(changed(TINY, *typed), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_settings_does_not_matter():
    assert changed(EAGER, "beside_weight=0.5", "beside=moco") == changed(EAGER, "beside=moco", "beside_weight=0.5")


@pytest.mark.parametrize("name", STARTS)
def test_features_of_a_frozen_encoder_cannot_be_trained(name):
    frozen = replace(EAGER, network=Choice("linear"), strong=Choice("hide"), average_statistics=False)
    words = f"{name}, beside fixmatch, cannot learn from the vectors of a frozen encoder: it trains the features"
    with pytest.raises(ValueError, match=words):
        check_frozen(changed(frozen, f"beside={name}"), digits())
    check_frozen(frozen, digits())


def test_the_supervised_baseline_of_photos_learns_from_labels_alone():
    assert supervised(MOCO) == supervised(EAGER)


# Steps.


@pytest.mark.parametrize("other", STARTS)
@pytest.mark.parametrize("main", ALGORITHMS)
def test_every_pair_takes_steps(main, other):
    step = step_of(changed(recipe_of(main), f"beside={other}", *SHORT[other]))
    own = {name: value.clone() for name, value in step.algorithm.other.named_parameters()}
    step(0)
    assert int(step.first_bad_step) == -1
    losses = {name for name in step.monitor.sums if name.startswith("losses/")}
    assert "losses/labeled" in losses
    assert [name for name in losses if name.startswith("losses/beside_")]
    assert all(not torch.equal(value, own[name]) for name, value in step.algorithm.other.named_parameters())


@pytest.mark.parametrize("teacher", ["auto", "student", "average"])
def test_who_labels_is_the_recipes_matter_and_the_other_one_learns_from_the_average(teacher):
    step = step_of(changed(MOCO, f"teacher={teacher}"))
    models, batch = seen_by(step, 0)
    labels = step.average.model if teacher == "average" else step.student
    assert models.teacher is labels
    seen = []
    step.algorithm.other.losses = lambda given, views: seen.append((given, views)) or {}
    step.algorithm.losses(models, batch)
    ((given, views),) = seen
    assert (given.student, given.teacher) == (step.student, step.average.model)
    assert views.strong == batch.strong[1:]
    assert len(views.strong) == 2
    assert views.weak == ()


def test_nothing_beside_is_the_run_of_before():
    """And the heads of an algorithm begin with the same weights, whatever is trained beside it."""
    alone, both = step_of(changed(EAGER, "algorithm=comatch")), step_of(changed(MOCO, "algorithm=comatch"))
    assert not isinstance(alone.algorithm, Together)
    first = alone.algorithm.projection[0].weight
    assert torch.equal(first, both.algorithm.main.projection[0].weight)
    assert {name for name in both.state() if name not in alone.state()} >= {
        "algorithm.main.correction.prior",
        "algorithm.other.contrast.remembered",
    }


def test_the_log_and_the_results_tell_it(tmp_path):
    results = train(replace(MOCO, log_every=1), tmp_path / "run")
    assert results["mode"] == "faithful, separate, beside moco"
    assert train(EAGER, tmp_path / "alone")["mode"] == "faithful, separate"
    shares = [line["losses"]["beside_contrast"] for line in log(tmp_path / "run")]
    assert all(share > 0 for share in shares[:8])
    assert shares[8:] == [0.0] * 4  # of 12 steps, the weight is 0 after 0.6
    assert Run(tmp_path / "run").recipe() == MOCO.with_settings(["log_every=1"])
    assert {"pseudo_labels", "kept", "prior"} <= log(tmp_path / "run")[-1].keys()


def test_a_batch_is_computed_in_pieces():
    """Each piece has its part of all views. The correction learns once, from all pieces; the memory takes all in."""
    step = step_of(changed(MOCO, "accumulate=2", "correction.momentum=0.5"))
    marginals = []
    original = step.algorithm.losses

    def watched(models, batch):
        assert {len(view) for view in (*batch.weak, *batch.strong)} == {MOCO.unlabeled_batch // 2}
        losses = original(models, batch)
        marginals.append(step.algorithm.monitors["marginal"])
        return losses

    step.algorithm.losses = watched
    step(0)
    assert int(step.first_bad_step) == -1
    assert len(marginals) == 2
    torch.testing.assert_close(step.algorithm.correction.prior, 0.05 + 0.5 * torch.stack(marginals).mean(0))
    assert not torch.allclose(*marginals, atol=1e-3)  # two halves that differ: learning twice would show
    assert int(step.algorithm.other.contrast.written) == 2 * MOCO.unlabeled_batch


def test_the_step_depends_on_no_value_and_no_device(monkeypatch):
    """As the test of the same name does for single algorithms."""
    monkeypatch.setattr(torch, "autocast", lambda *arguments, **options: nullcontext())
    for other in STARTS:
        step = step_of(changed(EAGER, f"beside={other}", *SHORT[other]))
        _, batch = seen_by(step, 0)
        student, algorithm = deepcopy(step.student).to("meta"), deepcopy(step.algorithm).to("meta")
        losses = algorithm.losses(Models(student, student, deepcopy(student)), on("meta", batch))
        assert all(value.is_meta for value in losses.values())


def test_the_same_step_from_the_same_state_gives_the_same_bits():
    for other in STARTS:
        step = step_of(changed(EAGER, f"beside={other}", *SHORT[other]))
        for number in range(3):
            step(number)
        state = {key: value.clone() for key, value in step.state().items()}
        found = []
        for _ in range(2):
            step.load({key: value.clone() for key, value in state.items()})
            step(3)
            found.append(bits(step.state()))
            step(4)
        assert found[0] == found[1] != bits(state)


# Runs.


@pytest.mark.slow
@pytest.mark.parametrize("other", STARTS)
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, monkeypatch, other):
    recipe = changed(EAGER, "algorithm=comatch", f"beside={other}", "beside_until=0.8", *SHORT[other])
    train(recipe, tmp_path / "whole")
    stop_at(monkeypatch, 6)
    with pytest.raises(RunError, match="stopped for the test"):
        train(recipe, tmp_path / "run")
    monkeypatch.undo()
    train(recipe, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    with pytest.raises(RunError, match=r"another recipe \(beside_until: 0.8 then, 0.7 now\)"):
        train(changed(recipe, "beside_until=0.7"), tmp_path / "run", resume=True)


def test_scrambled_truth_of_unlabeled_images_changes_no_weight_and_no_loss(tmp_path, monkeypatch):
    train(MOCO, tmp_path / "honest")
    original = loop_module.task_of

    def scrambled(*arguments):
        honest = original(*arguments)
        return replace(honest, unlabeled=replace(honest.unlabeled, truth=(honest.unlabeled.truth + 1) % 10))

    monkeypatch.setattr(loop_module, "task_of", scrambled)
    train(MOCO, tmp_path / "scrambled")
    honest, lied = outcome(tmp_path / "honest"), outcome(tmp_path / "scrambled")
    assert honest[0] == lied[0]
    assert [line["losses"] for line in honest[2]] == [line["losses"] for line in lied[2]]
    assert [line["pseudo_accuracy"] for line in honest[2]] != [line["pseudo_accuracy"] for line in lied[2]]


def test_every_generation_begins_with_new_heads_and_the_whole_weight():
    step = step_of(CREST, Task.of(load("digits"), LongTail(gamma=20.0, labeled_fraction=0.1), seed=0))
    first = {name: value.clone() for name, value in step.algorithm.other.state_dict().items()}
    seen = []
    original = step.algorithm.losses

    def watched(models, batch):
        state = {name: value.clone() for name, value in step.algorithm.other.state_dict().items()}
        seen.append((float(batch.progress), state, original(models, batch)))
        return seen[-1][2]

    step.algorithm.losses = watched
    for number in range(3 * LENGTH):
        step(number)
    for number, (progress, state, losses) in enumerate(seen):
        begins = number % LENGTH == 0
        assert (progress == 0) == begins
        assert (bits(state) == bits(first)) == begins
        assert (losses["beside_contrast"].item() > 0) == (progress < 0.6)
    assert (step.adopted >= 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [LENGTH, LENGTH + 2])
def test_a_run_stopped_in_a_later_generation_ends_with_the_same_bits(tmp_path, monkeypatch, stop):
    train(CREST, tmp_path / "whole")
    stop_at(monkeypatch, stop)
    with pytest.raises(RunError, match="stopped for the test"):
        train(CREST, tmp_path / "run")
    monkeypatch.undo()
    train(CREST, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


# Ranks.


def for_ranks(*typed: str) -> Recipe:
    return changed(FOR_RANKS, "synchronise_norm=true", "beside_until=0.3", *typed)


@pytest.mark.slow
@pytest.mark.parametrize("other", ["moco", "swav"])
def test_ranks_compute_what_one_process_computes(other):
    recipe = for_ranks(f"beside={other}", *SHORT[other])
    if other == "moco":
        recipe = changed(recipe, "beside.memory=96")
    alone, together = in_float64(recipe, 20), on_ranks(2, in_float64, recipe, 20)
    assert_close(together[0]["state"], alone["state"], 2, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("other", STARTS)
def test_all_ranks_hold_the_same_bits(other):
    recipe = replace(for_ranks(f"beside={other}", *SHORT[other]), synchronise_norm=False)
    first, second = on_ranks(2, trained, recipe, 20)
    for name, value in first["state"].items():
        if not name.startswith("monitor."):
            assert value.equal(second["state"][name]), name
