"""Self-supervised algorithms against slow twins, and what they have in common."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from debiaspl.algorithms import ALGORITHMS, STARTS, Algorithm, Batch, MoCo, Models, SimCLR, SwAV
from debiaspl.augment.cropcolor import AREA, small_crops
from debiaspl.debias import Debiaser, LogitAdjustment
from debiaspl.models import Network
from tests.reference import starts as slow

FEATURES, IMAGES, SIDE = 6, 5, 4


class Plain(Network):
    """Without batch norm: a view's features do not depend on its neighbours. Takes images of any size."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.num_features = FEATURES
        self.weight = nn.Parameter(torch.randn(FEATURES, 12, generator=generator, dtype=torch.float64))
        self.head = nn.Linear(FEATURES, 3).double()

    def embed(self, images: Tensor) -> Tensor:
        return (F.adaptive_avg_pool2d(images, 2).flatten(1) @ self.weight.T).tanh()


def made(kind: type[Algorithm], **settings: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return kind(num_features=FEATURES, **settings).double()


def batch(views: int, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(IMAGES, 3, SIDE, SIDE, generator=generator, dtype=torch.float64)
    noise = torch.randn(views, IMAGES, 3, SIDE, SIDE, generator=generator, dtype=torch.float64)
    drawn = tuple(image + 0.5 * noise)
    return Batch(image[:1], torch.zeros(1, dtype=torch.int64), strong=drawn, progress=torch.tensor(0.5))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def unit(rows: Tensor) -> list[list[float]]:
    return F.normalize(rows, dim=-1).tolist()


def batch_normed(head: nn.Sequential, rows: Tensor) -> Tensor:
    """A head with its norms in training mode, written out: statistics of these rows."""
    *hidden, last = [layer for layer in head if isinstance(layer, nn.Linear)]
    for layer in hidden:
        rows = rows @ layer.weight.T
        rows = ((rows - rows.mean(0)) / (rows.var(0, correction=0) + 1e-5).sqrt()).relu()
    return rows @ last.weight.T + last.bias


def test_moco_is_that_of_plain_loops_while_its_memory_fills_and_is_written_over():
    algorithm, models = made(MoCo, width=4, temperature=0.3, memory=14, key_decay=0.75), Models(Plain(0), Plain(1))
    memory: list[list[float]] = []
    average = [value.clone() for value in algorithm.contrast.projector.parameters()]
    for step in range(4):
        drawn = batch(2, step)
        with torch.no_grad():  # the head moves, and its average after it
            for value in algorithm.contrast.projector.parameters():
                value.mul_(1.1)
        current = list(algorithm.contrast.projector.parameters())
        average = [0.75 * old + 0.25 * new for old, new in zip(average, current, strict=True)]
        keys = [
            unit(F.linear(F.leaky_relu(F.linear(models.teacher.embed(view), *average[:2]), 0.1), *average[2:]))
            for view in drawn.strong
        ]
        queries = [unit(algorithm.contrast.projector(models.student.embed(view))) for view in drawn.strong]
        expected = slow.moco(tuple(queries), tuple(keys), memory, temperature=0.3)
        assert algorithm.losses(models, drawn)["contrast"].item() == pytest.approx(expected, rel=1e-9)
        memory = (memory + keys[0] + keys[1])[-14:]


def test_moco_does_not_tell_a_view_from_itself():
    """The teacher's key of the very same view is neither in the batch that a query searches nor in the memory yet."""
    algorithm, student = made(MoCo, memory=2 * IMAGES, temperature=0.01), Plain(0)
    (view, _) = batch(2).strong
    same = Batch(view[:1], torch.zeros(1, dtype=torch.int64), strong=(view, view))
    # Student and teacher agree, and both views are one: a second key of the same image would cost log 2 = 0.69.
    assert algorithm.losses(Models(student, student), same)["contrast"].item() < 0.3


@pytest.mark.parametrize("temperature", [0.5, 0.05])
def test_simclr_is_that_of_plain_loops(temperature):
    algorithm, student, drawn = made(SimCLR, width=4, temperature=temperature), Plain(0), batch(2)
    projected = batch_normed(algorithm.projector, student.embed(torch.cat(drawn.strong)))
    first, second = unit(projected[:IMAGES]), unit(projected[IMAGES:])
    expected = slow.simclr(first, second, temperature)
    found = algorithm.losses(Models(student, student), drawn)["contrast"].item()
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("settings", [{}, {"small_views": 2}, {"temperature": 0.3, "code_temperature": 0.5}])
def test_swav_is_that_of_plain_loops(settings):
    algorithm, student = made(SwAV, prototypes=7, width=4, **settings), Plain(0)
    drawn = replace(batch(2 + settings.get("small_views", 0)), generator=generator())
    groups = [drawn.strong[:2], drawn.strong[2:]]
    similarity = []
    for number, views in enumerate(groups):
        if not views:
            continue
        images = small_crops(views, AREA, generator()) if number else torch.cat(views)
        projected = F.normalize(batch_normed(algorithm.projector, student.embed(images)), dim=-1)
        cosines = projected @ F.normalize(algorithm.prototypes, dim=-1).T
        similarity += cosines.view(len(views), IMAGES, -1).tolist()
    temperatures = settings.get("temperature", 0.1), settings.get("code_temperature", 0.05)
    expected = slow.swav(similarity, *temperatures, rounds=3)
    found = algorithm.losses(Models(student, student), drawn)["clusters"].item()
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_queue_is_used_when_it_is_full_and_late_enough():
    settings = {"prototypes": 7, "width": 4}
    algorithm, student = made(SwAV, queue=2 * IMAGES, queue_from=0.5, **settings), Plain(0)
    alone, seen = made(SwAV, **settings), []
    for step, progress in enumerate((0.1, 0.2, 0.3, 0.6, 0.7)):
        drawn = replace(batch(2, step), progress=torch.tensor(progress))
        projected = F.normalize(batch_normed(algorithm.projector, student.embed(torch.cat(drawn.strong))), dim=-1)
        cosines = (projected @ F.normalize(algorithm.prototypes, dim=-1).T).view(2, IMAGES, -1).tolist()
        queues = [[*seen[-2][view], *seen[-1][view]] if step > 2 else [] for view in (0, 1)]
        expected = slow.swav(cosines, 0.1, 0.05, 3, tuple(queues))
        found = algorithm.losses(Models(student, student), drawn)["clusters"].item()
        assert found == pytest.approx(expected, rel=1e-6)  # the queue is float32 on other devices
        assert (found == alone.losses(Models(student, student), drawn)["clusters"].item()) == (step < 3)
        seen.append(cosines)


def test_a_batch_as_large_as_the_queue_needs_none():
    algorithm, student = made(SwAV, queue=IMAGES, queue_from=0.0), Plain(0)
    for _ in range(3):
        algorithm.losses(Models(student, student), batch(2))
    assert int(algorithm.written) == 0


def test_prototypes_are_frozen_at_first():
    algorithm, student = made(SwAV, prototypes=7, frozen_until=0.1), Plain(0)
    for progress, moves in ((0.05, False), (0.1, True)):
        loss = algorithm.losses(Models(student, student), replace(batch(2), progress=torch.tensor(progress)))
        (gradient,) = torch.autograd.grad(loss["clusters"], algorithm.prototypes)
        assert bool(gradient.any()) == moves


def test_small_crops_are_parts_of_a_view():
    rows = torch.arange(64, dtype=torch.float64).expand(1, 1, 64, 64) / 64
    place = torch.cat((rows, rows.mT), 1).expand(200, 2, 64, 64)
    crops = small_crops([place], (0.1, 0.1), generator())
    assert crops.shape == (200, 2, 32, 32)
    spans = crops[:, 0, 0, -1] - crops[:, 0, 0, 0], crops[:, 1, -1, 0] - crops[:, 1, 0, 0]
    shares = spans[0] * spans[1] * (32 / 31) ** 2
    torch.testing.assert_close(shares, torch.full_like(shares, 0.1), atol=0.02, rtol=0)
    assert (spans[0] / spans[1]).std() > 0.1
    assert crops[:, :, 16, 16].std(0).min() > 0.1  # from everywhere
    whole = small_crops([place[:1]], (1.0, 1.0), torch.Generator().manual_seed(1))
    assert whole.min() < 0.2 < 0.8 < whole.max()
    with pytest.raises(ValueError, match="small_area"):
        SwAV(small_area=(0.5, 0.1))


def test_codes_of_extreme_similarities_are_finite():
    algorithm = made(SwAV, prototypes=64, code_temperature=1e-3)
    generator = torch.Generator().manual_seed(0)
    rows, prototypes = (F.normalize(torch.randn(64, 3, generator=generator), dim=-1) for _ in range(2))
    codes = algorithm.codes(rows @ prototypes.T)  # float32, cosines from -1 to 1
    assert codes.isfinite().all()
    torch.testing.assert_close(codes.sum(1), torch.ones(64))


@pytest.mark.parametrize("name", STARTS)
def test_labels_are_not_looked_at(name):
    algorithm, models, drawn = made(STARTS[name]), Models(Plain(0), Plain(1)), batch(2)
    other = Batch(drawn.labeled + 9, drawn.labels + 1, strong=drawn.strong)
    state = {key: value.clone() for key, value in algorithm.state_dict().items()}
    found = algorithm.losses(models, drawn)
    algorithm.load_state_dict(state)
    assert {key: value.item() for key, value in algorithm.losses(models, other).items()} == {
        key: value.item() for key, value in found.items()
    }


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("correction", [Debiaser(3), LogitAdjustment((3, 2, 1))])
def test_there_is_nothing_to_correct(name, correction):
    with pytest.raises(ValueError, match="without labels"):
        STARTS[name](correction=correction)


ADVICE = {"moco": "temperature", "simclr": "temperature", "swav": "code_temperature", "contrastmatch": "relations"}


@pytest.mark.parametrize("name", ADVICE)
def test_what_to_change_where_features_collapse_names_a_setting(name):
    assert ADVICE[name] in {**STARTS, **ALGORITHMS}[name](num_features=4, **{ADVICE[name]: 0.25}).advice
