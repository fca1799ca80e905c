"""Features are measured on the way: the same sample, nothing disturbed, and a warning if they collapse."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from debiaspl.data import FewLabels, LazyImages, Task, load
from debiaspl.data.open import read_place, with_test_set
from debiaspl.models import scale
from debiaspl.report.runs import read_run, runs_values
from debiaspl.training import Recipe, RunError, monitor, train
from debiaspl.training.group import ALONE
from debiaspl.training.monitor import SAMPLE, Health, effective_rank, interval, sample, spread, verdict
from debiaspl.training.step import Step
from tests.data.photos import write_folder
from tests.ranks import on_ranks
from tests.reference import spread as slow
from tests.training.test_shared_evaluation import Counted
from tests.training.test_stream import recipe as of_photos
from tests.training.tiny import EAGER, TINY, changed, log, outcome, results, train_until

START = changed(TINY, "algorithm=moco", "correction=none", "memory=32", "per_class=2")
CPU = torch.device("cpu")
NAMES = {"rank", "spread"}


def made(recipe: Recipe = START, per_class: int = 2) -> Step:
    return Step(recipe, Task.of(load("digits"), FewLabels(per_class), recipe.seed), CPU)


def test_twenty_times_where_features_alone_are_learned_and_never_elsewhere():
    assert interval(replace(START, steps=600), learns_labels=False) == 30
    assert interval(replace(START, steps=39), learns_labels=False) == 2
    assert interval(START, learns_labels=False) == 1
    assert interval(START, learns_labels=True) == 0
    assert interval(replace(START, health_every=-1), learns_labels=False) == 0
    assert interval(replace(START, health_every=5), learns_labels=True) == 5
    with pytest.raises(ValueError, match="health_every"):
        changed(TINY, "health_every=-2")


def test_it_is_measured_before_the_first_step_at_its_steps_and_after_the_last(tmp_path):
    train(changed(START, "health_every=5"), tmp_path / "run")
    lines = log(tmp_path / "run")
    assert [line["step"] for line in lines] == [0, 5, 10, 12]
    assert all(line["health"].keys() == NAMES for line in lines)
    assert all(math.isfinite(value) for line in lines for value in line["health"].values())
    assert lines[0]["losses"] == {}
    told = results(tmp_path / "run")["health"]
    assert told == {"first": {"step": 0, **lines[0]["health"]}, "last": {"step": 12, **lines[-1]["health"]}}
    assert lines[0]["health"] != lines[-1]["health"]


@pytest.mark.parametrize("recipe", [START, EAGER], ids=["moco", "fixmatch"])
def test_no_bit_of_the_training_changes(tmp_path, recipe):
    train(changed(recipe, "health_every=-1"), tmp_path / "never")
    train(changed(recipe, "health_every=1"), tmp_path / "always")
    never, always = outcome(tmp_path / "never"), outcome(tmp_path / "always")
    assert (never[0], never[3]) == (always[0], always[3])
    assert not any("health" in line for line in never[2])


def test_the_numbers_are_those_of_the_averaged_model_on_the_sample():
    step = made()
    step(0)
    measured = Health(step, ALONE, []).measure({"step": 1, "losses": {}})["health"]
    chosen = torch.randperm(len(step.task.unlabeled), generator=torch.Generator().manual_seed(0))[:SAMPLE].sort().values
    with torch.no_grad():
        features = step.average.model.embed(scale(step.task.unlabeled.images[chosen])).double().tolist()
    assert measured["rank"] == pytest.approx(slow.effective_rank(features), rel=1e-4)
    assert measured["spread"] == pytest.approx(slow.spread(features), rel=1e-4)
    assert sample(step.task.unlabeled, 0).ids != sample(step.task.unlabeled, 1).ids


def test_features_that_are_not_numbers_stop_the_run():
    step = made()
    next(step.average.model.parameters()).data.fill_(math.nan)
    with pytest.raises(RunError, match="features"):
        Health(step, ALONE, []).measure({"step": 0, "losses": {}})


def test_files_are_read_once_and_those_that_are_bad_left_out(tmp_path):
    data = write_folder(tmp_path / "data")
    bad = data / "china" / "0003.jpg"
    bad.write_bytes(b"\xff\xd8\xff broken")
    recipe = replace(of_photos(data, stream=True), algorithm=START.algorithm, correction=START.correction)
    images = read_place(data, 16)
    assert isinstance(images.images, LazyImages)
    counted = Counted(images.images.files, [])
    images = replace(images, images=replace(images.images, files=counted))
    step = Step(recipe, Task.of(with_test_set(images), FewLabels(2), 0), CPU)
    counted.opened.clear()
    health = Health(step, ALONE, [])
    first = health.measure({"step": 0, "losses": {}})["health"]
    reads = len(counted.opened)
    assert reads <= len(images)
    assert health.measure({"step": 1, "losses": {}})["health"] == first
    assert len(counted.opened) == reads
    assert all(math.isfinite(first[name]) for name in NAMES)


def looked(recipe: Recipe) -> list[dict[str, Any]]:
    step = made(recipe)
    health = Health(step, ALONE, [])
    found = [health.measure({"step": 0, "losses": {}})]
    step(0)
    return [*found, health.measure({"step": 1, "losses": {"contrast": 1.0}})]


@pytest.mark.slow
def test_several_ranks_measure_what_one_process_does():
    recipe = changed(START, "synchronise_norm=true")
    alone = looked(recipe)
    together = on_ranks(2, looked, recipe)
    assert together[0] == together[1]
    assert together[0][0] == alone[0]  # random weights: the same bits
    assert together[0][1]["health"] == pytest.approx(alone[1]["health"], rel=1e-3, abs=1e-3)


STEPS = 1000


def history(loss: tuple[float, float] = (6.0, 4.0), **lists: list[float]) -> list[Any]:
    """Twenty-one measurements, the first before training: healthy, but for the lists that are given, which go on with
    their last number."""
    healthy = {"rank": [25, 20, 24, 28, 28, 25, 23, 22, 21], "spread": [0.3, 0.1, 0.2, 0.4, 0.5, 0.6]}
    values = {name: [*given, *[given[-1]] * 21][:21] for name, given in (healthy | lists).items()}
    records = []
    for number in range(21):
        now = loss[0] + (loss[1] - loss[0]) * number / 20
        losses = {"contrast": now} if number else {}
        health = {name: given[number] for name, given in values.items()}
        records.append({"step": 50 * number, "losses": losses, "health": health})
    return records


def warnings(records: list[Any], classes: int = 0) -> list[tuple[int, str]]:
    """Every warning on the way, with its measurement's number."""
    after = [verdict(records[: number + 1], STEPS, classes) for number in range(len(records))]
    return [(number, one["kind"]) for number, one in enumerate(after) if one is not None]


