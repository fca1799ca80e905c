"""What holds for every algorithm there is, and for the next one that is registered."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS, Batch, Models
from debiaspl.data import FewLabels, Task, load
from debiaspl.debias import CORRECTIONS
from debiaspl.training import Recipe, loop as loop_module, train
from debiaspl.training.parts import settings_of
from debiaspl.training.step import Step
from tests.training.tiny import EAGER, changed, outcome, train_until, write_finished

EVERY = {**ALGORITHMS, **STARTS, "distill": HINTED["distill"], "ride": HINTED["ride"]}
TEMPORARY = TemporaryDirectory()
every_algorithm = pytest.mark.parametrize("name", EVERY)


@cache
def teacher_run() -> Path:
    return write_finished(Path(TEMPORARY.name) / "teacher")


def recipe_of(name: str, *settings: str) -> Recipe:
    """Twelve steps in which all that the algorithm learns comes to matter, with a correction that learns too."""
    algorithm = EVERY[name]
    correction = algorithm.own_correction
    if algorithm.needs_experts or (correction == "none" and algorithm.makes_pseudo_labels):
        correction = "debiaser"
    # A memory that is full after two steps, and what is off by default; thresholds that keep labels are those of EAGER.
    chosen = (
        "memory=48",
        "prototypes=32",
        "relations=0.5",
        "key_decay=0.9",
        "small_views=1",
        "queue=40",
        "queue_from=0.4",
        "frozen_until=0",
    )
    known = settings_of("algorithm", name)
    if "teacher_run" in known:
        chosen += f"teacher_run={teacher_run()}", "labeled_weight=0.5"
    if algorithm.needs_experts:
        chosen += "network=experts", "depth=10", "width=1"
        known |= {"network": None, "depth": 0, "width": 0}
    short = [item for item in chosen if item.partition("=")[0] in known]
    own = algorithm.own_settings if correction == algorithm.own_correction else {}
    pair = changed(EAGER, f"algorithm={name}", f"correction={correction}", *short)
    return changed(pair.changed(**own), *settings)


def step_of(name: str) -> Step:
    return Step(recipe_of(name), Task.of(load("digits"), FewLabels(1), seed=0), torch.device("cpu"))


def seen_by(step: Step, number: int) -> tuple[Models, Batch]:
    """What the algorithm is given in a step, half way through the training, where everything has begun to count."""
    seen: list[tuple[Models, Batch]] = []
    original = step.algorithm.losses

    def watched(models: Models, batch: Batch) -> dict[str, torch.Tensor]:
        seen.append((models, batch))
        return original(models, batch)

    step.algorithm.losses = watched
    step(number)
    del step.algorithm.losses
    (models, batch), *_ = seen
    return models, replace(batch, progress=torch.full_like(batch.progress, 0.5))


def bits(state: Mapping[str, torch.Tensor]) -> dict[str, bytes]:
    """As bytes: a NaN is equal to itself, and -0 is not 0."""
    return {name: value.cpu().reshape(-1).view(torch.uint8).numpy().tobytes() for name, value in state.items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Callable[[str], tuple]:
    """The outcome of an algorithm's run, which is trained once."""

    @cache
    def run(name: str) -> tuple:
        folder = tmp_path_factory.mktemp("undisturbed") / "run"
        train(recipe_of(name), folder)
        return outcome(folder)

    return run


@pytest.mark.parametrize("name", [name for name, made in EVERY.items() if made.makes_pseudo_labels])
def test_the_debiasers_target_is_estimated_with_every_algorithm(name):
    if name in ("adamatch", "crest+"):
        pytest.skip("needs distribution alignment")
    settings = ["labeled_strength=0"] if name == "acr" else []  # it takes the shares of the labels out itself
    step = Step(
        recipe_of(name, "correction=debiaser", "target=estimated", "count_threshold=0", *settings),
        Task.of(load("digits"), FewLabels(1), seed=0),
        torch.device("cpu"),
    )
    before = step.algorithm.correction.target.clone()
    for number in range(2):
        step(number)
    after = step.algorithm.correction.target
    assert after.isfinite().all()
    assert not torch.equal(after, before)
    assert torch.allclose(after.sum(), torch.ones(()))


