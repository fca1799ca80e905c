"""The label-share protocol: the same share of every class, as the ImageNet experiments draw it."""

import pytest
import torch

from debiaspl.data.splits import label_share
from debiaspl.data.task import PROTOCOLS

LABELS = torch.cat([torch.full((count,), label) for label, count in enumerate((1300, 732, 900, 40))])


def counts(positions: torch.Tensor) -> list[int]:
    return torch.bincount(LABELS[positions], minlength=4).tolist()


@pytest.mark.parametrize(("share", "expected"), [(0.01, [13, 7, 9, 1]), (0.002, [3, 1, 2, 1])])
def test_each_class_gives_its_share_rounded_and_one_at_least(share, expected):
    split = label_share(LABELS, share, seed=0)
    assert counts(split.labeled) == expected
    assert sorted(torch.cat((split.labeled, split.unlabeled)).tolist()) == list(range(len(LABELS)))


def test_the_order_of_images_does_not_matter_to_the_counts_and_the_seed_decides():
    first, again, other = (label_share(LABELS, 0.01, seed).labeled for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_labeled_images_serve_as_unlabeled_ones_only_when_asked():
    protocol = PROTOCOLS["label-share"](share=0.01, labeled_also_unlabeled=True)
    assert len(protocol.split(LABELS, 0).unlabeled) == len(LABELS)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0])
def test_a_share_outside_its_range_teaches(share):
    with pytest.raises(ValueError, match=r"expected a share of each class in \(0, 1\)"):
        label_share(LABELS, share, 0)
