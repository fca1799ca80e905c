"""The protocols of the literature: counts, properties, and that they are the same everywhere."""

import hashlib

import pytest
import torch
from hypothesis import given, settings, strategies as st

from debiaspl.data.splits import FewLabels, LabelShare, LongTail, Mismatch, Split, TwoTails, hold_out_labels
from debiaspl.recipes.cells import CELLS

CIFAR = torch.arange(10).repeat_interleave(5000)[torch.randperm(50_000, generator=torch.Generator().manual_seed(0))]


def counts(labels: torch.Tensor, positions: torch.Tensor) -> list[int]:
    return torch.bincount(labels[positions], minlength=int(labels.max()) + 1).tolist()


def overlap(split: Split) -> set[int]:
    return set(split.labeled.tolist()) & set(split.unlabeled.tolist())


@pytest.mark.parametrize(
    ("gamma", "fraction", "labels"), [(100, 0.1, 1244), (100, 0.3, 3726), (200, 0.1, 1125), (200, 0.3, 3365)]
)
def test_the_papers_four_label_counts(gamma, fraction, labels):
    split = LongTail(gamma, fraction).split(CIFAR, 1)
    assert len(split.labeled) == labels
    assert len(split.labeled) + len(split.unlabeled) == {100: 12_406, 200: 11_203}[gamma]


def test_mismatch_keeps_the_labels_and_balances_the_others():
    tail, balanced = Mismatch(200, 0.1, "long-tail").split(CIFAR, 3), Mismatch(200, 0.1, "balanced").split(CIFAR, 3)
    assert torch.equal(tail.labeled, balanced.labeled)
    assert torch.equal(tail.unlabeled, LongTail(200, 0.1).split(CIFAR, 3).unlabeled)
    assert counts(CIFAR, balanced.unlabeled) == [4500] * 10
    assert not overlap(balanced)


@pytest.mark.parametrize(
    ("kind", "first", "last"), [("consistent", 4000, 40), ("uniform", 4000, 4000), ("reversed", 40, 4000)]
)
def test_two_tails_has_the_literatures_counts(kind, first, last):
    split = TwoTails(500, 4000, 100, kind).split(CIFAR, 0)
    labeled, unlabeled = counts(CIFAR, split.labeled), counts(CIFAR, split.unlabeled)
    assert labeled == [int(500 * 100 ** (-c / 9)) for c in range(10)]
    assert (unlabeled[0], unlabeled[-1]) == (first, last)
    assert not overlap(split)
    both = TwoTails(500, 4000, 100, kind, labeled_also_unlabeled=True).split(CIFAR, 0)
    assert torch.equal(both.labeled, split.labeled)
    assert len(overlap(both)) == len(split.labeled)


def published(largest: int, gamma: int, classes: int) -> list[int]:
    """N_k = N_1 gamma^(-(k - 1) / (K - 1)), as DARP, DASO and ACR write it, rounded down, in whole numbers: the largest
    n with n^(K - 1) gamma^(k - 1) <= N_1^(K - 1). No rounding of a power can hide in it."""
    return [
        max(n for n in range(largest + 1) if n ** (classes - 1) * gamma**k <= largest ** (classes - 1))
        for k in range(classes)
    ]


TAILS = [cell for cell in CELLS.values() if cell.protocol.settings.get("unlabeled") == "consistent"]


@pytest.mark.parametrize("cell", TAILS, ids=lambda cell: cell.name)
def test_the_standard_protocols_have_the_counts_of_their_papers(cell):
    classes = 10 if cell.data == "cifar10" else 100
    labels = torch.arange(50_000) % classes
    sizes = cell.protocol.settings
    labeled = published(sizes["labeled_max"], round(sizes["gamma"]), classes)
    unlabeled = published(sizes["unlabeled_max"], round(sizes["gamma"]), classes)
    for kind, expected in (
        ("consistent", unlabeled),
        ("uniform", [sizes["unlabeled_max"]] * classes),
        ("reversed", unlabeled[::-1]),
    ):
        name = cell.name if kind == "consistent" else f"{cell.name}-{kind}"
        split = CELLS[name].protocol.build("protocol").split(labels, 0)
        assert counts(labels, split.labeled) == labeled
        # Of the protocols of ACR, CCL, CDMAD and CoSSL, which add the labeled images to the M1.
        assert counts(labels, split.unlabeled) == [own + known for own, known in zip(expected, labeled, strict=True)]


def test_what_papers_say_of_the_standard_protocols():
    """The list that the released code of ACR and of DASO prints at 500 and gamma 100, and some smallest classes."""
    assert published(500, 100, 10) == [500, 299, 179, 107, 64, 38, 23, 13, 8, 5]
    assert [published(*cell, 10)[-1] for cell in ((4000, 100), (1500, 150), (3000, 150))] == [40, 10, 20]


def test_unlabeled_images_may_have_a_gamma_of_their_own():
    split = TwoTails(500, 4000, 150, "reversed", unlabeled_gamma=30).split(CIFAR, 0)
    assert counts(CIFAR, split.labeled) == published(500, 150, 10)
    assert counts(CIFAR, split.unlabeled) == published(4000, 30, 10)[::-1]


sizes = st.lists(st.integers(12, 60), min_size=2, max_size=6)


