"""Two algorithms in one: each computes what it computes by itself, and the weight of the second one falls to 0."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from debiaspl.algorithms import ALGORITHMS, STARTS, Algorithm, Batch, Models, Together
from debiaspl.debias import Debiaser
from tests.algorithms.test_ranks import CLASSES, EXACT, built, network, part

SETTINGS = dict(EXACT.values())
PAIRS = [(main, other) for main in ALGORITHMS for other in STARTS]


def both(main: str, other: str, **settings: float) -> Together:
    return Together(built(main, SETTINGS[main]), built(other, SETTINGS[other]), **settings)


def networks(average: bool) -> Models:
    """Three that differ, so that who is asked for what is seen in the losses."""
    student = network(False, 1)
    return Models(student, network(False, 2).eval() if average else student, network(False, 3).eval())


def drawn(algorithm: Algorithm, step: int = 0, progress: float = 0.25) -> Batch:
    batch = part(step, algorithm, torch.Generator().manual_seed(step))
    return replace(batch, progress=torch.tensor(progress, dtype=torch.float64))


@pytest.mark.parametrize(("main", "other"), PAIRS)
def test_each_computes_what_it_computes_by_itself(main, other):
    algorithm = both(main, other, weight=3.0, until=0.5)
    first, second = deepcopy(algorithm.main), deepcopy(algorithm.other)
    models = networks(average=first.teacher == "average")
    assert algorithm.views == (first.views.weak, first.views.strong + second.views.strong)
    for step in range(2):
        batch, again = drawn(algorithm, step), drawn(algorithm, step)
        found = algorithm.losses(models, batch)
        expected = first.losses(models, replace(again, strong=again.strong[: first.views.strong]))
        alone = Models(models.student, models.average if second.needs_average else models.student)
        beside = second.losses(alone, replace(again, weak=(), strong=again.strong[first.views.strong :]))
        expected |= {f"beside_{name}": 3 * (1 - 0.25 / 0.5) * loss for name, loss in beside.items()}
        assert found.keys() == expected.keys()
        for name, loss in found.items():
            assert loss.isfinite()
            torch.testing.assert_close(loss, expected[name], rtol=1e-12, atol=1e-12)
        assert algorithm.monitors.keys() == first.monitors.keys()
        assert all(torch.equal(value, first.monitors[name]) for name, value in algorithm.monitors.items())
    state = {f"main.{name}": value for name, value in first.state_dict().items()}
    state |= {f"other.{name}": value for name, value in second.state_dict().items()}
    torch.testing.assert_close(algorithm.state_dict(), state, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("other", STARTS)
def test_the_second_one_reaches_the_features_and_not_the_classifier(other):
    algorithm, models = both("fixmatch", other), networks(average=False)
    losses = algorithm.losses(models, drawn(algorithm))
    beside = torch.stack([loss for name, loss in losses.items() if name.startswith("beside_")]).sum()
    student, own = models.student, list(algorithm.parameters())
    trained = [*student.features.parameters(), *own, *student.head.parameters()]
    gradients = torch.autograd.grad(beside, trained, allow_unused=True)
    classifier = len(list(student.head.parameters()))
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients[:-classifier])
    assert all(gradient is None for gradient in gradients[-classifier:])
    assert own  # its heads are trained


class One(Algorithm):
    """A loss of 1, whatever is seen."""

    def __init__(self, name: str, learns_labels: bool) -> None:
        super().__init__()
        self.name, self.learns_labels = name, learns_labels

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        return {self.name: torch.ones(())}


def weight(progress: float, **settings: float) -> float:
    algorithm, nobody = Together(One("labeled", True), One("loss", False), **settings), nn.Identity()
    batch = Batch(torch.zeros(1), torch.zeros(1), progress=torch.tensor(progress))
    return algorithm.losses(Models(nobody, nobody), batch)["beside_loss"].item()


def test_the_weight_falls_in_a_line():
    for progress, expected in ((0.0, 2.0), (0.15, 1.5), (0.3, 1.0), (0.45, 0.5), (0.6, 0.0), (0.9, 0.0)):
        assert weight(progress, weight=2.0, until=0.6) == pytest.approx(expected, abs=1e-6)
    assert weight(0.0) == 1
    assert weight(0.75) == pytest.approx(0.25)
    assert weight(0.999, weight=2.0, until=1000.0) == pytest.approx(2, rel=2e-3)


@pytest.mark.parametrize("until", [0.1, 0.3, 1 / 3, 0.6, 0.7, 0.99])
def test_afterwards_the_weight_is_zero_to_the_bit(until):
    for steps in range(1, 60):
        found = [weight(step / steps, weight=0.7, until=until) for step in range(steps)]
        assert [one > 0 for one in found] == [step / steps < until for step in range(steps)]


def test_what_is_said_of_the_algorithm_is_said_of_the_main_one():
    for name in ALGORITHMS:
        algorithm = both(name, "moco")
        for said in ("teacher", "needs_average", "makes_pseudo_labels", "learns_labels", "hard_labels"):
            assert getattr(algorithm, said) == getattr(algorithm.main, said)
        for said in ("own_correction", "generations"):
            assert getattr(algorithm, said) == getattr(algorithm.main, said)
        assert algorithm.correction is algorithm.main.correction
        assert algorithm.needs_pictures == algorithm.other.needs_pictures


def test_the_correction_is_saved_once():
    algorithm = both("fixmatch", "moco")
    assert isinstance(algorithm.correction, Debiaser)
    assert [name for name in algorithm.state_dict() if name.endswith("prior")] == ["main.correction.prior"]
    moved = deepcopy(algorithm)
    moved.correction.prior.fill_(0.5)
    assert torch.equal(moved.state_dict()["main.correction.prior"], torch.full((CLASSES,), 0.5).double())
    assert not torch.equal(algorithm.correction.prior, moved.correction.prior)


def test_a_generation_takes_over_labels_of_the_main_one_and_renews_the_other():
    algorithm = both("crest", "moco")
    probabilities = torch.eye(CLASSES, dtype=torch.float64).repeat(3, 1) * 0.9 + 0.025
    assert torch.equal(algorithm.adopt(probabilities, 0), built("crest", SETTINGS["crest"]).adopt(probabilities, 0))
    before = {name: value.clone() for name, value in algorithm.state_dict().items() if name.startswith("other.")}
    algorithm.losses(networks(average=False), drawn(algorithm))
    with torch.no_grad():
        for value in algorithm.other.parameters():
            value.add_(1)
    again = algorithm.anew()
    assert again.keys() == before.keys()
    assert all(torch.equal(value.double(), before[name].double()) for name, value in again.items())
    assert both("fixmatch", "moco").anew() == {}


@pytest.mark.parametrize("name", STARTS)
def test_there_must_be_one_that_learns_labels_and_one_that_does_not(name):
    start = built(name, SETTINGS[name])
    with pytest.raises(ValueError, match=r"is self-supervised, and so is MoCo beside it.* Use beside=none"):
        Together(start, built("moco", SETTINGS["moco"]))
    with pytest.raises(ValueError, match="FixMatch learns labels, expected a self-supervised algorithm beside FixMat"):
        Together(built("fixmatch", SETTINGS["fixmatch"]), built("fixmatch", SETTINGS["fixmatch"]))


def test_two_losses_of_one_name_are_refused():
    algorithm = Together(One("beside_loss", True), One("loss", False))
    with pytest.raises(ValueError, match=r"One has a loss named beside_loss, .* Rename it, without beside_"):
        algorithm.losses(networks(average=False), Batch(torch.zeros(1), torch.zeros(1)))


def test_a_teacher_that_is_missing_is_asked_for():
    algorithm, student = both("fixmatch", "moco"), network(False, 1)
    with pytest.raises(ValueError, match=r"MoCo learns from an average .* Models\(student, teacher, average\)"):
        algorithm.losses(Models(student, student), drawn(algorithm))
    alone = both("fixmatch", "simclr")
    assert alone.losses(Models(student, student), drawn(alone))["beside_contrast"].isfinite()
