"""Nearest neighbours, pair by pair and by cells."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.graph import directions, nearest, neighbours
from tests.reference import graph as slow


def drawn(count: int, width: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def clusters(count: int, width: int = 16, centres: int = 40) -> torch.Tensor:
    """Like features of real images: some are alike."""
    return drawn(centres, width, 1)[torch.arange(count) % centres] + 0.7 * drawn(count, width, 2)


def test_neighbours_are_those_of_plain_loops():
    vectors = drawn(30)
    found = nearest(directions(vectors, vectors.mean(0)), 4)
    expected = slow.neighbours(vectors.double().tolist(), 4)
    assert found.places.tolist() == [[place for place, _ in near] for near in expected]
    torch.testing.assert_close(
        found.similarity, torch.tensor([[cosine for _, cosine in near] for near in expected]), rtol=0, atol=1e-5
    )


def test_blocks_change_nothing_and_among_others_nobody_is_left_out(monkeypatch):
    units = F.normalize(drawn(50), dim=-1)
    whole = nearest(units, 5)
    monkeypatch.setattr(neighbours, "MOST_SIMILARITIES", {"cpu": 120})
    assert torch.equal(whole.places, nearest(units, 5).places)
    found = nearest(units, 1, among=units)
    assert found.places.flatten().tolist() == list(range(50))
    torch.testing.assert_close(found.similarity, torch.ones(50, 1))


@pytest.mark.parametrize("among", [False, True])
def test_cells_find_nearly_all_that_pairs_find_and_never_the_vector_itself(among):
    units = F.normalize(clusters(3000), dim=-1)
    others = F.normalize(clusters(3000)[:2500], dim=-1) if among else None
    exact, cells = (nearest(units, 10, others, exact=way) for way in (True, False))
    pairs = zip(exact.places.tolist(), cells.places.tolist(), strict=True)
    hits = sum(len(set(a) & set(b)) for a, b in pairs) / exact.places.numel()
    assert hits > 0.9
    if not among:
        assert not (cells.places == torch.arange(3000)[:, None]).any()
    assert (cells.similarity <= exact.similarity + 1e-6).all()
    assert (cells.similarity.diff(dim=1) <= 1e-6).all()


@pytest.mark.parametrize("alike", [0.3, 0.6, 1.0])
def test_vectors_that_are_alike_do_not_leave_empty_cells(alike):
    """Blank pictures, or features that have collapsed: many centres are the same, and one of them has all members."""
    units = F.normalize(clusters(3000), dim=-1)
    units[: int(alike * len(units))] = units[0]
    found = nearest(units, 5, exact=False)
    assert (found.similarity[: int(alike * len(units))] > 0.999).all()
    assert not (found.places == torch.arange(3000)[:, None]).any()


@pytest.mark.parametrize("vectors", [clusters(3000), drawn(3000, 12)], ids=["clusters", "no clusters"])
def test_a_search_widens_until_it_has_found_enough(vectors, monkeypatch):
    """Vectors without clusters have their neighbours in many cells."""
    monkeypatch.setattr(neighbours, "PROBED", 2)
    units = F.normalize(vectors, dim=-1)
    exact, cells = (nearest(units, 50, exact=way) for way in (True, False))
    recall = float((cells.similarity >= exact.similarity[:, -1:] - 1e-6).float().mean())
    assert recall >= 0.95
    assert cells.recall == pytest.approx(recall, abs=0.02)
    assert exact.recall == 1
    assert cells.first(5).recall == cells.recall


def test_a_search_ends_and_says_what_it_has_found(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_COMPARED", {"cpu": 1})
    found = nearest(F.normalize(drawn(3000, 12), dim=-1), 50, exact=False)
    assert 0 < found.recall < 0.5


def test_large_sets_are_searched_by_cells(monkeypatch):
    units = F.normalize(clusters(400), dim=-1)
    by_cells = nearest(units, 5, exact=False)
    monkeypatch.setattr(neighbours, "EXACT", {"cpu": 399})
    assert torch.equal(nearest(units, 5).places, by_cells.places)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_the_same():
    units = F.normalize(clusters(3000), dim=-1)
    for way in (True, False):
        found, expected = nearest(units.cuda(), 10, exact=way), nearest(units, 10, exact=way)
        assert (found.places.cpu() == expected.places).float().mean() > 0.99
        torch.testing.assert_close(found.similarity.cpu(), expected.similarity, rtol=0, atol=1e-3)


def test_copies_are_what_a_search_among_them_finds():
    vectors = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    units, rows = directions(vectors, vectors.mean(0)), torch.tensor([3, 17, 30])
    found = nearest(units, 10).with_copies(rows)
    searched = nearest(torch.cat((units, units[rows])), 10)
    assert torch.allclose(found.similarity, searched.similarity, atol=1e-5)
    original = torch.cat((torch.arange(40), rows))  # equally near vectors may be in another order
    for ours, theirs in zip(original[found.places].tolist(), original[searched.places].tolist(), strict=True):
        assert sorted(ours) == sorted(theirs)
    assert (found.places != torch.arange(43)[:, None]).all()


def test_cells_are_made_of_every_cluster_though_clusters_come_in_turn(monkeypatch):
    monkeypatch.setattr(neighbours, "SAMPLED", 14)  # every fourth of 3,200 rows would be in one of ten clusters of 40
    units = F.normalize(clusters(3200), dim=-1)
    near = (units @ neighbours._centres(units).T).amax(1)
    assert float(near.mean()) > 0.75