@settings(deadline=None, max_examples=40)
@given(sizes=sizes, gamma=st.floats(1, 6), fraction=st.floats(0.05, 0.9), seed=st.integers(0, 2**32 - 1))
def test_long_tail_is_disjoint_stratified_and_seeded(sizes, gamma, fraction, seed):
    labels = torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]
    split = LongTail(gamma, fraction).split(labels, seed)
    kept = [int(min(sizes) * gamma ** (-c / (len(sizes) - 1))) for c in range(len(sizes))]
    assert not overlap(split)
    assert counts(labels, torch.cat(split)) == kept
    for known, size in zip(counts(labels, split.labeled), kept, strict=True):
        assert known >= fraction * size - 1e-6
        assert known - 1 < fraction * size
    again, other = LongTail(gamma, fraction).split(labels, seed), LongTail(gamma, fraction).split(labels, seed ^ 1)
    assert all(torch.equal(a, b) for a, b in zip(split, again, strict=True))
    assert counts(labels, other.labeled) == counts(labels, split.labeled)
    everything = LongTail(gamma, fraction, labeled_also_unlabeled=True).split(labels, seed)
    assert sorted(torch.cat(split).tolist()) == everything.unlabeled.tolist()


@settings(deadline=None, max_examples=40)
@given(sizes=sizes, per_class=st.integers(1, 10), fraction=st.floats(0.1, 0.9), seed=st.integers(0, 2**32 - 1))
def test_validation_comes_from_the_labels_and_leaves_one_of_each_class(sizes, per_class, fraction, seed):
    labels = torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])
    split = FewLabels(per_class).split(labels, seed)
    expected = min(round(fraction * per_class), per_class - 1)
    if expected == 0:
        with pytest.raises(ValueError, match="leave none for validation"):
            hold_out_labels(labels, split, fraction, seed)
        return
    smaller, validation = hold_out_labels(labels, split, fraction, seed)
    assert counts(labels, validation) == [expected] * len(sizes)
    assert sorted(torch.cat([smaller.labeled, validation]).tolist()) == split.labeled.tolist()
    assert torch.equal(smaller.unlabeled, split.unlabeled)


BY_TURNS = torch.arange(50_000) * 7 % 10

FOLDS = {
    "few_labels 4": (FewLabels(4), 0, "a231db4a145c84ba"),
    "few_labels 25": (FewLabels(25), 4, "3cf42e42a03b2775"),
    "long_tail 100 10 %": (LongTail(100, 0.1), 0, "8c4310420e4e0312"),
    "long_tail 200 30 %": (LongTail(200, 0.3), 4, "710af71bbe98ffa4"),
    "mismatch": (Mismatch(200, 0.1), 0, "ab42b0d16195b958"),
    "two_tails": (TwoTails(500, 4000, 100), 0, "671f706f5e9992a5"),
    "reversed": (TwoTails(1500, 3000, 150, "reversed"), 1, "f77142e36bfd6d5d"),
}


def digest(split: Split) -> str:
    return hashlib.sha256(b"|".join(part.numpy().astype("<i8").tobytes() for part in split)).hexdigest()[:16]


@pytest.mark.parametrize("fold", FOLDS)
def test_folds_are_the_same_on_every_machine(fold):
    protocol, seed, expected = FOLDS[fold]
    assert digest(protocol.split(BY_TURNS, seed)) == expected


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (FewLabels(0), "per_class is 0"),
        (FewLabels(21), "per_class is 21, but class 0 has 20 images; expected 1 to 20"),
        (FewLabels(20, False), "every image is labeled"),
        (LabelShare(0.0), "share"),
        (LabelShare(1.0), "share"),
        (LongTail(0.5, 0.1), "gamma is 0.5"),
        (LongTail(50, 0.1), "leaves class 7 without an image"),
        (LongTail(2, 0), "labeled_fraction is 0"),
        (Mismatch(2, 0.1, "uniform"), "unlabeled is 'uniform', expected 'long-tail' or 'balanced'"),
        (TwoTails(5, 10, 2, "flat"), "expected 'consistent', 'uniform' or 'reversed'"),
        (TwoTails(5, 16, 2), "class 0 has 20 images, but 5 labeled and 16 unlabeled"),
    ],
)
def test_impossible_protocols_teach(protocol, message):
    labels = torch.arange(10).repeat_interleave(20)
    with pytest.raises(ValueError, match=message):
        protocol.split(labels, 0)


def test_a_label_of_every_image_is_needed():
    with pytest.raises(ValueError, match="1 images have no label"):
        FewLabels(1).split(torch.tensor([0, -1, 1]), 0)


@pytest.mark.parametrize(("share", "expected"), [(0.01, [13, 7, 9, 1]), (0.002, [3, 1, 2, 1])])
def test_each_class_gives_its_share_rounded_and_one_at_least(share, expected):
    labels = torch.cat([torch.full((count,), label) for label, count in enumerate((1300, 732, 900, 40))])
    split = LabelShare(share).split(labels, seed=0)
    assert counts(labels, split.labeled) == expected
    assert sorted(torch.cat(split).tolist()) == list(range(len(labels)))
    assert len(LabelShare(share, labeled_also_unlabeled=True).split(labels, 0).unlabeled) == len(labels)
    assert not torch.equal(split.labeled, LabelShare(share).split(labels, 1).labeled)
