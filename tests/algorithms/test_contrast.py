"""The contrast against a twin in plain loops: alone, with a memory, with relations, with averaged keys."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from debiaspl.algorithms.contrast import Contrast

FEATURES, WIDTH, IMAGES = 6, 5, 7


def made(**settings: float) -> Contrast:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Contrast(FEATURES, WIDTH, **settings)


def views(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    strong, weak = torch.randn(2, IMAGES, FEATURES, generator=generator)
    return strong, strong + weak


def cosine(one: list[float], other: list[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.sqrt(sum(a * a for a in one)) / math.sqrt(sum(b * b for b in other))


def slow(queries: list[list[float]], keys: list[list[float]], others: list[list[float]], **settings: float) -> float:
    """Query i must find key i among all keys and others; a share of the target lies where the key finds them."""
    relations, total = settings.get("relations", 0.0), 0.0
    known = keys + others
    for place, (query, key) in enumerate(zip(queries, keys, strict=True)):
        weights = [math.exp(cosine(query, one) / settings.get("temperature", 0.2)) for one in known]
        surprise = [-math.log(weight / sum(weights)) for weight in weights]
        total += (1 - relations) * surprise[place]
        near = [math.exp(cosine(key, one) / settings.get("relation_temperature", 0.05)) for one in known]
        near[place] = 0.0
        total += relations * sum(share / sum(near) * cost for share, cost in zip(near, surprise, strict=True))
    return total / len(queries)


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.3},
        {"memory": 16, "temperature": 0.1},
        {"relations": 0.4, "relation_temperature": 0.2},
        {"relations": 1.0, "memory": 7, "relation_temperature": 0.1},
        {"relations": 0.5, "memory": 16, "temperature": 0.15, "relation_temperature": 0.07},
    ],
)
def test_it_is_that_of_plain_loops(settings):
    contrast = made(**settings)
    memory: list[list[float]] = []
    for step in range(4):  # the memory fills up, and is then written over
        strong, weak = views(step)
        keys = contrast.projector(weak).tolist()
        expected = slow(contrast.projector(strong).tolist(), keys, memory, **settings)
        assert contrast(strong, weak).item() == pytest.approx(expected, rel=1e-5)
        memory = (memory + keys)[-settings["memory"] :] if "memory" in settings else []


def test_keys_are_projected_by_an_average():
    contrast, (strong, weak) = made(key_decay=0.75, memory=IMAGES), views(0)
    first = contrast.projector(weak)
    contrast(strong, weak)
    torch.testing.assert_close(contrast.remembered, F.normalize(first, dim=-1))
    before = [value.clone() for value in contrast.projector.parameters()]
    with torch.no_grad():
        for value in contrast.projector.parameters():
            value.add_(torch.randn(value.shape, generator=torch.Generator().manual_seed(1)))
    averages = [0.75 * old + 0.25 * new for old, new in zip(before, contrast.projector.parameters(), strict=True)]
    contrast(strong, weak)
    hidden = F.leaky_relu(F.linear(weak, *averages[:2]), 0.1)
    torch.testing.assert_close(contrast.remembered, F.normalize(F.linear(hidden, *averages[2:]), dim=-1))


def test_an_average_of_bfloat16_weights_moves():
    """A GPU computes with a bfloat16 copy, in which a hundredth of a small change is nothing."""
    contrast, (_, weak) = made(key_decay=0.99), views(0)
    weight = contrast.projector[0].weight
    weight.data = weight.data.to(torch.bfloat16)
    start = contrast.average.head[0].weight.clone()
    weight.data.add_(0.1)
    with torch.no_grad():
        for _ in range(20):
            contrast.keys(weak)
    moved = (contrast.average.head[0].weight - start).mean().item()
    assert moved == pytest.approx(0.1 * (1 - 0.99**20), rel=0.05)


@pytest.mark.parametrize("settings", [{}, {"memory": 16, "relations": 0.5}, {"key_decay": 0.9}])
def test_weak_views_are_targets(settings):
    """The same projector makes queries and keys; a gradient through the keys would pull them to the queries."""
    contrast, (strong, weak) = made(**settings), views(0)
    weak.requires_grad_()
    strong.requires_grad_()
    contrast(strong, weak).backward()
    assert weak.grad is None
    assert strong.grad.abs().sum() > 0


def test_a_batch_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="memory is 3, but a batch has 7 images or views"):
        made(memory=3)(*views(0))


@pytest.mark.parametrize("exact", [torch.float32, torch.float64])
def test_similarities_are_not_rounded_to_what_the_projector_computes_in(exact):
    settings = {"memory": 16, "relations": 0.5, "temperature": 0.1}
    contrast = made(**settings)
    contrast.remembered = contrast.remembered.to(exact)
    memory: list[list[float]] = []
    for step in range(2):
        strong, weak = views(step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            queries, keys = contrast.projector(strong).tolist(), contrast.projector(weak).tolist()
            found = contrast(strong, weak)
        assert found.item() == pytest.approx(slow(queries, keys, memory, **settings), rel=1e-5)
        memory = keys
