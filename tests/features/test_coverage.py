"""Which photos to label first: the greedy order of coverage."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings, strategies as st

from debiaspl.features import choose
from debiaspl.features.coverage import NEIGHBOURS, Coverage
from debiaspl.graph import directions, nearest
from debiaspl.graph.neighbours import POWER
from tests.reference import coverage as slow


def vectors(seed: int, rows: int = 40, columns: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(4, columns, generator=generator)
    return centres[torch.arange(rows) % 4] + torch.randn(rows, columns, generator=generator)


def covered(x: torch.Tensor, neighbours: int, power: float = -0.5) -> Coverage:
    return Coverage(nearest(directions(x, x.mean(0)), neighbours), power)


@settings(max_examples=20, deadline=None)
@example(152, 3, 0.0, 1)
@given(st.integers(0, 10_000), st.sampled_from([3, 10, 39]), st.sampled_from([0.0, -0.5]), st.integers(0, 5))
def test_the_order_is_that_of_the_slow_version(seed, neighbours, power, labels):
    x = vectors(seed)
    labeled = list(range(labels))
    doubt = np.random.default_rng(seed).uniform(0.1, 1, len(x))
    value = slow.covers(x, neighbours, POWER)
    weight = value.sum(1) ** power
    for uncertainty in (None, doubt):
        own = weight if uncertainty is None else weight * torch.from_numpy(uncertainty)
        chosen = list(labeled)
        for place in covered(x, neighbours, power).order(8, labeled, uncertainty).tolist():
            best = slow.order(value, own, 1, chosen)
            # Single precision may take another photo that adds as much, after which the orders differ.
            assert slow.coverage(value, own, [*chosen, place]) == pytest.approx(
                slow.coverage(value, own, chosen + best), rel=1e-6
            )
            chosen.append(place)
        assert len(set(chosen)) == len(labeled) + 8


def test_without_weights_and_with_all_neighbours_it_is_max_herding():
    pool = pytest.importorskip("skactiveml.pool")
    x = vectors(3)
    units = directions(x, x.mean(0)).double().numpy()
    herding = pool.MaxHerding(normalize_samples=False, metric=lambda a, b: max(float(a @ b), 0) ** POWER)
    theirs = herding.query(units, np.full(len(x), np.nan), batch_size=10)
    assert covered(x, len(x) - 1, power=0.0).order(10).tolist() == theirs.tolist()


def test_orders_are_nested_and_labeled_photos_are_never_chosen():
    x = vectors(0, rows=200)
    whole = choose(x.numpy(), 60)
    assert whole[:20].tolist() == choose(x.numpy(), 20).tolist()
    labels = np.full(200, -1)
    labels[whole[:20]] = 0
    assert choose(x.numpy(), 40, labels).tolist() == whole[20:].tolist()
    assert sorted([*whole[:20], *choose(x.numpy(), 1000, labels)]) == list(range(200))


def test_weights_by_degree_find_a_small_class_earlier():
    generator = torch.Generator().manual_seed(0)
    centres = 6 * torch.eye(5, 16)
    sizes = [400, 400, 100, 30, 8]
    truth = torch.repeat_interleave(torch.arange(5), torch.tensor(sizes))
    x = centres[truth] + torch.randn(len(truth), 16, generator=generator)

    def needed(power: float) -> int:
        seen = truth[covered(x, NEIGHBOURS, power).order(300)].tolist()
        return max(seen.index(number) for number in range(5)) + 1

    assert needed(-0.5) <= needed(0.0)
    assert needed(-0.5) <= 15


def test_equal_photos_are_chosen_after_all_different_ones():
    x = torch.cat((vectors(1, rows=30), vectors(1, rows=30)[:10]))
    first = choose(x.numpy(), 30).tolist()
    assert len({row % 30 for row in first}) == 30


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        (np.zeros((4,)), None),
        (np.full((4, 2), np.nan), None),
        (np.ones((1, 2)), None),
        (np.random.default_rng(0).normal(size=(4, 2)), [0, 1]),
    ],
)
def test_what_cannot_be_used_is_refused(features, labels):
    with pytest.raises(ValueError, match=r"shape"):
        choose(features, 2, labels)
