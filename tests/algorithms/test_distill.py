"""Distillation against its slow version, and what its teacher is: fixed, whole, and part of the state."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from debiaspl.algorithms import Batch, Distill, Models
from debiaspl.algorithms.distill import FinishedTeacher
from debiaspl.debias import Debiaser
from debiaspl.encoders import load_trained
from debiaspl.models import SmallNet
from tests.reference.distill import distillation
from tests.reference.paper import debiased, moved_prior
from tests.training.tiny import write_finished

CLASSES, LABELED, UNLABELED = tuple(map(str, range(10))), 4, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_finished(tmp_path_factory.mktemp("teacher") / "run")


def distill(folder: Path, **settings: Any) -> Any:
    made = Distill(CLASSES, 1, teacher_run=str(folder), **settings)
    made.load_pretrained()
    return made.double()


def models(seed: int = 5) -> Models:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        student = SmallNet(10, width=2).double().eval()
    student.head.weight.data.mul_(12)
    return Models(student, student)


def batch(seed: int = 0, side: int = 8) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def images(count: int) -> Tensor:
        return torch.randn(count, 1, side, side, generator=generator, dtype=torch.float64)

    return Batch(images(LABELED), torch.tensor([0, 3, 3, 9]), weak=(images(UNLABELED),))


def logits_of(folder: Path, images: Tensor) -> list[list[float]]:
    network, _ = load_trained(folder)
    return network.double()(images).tolist()


@pytest.mark.parametrize("temperature", [1.0, 0.1, 4.0])
def test_the_loss_is_that_of_plain_loops(folder, temperature):
    algorithm, used, drawn = distill(folder, temperature=temperature), models(), batch()
    expected = distillation(logits_of(folder, drawn.weak[0]), used.student(drawn.weak[0]).tolist(), temperature)
    losses = algorithm.losses(used, drawn)
    assert losses.keys() == {"unlabeled"}  # labels are not looked at unless asked for
    assert losses["unlabeled"].item() == pytest.approx(expected, rel=1e-9)


def test_labels_count_by_their_weight(folder):
    used, drawn = models(), batch()
    losses = distill(folder, labeled_weight=0.25).losses(used, drawn)
    expected = torch.nn.functional.cross_entropy(used.student(drawn.labeled), drawn.labels)
    torch.testing.assert_close(losses["labeled"], 0.25 * expected)
    torch.testing.assert_close(losses["unlabeled"], distill(folder).losses(used, drawn)["unlabeled"])


def test_the_teacher_is_debiased_and_the_student_has_the_margin(folder):
    algorithm = distill(folder, correction=Debiaser(10, strength=0.7, momentum=0.5), temperature=2.0)
    used, drawn, old = models(), batch(), [0.1] * 10
    for _ in range(2):
        found = algorithm.losses(used, drawn)["unlabeled"].item()
        taught = logits_of(folder, drawn.weak[0])
        new = moved_prior(old, taught, 0.5)
        label = torch.tensor([debiased(one, old, 0.7) for one in taught]).log()
        seen = used.student(drawn.weak[0]).detach() + 0.7 * torch.tensor(new).log()
        assert found == pytest.approx(distillation(label.tolist(), seen.tolist(), 2.0), rel=1e-4)
        old = new
    assert algorithm.correction.prior.tolist() == pytest.approx(new, rel=1e-4)


def test_the_teacher_stays_as_it_is(folder):
    algorithm, used = distill(folder), models()
    before = {name: value.clone() for name, value in algorithm.state_dict().items()}
    algorithm.train()
    for step in range(3):
        algorithm.losses(used, batch(step))["unlabeled"].backward()
    assert list(algorithm.parameters()) == []
    assert not any(value.requires_grad for value in algorithm.buffers())
    assert all(torch.equal(value, before[name]) for name, value in algorithm.state_dict().items())
    saved = load_file(folder / "model.safetensors")
    for name, value in saved.items():
        torch.testing.assert_close(before[f"finished.network.{name}"].to(value.dtype), value)


def test_a_state_without_a_teacher_or_with_a_damaged_one_is_refused(folder):
    state = distill(folder).state_dict()
    again = Distill(CLASSES, 1, teacher_run="gone")
    for damaged in (torch.zeros(3, dtype=torch.uint8), torch.full((2,), 255, dtype=torch.uint8)):
        with pytest.raises(ValueError, match=r"the checkpoint is damaged|codec can't decode"):
            again.load_state_dict(state | {"finished.facts": damaged})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        again.load_state_dict({name: value for name, value in state.items() if not name.endswith("facts")})


def test_images_of_another_size_are_resized_for_the_teacher(folder):
    teacher = FinishedTeacher()
    teacher.take(*load_trained(folder))
    large = torch.linspace(-1, 1, 16).expand(2, 1, 16, 16).contiguous()
    halved = torch.nn.functional.interpolate(large, (8, 8), mode="bilinear", antialias=True)
    torch.testing.assert_close(teacher(large), teacher(halved))
    losses = distill(folder).losses(models(), batch(side=16))
    assert losses["unlabeled"].isfinite()


def test_half_precision_is_computed_in_float32(folder):
    drawn, student = batch(), models().student.float()
    single = Batch(drawn.labeled.float(), drawn.labels, weak=(drawn.weak[0].float(),))
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        loss = distill(folder).float().losses(Models(student, student), single)["unlabeled"]
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(distill(folder).losses(models(), drawn)["unlabeled"].item(), rel=0.1)
    loss.backward()
    assert all(value.grad.abs().sum() > 0 for value in student.parameters())


@pytest.mark.parametrize(
    ("classes", "channels", "word"),
    [
        (CLASSES[::-1], 1, "class 0 .* is 0, and of this task 9"),
        (CLASSES[:-1], 1, "class 9 .* None"),
        (CLASSES, 3, "channels"),
    ],
)
def test_a_teacher_of_other_classes_or_images_is_refused(folder, classes, channels, word):
    with pytest.raises(ValueError, match=word):
        Distill(classes, channels, teacher_run=str(folder)).load_pretrained()