def test_a_healthy_run_has_no_warning():
    assert warnings(history()) == []
    assert warnings(history(rank=[40, 20])) == [], "the fall from random weights"
    assert warnings(history()[5:]) == []


def test_features_that_become_alike_have_collapsed():
    records = history(spread=[0.3, 0.3, 0.2, 0.1, 0.01])
    assert warnings(records)[0] == (6, "collapsed")  # when it was seen three times
    assert "spread is 0.01" in verdict(records, STEPS)["fact"]
    assert warnings(history(spread=[0.3, 0.01, 0.01, 0.2])) == []  # the first steps move features far, and back
    assert warnings(history(spread=[*[0.4] * 10, 0.01, 0.01, 0.4])) == []  # and two are not three
    assert warnings(history(spread=[0.3, 0.01])[5:])[0][1] == "collapsed"


def test_features_that_lose_their_directions_have_collapsed():
    kinds = dict(warnings(history(rank=[25, 20, 10, 4.9])))
    assert kinds[4] == "collapsing"
    assert {kinds[number] for number in range(5, 21)} == {"collapsed"}
    assert warnings(history(rank=[25, 20, 20, 20, 0])) == [(number, "collapsed") for number in range(6, 21)]


def test_features_that_labels_are_learned_with_may_shrink_to_a_direction_for_each_class():
    shrunk = history(rank=[100, 80, 60, 40, 20, 9])
    assert warnings(shrunk)[-1] == (20, "collapsed")
    assert warnings(shrunk, classes=10) == []
    assert warnings(history(rank=[100, 80, 60, 40, 20, 4.4]), classes=10)[0] == (7, "collapsed")
    assert warnings(history(rank=[100, 80, 60, 40, 20, 1]), classes=2) == []


