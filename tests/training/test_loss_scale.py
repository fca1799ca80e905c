"""float16: the scale of the loss, and a run with it. A CPU computes in float16 too, slowly."""

import pytest
import torch

from debiaspl.data import FewLabels, Task, load
from debiaspl.training import loss_scale
from debiaspl.training.loss_scale import FIRST, LossScale
from debiaspl.training.step import Step
from tests.training.tiny import EAGER, changed, check_resume

CPU = torch.device("cpu")
HALF = changed(EAGER, "precision=float16")


def step_of(recipe) -> Step:
    return Step(recipe, Task.of(load("digits"), FewLabels(1), seed=0), CPU)


def test_the_scale_falls_where_a_gradient_is_not_finite_and_rises_where_all_are(monkeypatch):
    monkeypatch.setattr(loss_scale, "FINITE_STEPS", 3)
    scale, scales = LossScale(CPU), []
    for value in (1.0, float("inf"), 1.0, 1.0, 1.0, 1.0, float("nan")):
        gradients = [torch.tensor([scale.scaled(torch.tensor(value)), 0.0]), torch.zeros(1)]
        assert scale.unscale(gradients) == (value == 1)
        if value == 1:
            assert gradients[0].tolist() == [1, 0]
        scales.append(float(scale.state[0]) / FIRST)
    assert scales == [1, 0.5, 0.5, 0.5, 1, 1, 0.5]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_step_with_a_gradient_that_is_not_finite_is_left_out(optimizer):
    step = step_of(changed(HALF, f"optimizer={optimizer}"))
    step(0)
    before = {name: value.clone() for name, value in step.state().items()}
    step.update.momenta()["scale"][0] = 2.0**127
    step(1)
    after = step.state()
    learned = [name for name in before if name.startswith(("student", "average", "momentum")) and "running" not in name]
    same = {name for name in learned if torch.equal(after[name], before[name])}
    assert set(learned) - same <= {"momentum.scale", *(name for name in learned if "num_batches" in name)}
    assert after["momentum.scale"].tolist() == [2.0**126, 0]
    assert int(step.first_bad_step) == -1


def test_a_step_is_nearly_that_of_float32_and_with_too_small_a_scale_it_is_not(monkeypatch):
    supervised = changed(HALF, "algorithm=supervised", "correction=none")
    first, exact, half = (
        step_of(supervised).state(),
        step_of(changed(supervised, "precision=float32")),
        step_of(supervised),
    )
    monkeypatch.setattr(loss_scale, "FIRST", 2.0**-16)
    lost = step_of(supervised)
    for step in (exact, half, lost):
        step(0)
    weights = [name for name in first if name.startswith("student") and name.endswith("weight")]

    def error(step: Step) -> float:
        apart = [(step.state()[name] - exact.state()[name]).norm() for name in weights]
        moved = [(exact.state()[name] - first[name]).norm() for name in weights]
        return float(max(one / other for one, other in zip(apart, moved, strict=True)))

    assert error(half) < 0.05 < error(lost)


@pytest.mark.parametrize("stop", [2, 9])
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, stop):
    check_resume(HALF, tmp_path, stop)


def test_a_new_generation_keeps_the_scale():
    step = step_of(changed(HALF, "algorithm=crest", "generations=2", "steps=4"))
    for number in range(4):
        step(number)
    assert FIRST / 8 <= float(step.update.momenta()["scale"][0]) <= FIRST
