"""The same on a GPU: a run, its resuming, and a step that does not wait for the device."""

import statistics
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from debiaspl.data import FewLabels, Task, load, open_data
from debiaspl.debias import CORRECTIONS
from debiaspl.kernels import triton_works
from debiaspl.recipes import recipe
from debiaspl.training import Recipe, train
from debiaspl.training.step import Step
from tests.data.photos import write_folder
from tests.training.test_every_algorithm import bits, check_without_waiting, on
from tests.training.tiny import EAGER, changed, check_resume

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


WIDE = changed(EAGER, "network=wrn", "depth=10", "width=2", "steps=16", "checkpoint_every=5")


def digits() -> Task:
    return Task.of(load("digits"), FewLabels(1), seed=0)


@pytest.mark.parametrize("recipe", [EAGER, WIDE], ids=["small", "wrn"])
@pytest.mark.parametrize("stop", [2, 9])
def test_a_run_on_a_gpu_resumes_to_the_same_bits(tmp_path, recipe, stop):
    """Stopped before the step was recorded, and after."""
    check_resume(recipe, tmp_path, stop, device="cuda")


def eager_and_recorded(recipe: Recipe, task: Task) -> tuple[Step, Step]:
    """Not alike, but the same bits: weights, average, momentum, prior, monitors and the place of the generator."""
    eager, recorded = (Step(recipe, task, torch.device("cuda"), record=record) for record in (False, True))
    for number in range(recipe.steps):
        eager(number)
        recorded(number)
        assert bits(recorded.state()) == bits(eager.state()), f"after step {number}"
    return eager, recorded


FAST = ["teacher=average", "average_statistics=true", "strong_share=0.5"]


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["joint=true"],
        ["teacher=average"],
        FAST,
        ["views=2"],
        ["algorithm=pseudolabel"],
        ["algorithm=abc", "teacher=average"],
        ["correction=alignment+logit-adjustment"],
        ["algorithm=contrastmatch", "teacher=average", "memory=48", "relations=0.5", "key_decay=0.9"],
        *(["algorithm=fixmatch", f"correction={name}"] for name in CORRECTIONS),
    ],
)
@pytest.mark.parametrize("recipe", [EAGER, WIDE], ids=["small", "wrn"])
def test_a_recorded_run_is_the_eager_run(recipe, settings):
    eager_and_recorded(changed(recipe, "steps=12", *settings), digits())


def test_a_recorded_start_without_labels_is_the_eager_one():
    recipe = changed(EAGER, "algorithm=moco", "correction=none", "memory=48", "labeled_batch=0")
    eager_and_recorded(recipe, Task.of_unlabeled(load("digits").train))


def test_a_generation_begins_in_a_recorded_run_as_in_an_eager_one():
    """The labeled images are others then, so that the step is recorded again."""
    _, recorded = eager_and_recorded(changed(EAGER, "algorithm=crest", "generations=2", "steps=16"), digits())
    assert (recorded.adopted >= 0).any()


def test_a_step_on_a_gpu_is_the_step_on_a_cpu():
    """Same weights, same views (drawn elsewhere, so given), one step: the two differ by rounding to bfloat16."""
    here, there = (Step(WIDE, digits(), torch.device(name), record=False) for name in ("cpu", "cuda"))
    here.generator.manual_seed(1)
    drawn = []
    original = here._draw
    here._draw = lambda: drawn.append(original()) or drawn[-1]
    here(0)
    (batch, truth) = drawn[0]
    moved = replace(on("cuda", batch), generator=there.generator)
    there._draw = lambda: (moved, truth.cuda())
    there(0)
    before = Step(WIDE, digits(), torch.device("cpu")).state()
    for name, value in here.state().items():
        if name.startswith("student.") and "running" not in name and "tracked" not in name:
            change, other = value - before[name], there.state()[name].cpu() - before[name]
            assert F.cosine_similarity(change.flatten(), other.flatten(), dim=0) > 0.95, name
            assert 0.9 < other.norm() / change.norm() < 1.1, name


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_a_step_fed_from_files_never_waits_for_the_device(tmp_path):
    whole = open_data(str(write_folder(tmp_path / "photos")), image_size=16, stream=True)
    check_without_waiting(Step(EAGER, Task.of(whole, FewLabels(2), seed=0), torch.device("cuda"), workers=0))


def test_the_paths_of_older_gpus_are_as_accurate(tmp_path, monkeypatch):
    """Forced on this one, without Triton: bfloat16, float16 and float32 end within the noise of three seeds."""
    fast = mean_accuracy(tmp_path / "fast", "auto")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 5))
    triton_works.cache_clear()
    try:
        slow = [mean_accuracy(tmp_path / precision, precision) for precision in ("float16", "float32")]
    finally:
        triton_works.cache_clear()
    assert slow == pytest.approx([fast, fast], abs=0.06)


def mean_accuracy(place, precision):
    chosen = recipe("digits-10").changed(precision=precision)
    runs = (train(chosen.changed(seed=seed), place / str(seed), device="cuda") for seed in range(3))
    return statistics.fmean(run["accuracy"] for run in runs)