@pytest.mark.slow
@every_algorithm
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, undisturbed, name):
    train_until(6, recipe_of(name), tmp_path / "run")  # the checkpoint is of step 4, the next line of the log of step 5
    train(recipe_of(name), tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == undisturbed(name)


@every_algorithm
def test_scrambled_truth_of_unlabeled_images_changes_no_weight_and_no_loss(tmp_path, monkeypatch, undisturbed, name):
    original = loop_module.task_of

    def scrambled(*arguments):
        honest = original(*arguments)
        lies = (honest.unlabeled.truth + 1) % 10
        return replace(honest, unlabeled=replace(honest.unlabeled, truth=lies))

    honest = undisturbed(name)
    monkeypatch.setattr(loop_module, "task_of", scrambled)
    train(recipe_of(name), tmp_path / "scrambled")
    lied = outcome(tmp_path / "scrambled")
    assert honest[0] == lied[0]
    assert [line["losses"] for line in honest[2]] == [line["losses"] for line in lied[2]]
    if EVERY[name].makes_pseudo_labels:  # the monitors did look: the test would see a leak
        assert [line["pseudo_accuracy"] for line in honest[2]] != [line["pseudo_accuracy"] for line in lied[2]]


@every_algorithm
def test_losses_are_named_and_what_is_trained_receives_gradients(name):
    step = step_of(name)
    models, batch = seen_by(step, 0)
    student = models.student
    teacher = deepcopy(student).requires_grad_()  # a loss that reaches back through the teacher would show here
    losses = step.algorithm.losses(Models(student, teacher), batch)
    assert ("labeled" in losses) == EVERY[name].learns_labels
    assert all(key.isidentifier() and value.shape == () and value.isfinite() for key, value in losses.items())
    assert len(losses) > 1 or not EVERY[name].makes_pseudo_labels
    trained = [*student.parameters(), *step.algorithm.parameters()]
    total = torch.stack(list(losses.values())).sum()
    gradients = torch.autograd.grad(total, [*trained, *teacher.parameters()], allow_unused=True)
    idle = set() if EVERY[name].learns_labels else {id(value) for value in student.head.parameters()}
    if EVERY[name].needs_experts:
        idle = {id(student.head.bias)}  # set only after training
    for value, gradient in zip(trained, gradients, strict=False):
        if id(value) in idle:
            assert gradient is None  # no label, no classifier; or no bias
            continue
        assert gradient is not None
        assert gradient.isfinite().all()
        assert gradient.abs().sum() > 0
    assert all(gradient is None for gradient in gradients[len(trained) :])
    kept = {f"algorithm.{key}": value for key, value in step.algorithm.named_buffers()}
    kept |= {f"average.{key}": value for key, value in step.average.named_parameters()}
    assert [key for key, value in kept.items() if value.requires_grad] == []


@every_algorithm
def test_the_same_step_from_the_same_state_gives_the_same_bits(name):
    """Whatever is not in the state must not matter: attributes, torch's global generator, what was seen meanwhile."""
    step = step_of(name)
    for number in range(5):
        step(number)
    state = {key: value.clone() for key, value in step.state().items()}
    found = []
    for seed in (1, 2):
        step.load({key: value.clone() for key, value in state.items()})
        torch.manual_seed(seed)
        drawn = torch.get_rng_state()
        step(5)
        found.append(bits(step.state()))
        assert torch.equal(torch.get_rng_state(), drawn)
        step(6)
    assert found[0] == found[1]
    assert found[0] != bits(state)


def on(device: str, batch: Batch) -> Batch:
    return replace(
        batch,
        **{key: getattr(batch, key).to(device) for key in ("labeled", "labels", "positions", "progress")},
        weak=tuple(view.to(device) for view in batch.weak),
        strong=tuple(view.to(device) for view in batch.strong),
        labeled_strong=tuple(view.to(device) for view in batch.labeled_strong),
        generator=None,
    )


@every_algorithm
def test_the_losses_depend_on_no_value_and_no_device(monkeypatch, name):
    """On the meta device tensors have shapes and no values: ``.item()``, a branch on a value, a shape that depends on
    one, or a constant made on another device would each fail here, as they would when a step is recorded on a GPU."""
    monkeypatch.setattr(torch, "autocast", lambda *arguments, **options: nullcontext())  # knows no meta device
    step = step_of(name)
    _, batch = seen_by(step, 0)
    student, algorithm = deepcopy(step.student).to("meta"), deepcopy(step.algorithm).to("meta")
    for teacher in (student, deepcopy(student)):
        losses = algorithm.losses(Models(student, teacher), on("meta", batch))
        parameters = [*student.parameters(), *algorithm.parameters()]
        torch.autograd.grad(torch.stack(list(losses.values())).sum(), parameters, allow_unused=True)
        assert all(value.is_meta for value in losses.values())


@every_algorithm
def test_what_is_remembered_is_a_buffer_and_monitors_have_known_shapes(name):
    """A tensor that is a plain attribute would neither move to a GPU nor be saved."""
    step = step_of(name)
    for number in range(3):
        step(number)
    for module in step.algorithm.modules():
        assert [key for key, value in vars(module).items() if isinstance(value, torch.Tensor)] == []
    monitors = step.algorithm.monitors
    assert not any(value.requires_grad for value in monitors.values())
    if not EVERY[name].makes_pseudo_labels:
        assert monitors == {}
        return
    kept, label, marginal = (monitors.pop(key) for key in ("kept", "pseudo_label", "marginal"))
    assert (kept.dtype, label.dtype) == (torch.bool, torch.int64)
    assert kept.shape == label.shape == (EAGER.unlabeled_batch,)
    assert 0 <= label.min() <= label.max() < 10
    assert marginal.shape == (10,)
    torch.testing.assert_close(marginal.sum(), torch.ones(()))
    assert 0.1 <= monitors["confidence"] <= 1
    assert all(value.shape == () and value.isfinite() for value in monitors.values())


@every_algorithm
def test_it_says_what_it_is(name):
    algorithm = EVERY[name]
    assert algorithm.own_correction in CORRECTIONS
    pair = changed(EAGER, f"algorithm={name}", f"correction={algorithm.own_correction}")
    for setting in algorithm.own_settings:
        assert pair.owner(setting) in ("algorithm", "correction")
    assert algorithm.teacher in ("student", "average")
    assert algorithm.teacher == "average" or not algorithm.needs_average


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def step_on_a_gpu(name: str, record: bool) -> Step:
    """So long a run that no generation begins in the steps that are watched."""
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    return Step(recipe_of(name, "steps=600"), task, torch.device("cuda"), record=record)


def check_without_waiting(step: Step) -> None:
    for number in range(5):  # the recording itself may wait
        step(number)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for number in range(5, 8):
            step(number)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@on_a_gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("record", [True, False])
@every_algorithm
def test_a_step_never_waits_for_the_device(name, record):
    step = step_on_a_gpu(name, record)
    check_without_waiting(step)
    assert int(step.first_bad_step) == -1


@pytest.mark.gpu
@on_a_gpu
@every_algorithm
def test_a_recorded_step_is_the_eager_step(name):
    eager, recorded = step_on_a_gpu(name, record=False), step_on_a_gpu(name, record=True)
    for number in range(8):
        eager(number)
        recorded(number)
    expected, found = bits(eager.state()), bits(recorded.state())
    assert [key for key in expected if found[key] != expected[key]] == []
