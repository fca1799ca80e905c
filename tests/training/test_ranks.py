"""Several ranks against one process: the same images, the same numbers, and nothing that differs between them."""

from dataclasses import replace
from itertools import chain
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from debiaspl.algorithms import ALGORITHMS, STARTS
from debiaspl.data import PROTOCOLS, Task, open_data
from debiaspl.models import Network
from debiaspl.training import Choice, Recipe, RunError
from debiaspl.training.parts import PARTS
from debiaspl.training.run import Checkpoint, Run
from debiaspl.training.step import Step
from tests.ranks import on_ranks
from tests.training.tiny import EAGER, changed

CPU = torch.device("cpu")
RECIPE = replace(EAGER, labeled_batch=12, unlabeled_batch=24, steps=50, average_decay=0.9)


def made(recipe: Recipe) -> Step:
    task = Task.of(open_data(recipe.data), PROTOCOLS[recipe.protocol.name](**recipe.protocol.settings), recipe.seed)
    return Step(recipe, task, CPU)


def trained(recipe: Recipe, steps: int, start: dict[str, Any] | None = None, first: int = 0) -> dict[str, Any]:
    """The state after some steps, and what was seen on the way."""
    step = made(recipe)
    if start is not None:
        step.load(start)
    losses, seen = [], []
    for number in range(first, first + steps):
        step(number)
        seen.append(step.inputs.positions("unlabeled").tolist())
        losses.append({name: float(value) for name, value in step.monitor.sums.items() if value.ndim == 0})
    local = {name: value.clone() for name, value in step.algorithm.named_buffers()}
    state = {name: value.clone() for name, value in step.state().items()}
    return {"state": state, "losses": losses, "seen": seen, "local": local}


def in_float64(recipe: Recipe, steps: int) -> dict[str, Any]:
    torch.set_default_dtype(torch.float64)
    try:
        return trained(recipe, steps)
    finally:
        torch.set_default_dtype(torch.float32)


class Plain(Network):
    """A network that sees every image by itself."""

    def __init__(self, num_classes: int, channels: int) -> None:
        super().__init__()
        self.num_features = 12
        self.body = nn.Sequential(nn.Conv2d(channels, 12, 3, stride=2), nn.ReLU())
        self.head = nn.Linear(12, num_classes)

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.body(images)
        return features.mean((2, 3))