def test_a_rank_that_goes_on_falling_is_a_slow_collapse():
    falling = [26, 19, 20.4, 18.3, 15.2, 13.8, 13.1, 12.6, 12.3, 12.0, 11, 10, 9]
    records = history(rank=falling)
    assert warnings(records)[0] == (12, "collapsing")
    assert "from 20.4 at step 100 to 9.0" in verdict(records, STEPS)["fact"]
    assert warnings(history(rank=[26, 19, 20.4, 12, 12, 16])) == [], "one that recovers"


def test_measurements_close_together_must_agree_for_a_tenth_of_the_run():
    """With one for every step, three steps are a moment."""
    records = [
        {"step": step, "losses": {"contrast": 1.0}, "health": record["health"] | {"spread": 0.01 if low else 0.5}}
        for step, low, record in ((step, 40 <= step < 48, history()[-1]) for step in range(101))
    ]
    assert not any(verdict(records[: number + 1], 100) for number in range(101))


@pytest.mark.parametrize(("rows", "width"), [(12, 5), (5, 12), (7, 7)])
def test_every_measure_is_its_definition(rows, width):
    """Of directions of different lengths, away from the origin."""
    drawn = torch.randn(rows, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = drawn * torch.linspace(0.1, 3, width, dtype=torch.float64) + 1
    assert effective_rank(made) == pytest.approx(slow.effective_rank(made.tolist()), rel=1e-6)
    assert spread(made) == pytest.approx(slow.spread(made.tolist()), rel=1e-6)


def test_features_that_are_all_alike():
    alike = torch.full((6, 4), 0.5)
    assert effective_rank(alike) == 0
    assert spread(alike) == pytest.approx(0, abs=1e-12)
    assert spread(torch.zeros(6, 4)) == 0  # a direction that is nowhere


def test_a_warning_is_told_in_the_log_the_results_the_terminal_and_the_report(tmp_path, capsys, monkeypatch):
    said = {"kind": "collapsing", "fact": "The features are collapsing."}
    monkeypatch.setattr(monitor, "verdict", lambda history, *_: said if history[-1]["step"] >= 6 else None)
    recipe = changed(START, "health_every=3", "algorithm.temperature=0.3")
    train(recipe, tmp_path / "whole")
    told = capsys.readouterr().err
    train_until(8, recipe, tmp_path / "run")  # the warning is in the log, and in the checkpoint that it goes on from
    train(recipe, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    (warning,) = results(tmp_path / "whole")["warnings"]
    assert warning == {"step": 6, **said, "todo": warning["todo"]}
    assert "temperature" in warning["todo"]
    assert [line["step"] for line in log(tmp_path / "whole") if "warning" in line] == [6]
    assert told == f"warning: tiny, step 6: {warning['fact']} {warning['todo']}\n"  # and said once
    page = runs_values([read_run(tmp_path / "whole")])
    assert [page["findings"][0][name] for name in ("part", "fact")] == ["health", warning["fact"]]
    assert page["runs"][0]["curves"]["health"]["step"] == [0, 3, 6, 9, 12]


@pytest.mark.slow(seconds=20)
def test_a_whole_collapse_is_told(tmp_path, capsys):
    """A labeled image a step at a high learning rate: in the end all images are alike. Labels count for nothing beside
    a contrast from which as good as all pseudo-labels are kept away."""
    settings = ("algorithm=contrastmatch", "labels_from=0.99", "relations=1", "relation_temperature=0.02")
    sizes = ("unlabeled_batch=128", "labeled_batch=1", "network.width=8", "per_class=10", "steps=200")
    average = ("average_decay=0.95", "average_statistics=true", "correction=none", "checkpoint_every=100")
    recipe = changed(TINY, *settings, *sizes, *average, "learning_rate=0.2", "health_every=10")
    bad = train(recipe, tmp_path / "bad")
    assert bad["warnings"][-1]["kind"] == "collapsed"
    assert len(bad["warnings"]) == capsys.readouterr().err.count("warning: ") <= 2
