"""What the classifier begins with, and the heads that a run takes over from its start."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from debiaspl import load_model
from debiaspl.data import FewLabels, LongTail, Task, load
from debiaspl.debias import Debiaser
from debiaspl.models.network import HiddenHead, SmallNet
from debiaspl.training import Recipe, train
from debiaspl.training.classifier import first_classifier
from debiaspl.training.evaluate import evaluate
from debiaspl.training.step import Step
from tests.ranks import on_ranks
from tests.training.tiny import TINY, changed, check_resume, outcome, train_until

CPU = torch.device("cpu")
START = changed(
    TINY, "algorithm=moco", "correction=none", "memory=32", "steps=40", "algorithm.width=16", "network.width=8"
)
CONTRAST = "algorithm=contrastmatch", "memory=32", "key_decay=0.9", "algorithm.width=16", "network.width=8"


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("start") / "run"
    train(START, folder)
    return folder


def digits(per_class: int = 4) -> Task:
    return Task.of(load("digits"), FewLabels(per_class), seed=0)


def from_start(start: Path, *settings: str) -> Recipe:
    return changed(TINY, "network.width=8", f"start={start}", *settings)


def accuracy(step: Step, task: Task) -> float:
    return evaluate(step.average.model, task.test).accuracy


def test_the_first_classifier_knows_more_than_a_random_one(start, monkeypatch):
    """That of the graph most, also where the graph has only some of the images."""

    def reached(*settings: str) -> float:
        tasks = [Task.of(load("digits"), FewLabels(4), seed=seed) for seed in range(4)]
        return sum(accuracy(Step(from_start(start, *settings), task, CPU), task) for task in tasks) / 4

    means, graph, probe = (reached(f"first_classifier={kind}") for kind in ("means", "graph", "probe"))
    assert reached() < 0.3
    assert means > 0.5
    assert probe > 0.5
    assert graph > means + 0.02
    assert reached("first_classifier=graph", "fit_on=300") > 0.5


def test_labels_of_unlabeled_images_are_not_looked_at(start):
    task = digits()
    lies = replace(task.unlabeled, truth=(task.unlabeled.truth + 1) % 10)
    recipe = from_start(start, "first_classifier=graph")
    honest, lied = (Step(recipe, one, CPU).student.head for one in (task, replace(task, unlabeled=lies)))
    assert torch.equal(honest.weight, lied.weight)


def test_a_class_without_labels_can_still_be_learned(start):
    whole = Task.of(load("digits"), LongTail(20, 0.1), seed=0)
    kept = (whole.labeled.labels != 3).nonzero().flatten()
    task = replace(whole, labeled=whole.labeled.select(kept))
    for kind in ("means", "graph", "probe"):
        head = Step(from_start(start, f"first_classifier={kind}"), task, CPU).student.head
        assert head.weight.isfinite().all()
        assert head.bias.isfinite().all()


def test_an_estimated_target_is_counted_on_the_graph(start):
    task, recipe = digits(), from_start(start, "first_classifier=graph", "correction=debiaser", "target=estimated")
    step = Step(recipe, task, CPU)
    expected = Debiaser(10, target="estimated", class_counts=[4] * 10)
    expected.expect(first_classifier(recipe, step.student, task)["shares"])
    assert torch.equal(step.algorithm.correction.target, expected.target)
    assert expected.target.std() > 0.005


def test_random_features_are_refused():
    for settings in (["first_classifier=graph"], ["algorithm=graph"]):
        with pytest.raises(ValueError, match="random weights"):
            Step(changed(TINY, *settings), digits(), CPU)


def test_features_that_a_network_of_ones_own_loads_are_not_random(monkeypatch):
    monkeypatch.setattr(SmallNet, "load_pretrained", lambda self: None)
    step = Step(changed(TINY, "first_classifier=means"), digits(), CPU)
    assert bool(step.student.head.bias.any())


def test_an_algorithm_without_a_classifier_refuses_one(start):
    with pytest.raises(ValueError, match="classifier"):
        Step(changed(START, f"start={start}", "first_classifier=means"), digits(), CPU)


@pytest.mark.parametrize(
    ("settings", "computed"),
    [
        (["first_classifier=graph"], "step.first_classifier"),
        (["first_classifier=graph", "correction=debiaser", "target=estimated"], "step.first_classifier"),
        (["algorithm=graph", "correction=debiaser"], "build.graph_hints"),
    ],
)
def test_a_resumed_run_does_not_compute_it_again(start, tmp_path, monkeypatch, settings, computed):
    recipe = from_start(start, *settings)
    train(recipe, tmp_path / "whole")
    train_until(6, recipe, tmp_path / "run")
    monkeypatch.setattr(f"debiaspl.training.{computed}", None)
    train(recipe, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("algorithm", ["graph", "taught"])
def test_labels_of_the_graph_are_hints_and_those_of_unlabeled_images_are_not_looked_at(start, algorithm, monkeypatch):
    """More of them are right than by chance; a graph of a part gives the others the labels of their neighbours."""
    task = digits()
    recipe = from_start(start, f"algorithm={algorithm}", *(["sure=0"] if algorithm == "taught" else []))
    whole = Step(recipe, task, CPU).algorithm.taught
    truth, hidden = task.unlabeled.truth, replace(task.unlabeled, truth=torch.full_like(task.unlabeled.truth, -1))
    assert float((whole == truth).double().mean()) > 0.5
    assert torch.equal(whole, Step(recipe, replace(task, unlabeled=hidden), CPU).algorithm.taught)
    some = Step(replace(recipe, fit_on=700), task, CPU).algorithm.taught
    assert float((some == whole).double().mean()) > 0.8


def first_state(recipe: Recipe) -> list[bytes]:
    step = Step(recipe, digits(), CPU)
    return [step.student.head.weight.detach().numpy().tobytes()]


@pytest.mark.slow
def test_two_ranks_begin_alike_and_as_one(start):
    recipe = from_start(start, "first_classifier=graph")
    one, two = on_ranks(2, first_state, recipe)
    assert one == two == first_state(recipe)


def test_contrastmatch_goes_on_with_the_projector_of_moco(start):
    step = Step(changed(TINY, *CONTRAST, f"start={start}"), digits(), CPU)
    stored = load_file(start / "model.safetensors")
    for name, value in step.algorithm.state_dict().items():
        if name.startswith(("contrast.projector.", "contrast.average.")):
            assert torch.equal(value, stored[f"algorithm.{name}"])
    assert step.algorithm.contrast.written == 0
    assert not any(name.startswith("algorithm.contrast.remembered") for name in stored)


def test_a_projector_of_another_width_is_left_behind_whole(start):
    recipe = changed(TINY, *CONTRAST, f"start={start}", "algorithm.width=8")
    fresh = changed(TINY, *CONTRAST, "algorithm.width=8")
    found, expected = (Step(one, digits(), CPU).algorithm.state_dict() for one in (recipe, fresh))
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_heads_of_a_run_that_learned_from_labels_are_not_kept(tmp_path):
    train(changed(TINY, *CONTRAST), tmp_path / "run")
    assert not any(name.startswith("algorithm.") for name in load_file(tmp_path / "run" / "model.safetensors"))


def test_simclrv2_is_fine_tuned_from_the_first_layer_of_its_projector(start, tmp_path):
    settings = "algorithm=simclr", "correction=none", "layers=3", "steps=6", "algorithm.width=16", "network.width=8"
    train(changed(TINY, *settings), tmp_path / "simclr")
    learned = load_file(tmp_path / "simclr" / "model.safetensors")
    assert {name.split(".")[2] for name in learned if name.startswith("algorithm.projector.")} == set("01234")
    recipe = changed(TINY, "network.width=8", f"start={tmp_path / 'simclr'}", "head=hidden", "correction=causal-norm")
    step = Step(recipe, digits(), CPU)
    own = step.student.state_dict()
    pairs = {name: f"algorithm.projector.{name.removeprefix('head.first.')}" for name in own if "head.first." in name}
    assert len(pairs) == 5  # weights, and four of the norm
    assert all(torch.equal(own[name], learned[source]) for name, source in pairs.items())
    images = torch.randn(6, 1, 8, 8)
    features = step.student.eval().embed(images)
    rows = (features @ own["head.first.0.weight"].T - own["head.first.1.norm.running_mean"]) / (
        own["head.first.1.norm.running_var"] + 1e-5
    ).sqrt()
    inner = (rows * own["head.first.1.norm.weight"] + own["head.first.1.norm.bias"]).relu()
    torch.testing.assert_close(step.student(images), inner @ own["head.weight"].T + own["head.bias"])
    check_resume(recipe, tmp_path, 6)
    assert isinstance(load_model(tmp_path / "run").network.head, HiddenHead)
    with pytest.raises(ValueError, match="projector"):
        Step(changed(recipe, f"start={start}"), digits(), CPU)
    with pytest.raises(ValueError, match="head=linear"):
        Step(changed(recipe, "first_classifier=means"), digits(), CPU)