def plain_in_float64(recipe: Recipe, steps: int) -> dict[str, Any]:
    with mock.patch.dict(PARTS["network"], small=Plain):
        return in_float64(replace(recipe, network=Choice("small")), steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "ranks"),
    [
        ([], 2),
        ([], 3),
        (["joint=true"], 2),
        (["correction=none"], 2),
        (["target=estimated", "count_threshold=0.1"], 2),
        (["teacher=average", "average_statistics=true"], 2),
        (["head=causal", "correction=ldam-drw", "begin=0.1"], 2),
    ],
)
def test_ranks_compute_what_one_process_computes(settings, ranks):
    recipe = changed(RECIPE, "synchronise_norm=true", *settings)
    alone, together = in_float64(recipe, 20), on_ranks(ranks, in_float64, recipe, 20)
    assert_close(together[0]["state"], alone["state"], ranks, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_pieces_of_a_batch_are_the_batch(ranks):
    """Of a network without norms: what else looks at a batch is the correction, which learns once, from all. One
    without a margin, for that would see what was just learned from a whole batch, but not from its pieces."""
    recipe = changed(RECIPE, "correction=alignment", "correction.momentum=0.5")
    alone, cut = plain_in_float64(recipe, 20), replace(recipe, accumulate=3)
    together = plain_in_float64(cut, 20) if ranks == 1 else on_ranks(ranks, plain_in_float64, cut, 20)[0]
    assert_close(together["state"], alone["state"], 3 * ranks, 1e-6)


def assert_close(one: dict[str, Any], other: dict[str, Any], ranks: int, tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        if name == "generator":
            assert value.equal(other[name])
            continue
        # Sums over all ranks: of means over their parts, where it is a mean, and of counts, where it is a count.
        count = name.startswith("monitor.") and name.rpartition(".")[2] in ("known", "right", "counts", "right_counts")
        shared = ranks if name.startswith("monitor.") and not count else 1
        torch.testing.assert_close(value / shared, other[name] / 1, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({**ALGORITHMS, **STARTS}))
def test_all_ranks_of_every_algorithm_hold_the_same_bits(name):
    algorithm = {**ALGORITHMS, **STARTS}[name]
    recipe = replace(
        RECIPE, algorithm=Choice(name), correction=Choice(algorithm.own_correction), steps=6
    )  # CReST has six generations
    recipe = recipe.changed(**algorithm.own_settings)
    first, other = on_ranks(2, trained, recipe, 3)
    for key, value in first["state"].items():
        if not key.startswith("monitor."):
            assert value.equal(other["state"][key]), key
    for key, value in first["local"].items():
        assert value.equal(other["local"][key]), key


def joined(parts: list[list[list[int]]]) -> list[list[int]]:
    """What all ranks saw in each step, by rank."""
    return [list(chain(*step)) for step in zip(*parts, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_three_ranks_saved_another_number_goes_on_with(ranks):
    """Disjoint parts of one stream, no image lost or repeated; the same bits on all ranks, and what is saved is what is
    loaded."""
    whole = trained(RECIPE, 10)["seen"]
    first, *others = on_ranks(3, trained, RECIPE, 4)
    saved = first["state"]
    assert joined([one["seen"] for one in (first, *others)]) == whole[:4]
    for other in others:
        assert all(other["state"][name].equal(saved[name]) for name in saved if not name.startswith("monitor."))
    if ranks == 1:
        again, later = trained(RECIPE, 0, saved, 4), [trained(RECIPE, 6, saved, 4)]
    else:
        again = on_ranks(ranks, trained, RECIPE, 0, saved, 4)[0]
        later = on_ranks(ranks, trained, RECIPE, 6, saved, 4)
    assert again["state"].keys() == saved.keys()
    assert all(value.equal(again["state"][name]) for name, value in saved.items())
    assert joined([one["seen"] for one in later]) == whole[4:]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_as_many_ranks_go_on_to_the_same_bits(ranks):
    """Three too, for whom it matters in which order numbers are added."""
    whole = on_ranks(ranks, trained, RECIPE, 6)[0]["state"]
    half = on_ranks(ranks, trained, RECIPE, 3)[0]["state"]
    later = on_ranks(ranks, trained, RECIPE, 3, half, 3)[0]["state"]
    assert [name for name in whole if not name.startswith("monitor.") and not whole[name].equal(later[name])] == []


@pytest.mark.slow
def test_parameters_that_no_loss_reaches_are_waited_for_in_vain_by_nobody():
    recipe = replace(RECIPE, algorithm=Choice("remixmatch", {"rotation_weight": 0.0}), correction=Choice("none"))
    first, other = on_ranks(2, trained, recipe, 3)
    assert first["state"]["algorithm.rotation.weight"].equal(other["state"]["algorithm.rotation.weight"])


@pytest.mark.slow
def test_the_means_of_the_log_are_those_of_all_ranks():
    parts = on_ranks(2, trained, RECIPE, 3)
    sums = [part["losses"][-1] for part in parts]
    total = parts[0]["state"]
    for name in ("losses/labeled", "losses/unlabeled", "kept", "known", "right", "steps"):
        assert float(total[f"monitor.{name}"]) == pytest.approx(sum(each[name] for each in sums), rel=1e-12)
        assert float(parts[1]["state"][f"monitor.{name}"]) == 0


def test_a_run_goes_on_in_other_pieces(tmp_path):
    """As half as many GPUs may need."""
    recipe = replace(RECIPE, steps=4)
    run = Run.at(tmp_path, recipe, resume=False)
    with run.begin(recipe):
        facts = {"device": "cpu", "data": "", "seconds": 0.0, "log_length": 0, "skipped": {}, "files": {}}
        run.save(Checkpoint(0, {}, {"recipe": recipe.to_json(), **facts}))
    again = Run.at(tmp_path, replace(recipe, accumulate=2), resume=True)
    assert again.checkpoint() is not None
    with pytest.raises(RunError, match="another recipe"):
        Run.at(tmp_path, replace(recipe, accumulate=2, synchronise_norm=True), resume=True)
