"""A run is what the paper says: the recorded step's rooms and all against an eager loop of plain torch, same seeds.

In float64. In float32 the two drift apart by what the processor rounds: an activation that is 0 in one and 1e-8 in the
other has another gradient.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from debiaspl.algorithms import Batch, Models
from debiaspl.data import FewLabels, Task, load
from debiaspl.recipes.lengths import DIGITS as ONE_LABEL
from debiaspl.training import Choice
from debiaspl.training.step import Step
from tests.reference import plain_loop

STEPS, THRESHOLD = 8, 0.2
"""So that labels count from the first step."""


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_a_run_equals_a_plain_loop(joint, strength):
    recipe = replace(
        ONE_LABEL,
        algorithm=Choice("fixmatch", {"joint": joint, "threshold": THRESHOLD}),
        correction=Choice("debiaser", {"strength": strength, "momentum": 0.9}),
        steps=STEPS,
        learning_rate=0.05,
        labeled_batch=16,
        unlabeled_batch=32,
    )
    step = Step(recipe, Task.of(load("digits"), FewLabels(1), seed=0), torch.device("cpu"))
    step.algorithm.double()  # the prior is float32 whatever the network is
    student, batches, found = deepcopy(step.student), [], []
    original = step.algorithm.losses

    def watched(models: Models, batch: Batch) -> dict[str, torch.Tensor]:
        losses = original(models, batch)
        batches.append(batch)
        found.append({name: value.item() for name, value in losses.items()})
        return losses

    step.algorithm.losses = watched
    for number in range(STEPS):
        step(number)

    twin = plain_loop.train(
        student,
        batches,
        classes=10,
        strength=strength,
        momentum=0.9,
        threshold=THRESHOLD,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        average_decay=recipe.average_decay,
        steps=STEPS,
        joint=joint,
        average_statistics=recipe.average_statistics,
    )
    kept = 0.0
    for number, expected in enumerate(twin):
        assert found[number] == pytest.approx(expected["losses"], rel=1e-6), f"step {number}"
        kept += expected["kept"] / STEPS
    assert step.monitor.summary()["kept"] == pytest.approx(kept, abs=1e-6)
    assert kept > 0.05  # pseudo-labels have counted
    torch.testing.assert_close(step.algorithm.correction.prior, expected["prior"], atol=1e-6, rtol=0)
    for own, plain in ((step.student, expected["student"]), (step.average.model, expected["average"])):
        for name, value in own.state_dict().items():
            torch.testing.assert_close(value, plain.state_dict()[name], atol=1e-6, rtol=0, msg=name)
