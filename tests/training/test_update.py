"""The update against torch's own optimisers, a slow average and a learning rate by hand."""

import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import nn

from debiaspl.models import MODELS, Average
from debiaspl.training.recipe import FIXMATCH, HALF_WAVE
from debiaspl.training.update import Update, blocks_above, rate
from tests.reference import paper
from tests.training.tiny import TINY


class Beside(nn.Module):
    """What an algorithm trains beside the student."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(32, 5)


def pair(statistics: bool = False) -> tuple:
    torch.manual_seed(0)
    student, beside = MODELS["small"](7, 1, width=8), Beside()
    for parameter in student.parameters():
        if parameter.ndim == 4:  # as a run lays them out
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    average = Average(student, 0.9, statistics)
    return student, beside, average


def loss(student: nn.Module, beside: nn.Module, images: torch.Tensor) -> torch.Tensor:
    features = student.embed(images)
    return student.head(features).square().mean() + beside.projection(features).abs().mean()


@pytest.mark.parametrize("statistics", [False, True])
def test_it_is_sgd_and_an_average(statistics):
    student, beside, average = pair(statistics)
    twin, twin_beside = deepcopy(student), deepcopy(beside)
    history = [deepcopy(twin.state_dict())]
    parameters = [*twin.parameters(), *twin_beside.parameters()]
    optimizer = torch.optim.SGD(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=1.0,
        momentum=0.9,
        nesterov=True,
    )
    update = Update(student, beside, average, replace(TINY, weight_decay=0.01))
    generator = torch.Generator().manual_seed(1)
    for number in range(4):
        images, rate = torch.randn(6, 1, 8, 8, generator=generator), 0.1 / (number + 1)
        update.take(loss(student, beside, images))
        update.step(rate)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss(twin, twin_beside, images).backward()
        optimizer.step()
        history.append(deepcopy(twin.state_dict()))
    for own, other in ((student, twin), (beside, twin_beside)):
        for name, value in other.state_dict().items():
            torch.testing.assert_close(own.state_dict()[name], value, rtol=1e-6, atol=1e-7, msg=name)
    weights = dict(twin.named_parameters())
    for name, value in average.model.state_dict().items():
        if name in weights or (statistics and value.is_floating_point()):
            expected = averaged([state[name] for state in history], 0.9)
        else:
            expected = history[-1][name]
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6, msg=name)


class Blocks(nn.Module):
    """A small transformer: a token, and layers of the same type."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.layers = nn.ModuleList(deepcopy(layer) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 7)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        tokens = images.flatten(1).reshape(len(images), -1, 8) + self.token
        for layer in self.layers:
            tokens = layer(tokens)
        return self.norm(tokens).mean(1)


@pytest.fixture
def doubles():
    """The gradient of an attention's key bias is 0 but for rounding, which AdamW enlarges."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("layer_decay", "clip"), [(1.0, 0.0), (0.5, 0.0), (1.0, 0.05), (0.5, 1e6)])
def test_it_is_adamw_with_layers_and_bounded_gradients(layer_decay, clip, doubles):
    torch.manual_seed(0)
    student = Blocks()
    average, twin, beside = Average(student, 0.9), deepcopy(student), nn.Module()
    depth = {name: 0 if name.startswith(("norm", "head")) else 4 for name, _ in twin.named_parameters()}
    depth |= {name: 3 - int(name.split(".")[1]) for name in depth if name.startswith("layers.")}
    groups = [
        {
            "params": [parameter],
            "scale": layer_decay ** depth[name],
            "weight_decay": 0.1 if parameter.ndim == 2 else 0.0,
        }
        for name, parameter in twin.named_parameters()
    ]
    optimizer = torch.optim.AdamW(groups, lr=1.0)
    recipe = replace(TINY, optimizer="adamw", weight_decay=0.1, layer_decay=layer_decay, clip=clip)
    update = Update(student, beside, average, recipe)
    for number in range(4):
        images, rate = torch.randn(6, 1, 8, 8), 0.01 / (number + 1)
        update.take(student.head(student.embed(images)).square().mean())
        update.step(rate)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        optimizer.zero_grad()
        twin.head(twin.embed(images)).square().mean().backward()
        if clip:
            nn.utils.clip_grad_norm_(twin.parameters(), clip)
        optimizer.step()
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(student.state_dict()[name], value, rtol=1e-4, atol=1e-6, msg=name)
    assert not torch.equal(average.model.token, student.token)
    momenta = {name: value.clone() for name, value in update.momenta().items()}
    assert float(momenta["count"]) == 4
    assert any(name.endswith(".squares") for name in momenta)


def test_layers_are_counted_from_the_end_of_any_network():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    assert set(blocks_above(flat).values()) == {0}
    found = blocks_above(MODELS["wrn"](10, depth=10, width=1))
    assert found["head.weight"] == found["norm.weight"] == 0
    assert [found[f"blocks.{number}.norm1.weight"] for number in range(3)] == [3, 2, 1]
    assert found["stem.weight"] == 4


def averaged(values: list[torch.Tensor], decay: float) -> torch.Tensor:
    """The slow twin of an average, number by number."""
    columns = torch.stack(values).double().flatten(1).T.tolist()
    found = torch.tensor([paper.averaged(column, decay) for column in columns])
    return found.reshape(values[0].shape).to(values[0].dtype)


def test_parameters_begin_where_fast_kernels_want_them():
    student, beside, average = pair()
    Update(student, beside, average, TINY)
    assert {parameter.data_ptr() % 64 for parameter in student.parameters()} == {0}
    shaped = [parameter for parameter in student.parameters() if parameter.ndim == 4]
    assert all(parameter.is_contiguous(memory_format=torch.channels_last) for parameter in shaped)


@pytest.mark.parametrize("arc", [0.0, FIXMATCH, 0.5])
def test_without_a_warm_up_it_is_the_cosine_bit_for_bit(arc):
    expected = [math.cos(arc * math.pi * number / 37) for number in range(37)]
    assert [rate(number, 37, arc) for number in range(37)] == expected


@pytest.mark.parametrize("length", [10, 100, 198_181])
def test_it_rises_in_a_line_then_falls(length):
    """As the released scripts have it: 5 of 50 epochs up, the half wave over the other 45."""
    up = round(0.1 * length)
    for number in {0, 1, up - 1, up, up + 1, length // 2, length - 1}:
        done = (number - up) / (length - up)
        slow = (number + 1) / up if number < up else 0.5 * (1 + math.cos(math.pi * done))
        assert rate(number, length, HALF_WAVE, 0.1) == pytest.approx(slow, abs=1e-12)
    assert rate(up - 1, length, HALF_WAVE, 0.1) == 1 == rate(up, length, HALF_WAVE, 0.1)


def test_it_is_never_zero_or_above_one():
    for length in (1, 2, 3, 7):
        for warm_up in (0.0, 0.1, 0.5, 0.99):
            assert all(0 < rate(number, length, HALF_WAVE, warm_up) <= 1 for number in range(length))


@pytest.mark.parametrize("setting", [{"warm_up": 1.0}, {"warm_up": -0.1}, {"arc": 0.7}])
def test_wrong_settings_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        replace(TINY, **setting)
