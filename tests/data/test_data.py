"""Image sets, splits and streams."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from debiaspl.data import FewLabels, ImageSet, IndexStream, LongTail, Task, load


def image_set(labels: list[int], /, **changes: object) -> ImageSet:
    values = {"images": torch.zeros(len(labels), 1, 2, 2, dtype=torch.uint8), "labels": torch.tensor(labels)}
    return ImageSet(**{**values, "classes": ("a", "b", "c"), **changes})


def test_select_and_hide():
    images = image_set([0, 1, 2, 1], ids=("w", "x", "y", "z"))
    chosen = images.select([3, 0])
    assert chosen.labels.tolist() == [1, 0]
    assert chosen.ids == ("z", "w")
    hidden = chosen.without_labels()
    assert hidden.labels.tolist() == [-1, -1]
    assert hidden.truth.tolist() == [1, 0]
    assert (images.counts(), hidden.counts()) == ([1, 2, 1], [0, 0, 0])
    assert repr(images) == "ImageSet(4 of 1 x 2 x 2, 4 with labels, classes=('a', 'b', 'c'))"


@pytest.mark.parametrize(
    ("labels", "changes", "message"),
    [
        ([0, 1], {"images": torch.zeros(2, 1, 2, 2)}, r"dtype torch.float32, expected uint8 \(N, C, H, W\)"),
        ([0, 1], {"images": torch.zeros(2, 2, 2, 3, dtype=torch.uint8)}, "permute"),
        ([0, 1], {"images": torch.zeros(0, 1, 2, 2, dtype=torch.uint8)}, "at least one image"),
        ([0, 3], {}, "run from 0 to 3, expected -1"),
        ([0, -2], {}, "run from -2 to 0"),
        ([0, 1], {"labels": torch.zeros(3, dtype=torch.int64)}, r"shape \(3,\) .* expected int64 \(2,\)"),
        ([0, 1], {"ids": ("one",)}, "1 ids for 2 images"),
        ([0, 0], {"classes": ("a", "a")}, "two or more different names"),
    ],
)
def test_wrong_image_sets_teach(labels, changes, message):
    with pytest.raises(ValueError, match=message):
        image_set(labels, **changes)


labelings = st.lists(st.integers(8, 40), min_size=2, max_size=6).map(
    lambda sizes: torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])
)


@settings(deadline=None, max_examples=40)
@given(labels=labelings, per_class=st.integers(1, 7), seed=st.integers(0, 2**32 - 1), overlap=st.booleans())
def test_few_labels_is_balanced_complete_and_seeded(labels, per_class, seed, overlap):
    labels = labels[torch.randperm(len(labels))]
    split = FewLabels(per_class, overlap).split(labels, seed)
    assert torch.bincount(labels[split.labeled]).tolist() == [per_class] * (int(labels.max()) + 1)
    everything = set(range(len(labels)))
    if overlap:
        assert split.unlabeled.tolist() == sorted(everything)
    else:
        assert set(split.labeled.tolist()) | set(split.unlabeled.tolist()) == everything
        assert not set(split.labeled.tolist()) & set(split.unlabeled.tolist())
    again = FewLabels(per_class, overlap).split(labels, seed)
    assert torch.equal(split.labeled, again.labeled)


@pytest.mark.parametrize("protocol", [FewLabels(1), LongTail(20.0, 0.1)])
def test_a_task_hides_the_labels_of_unlabeled_images(protocol):
    task = Task.of(load("digits"), protocol, seed=0)
    assert (task.unlabeled.labels == -1).all()
    assert (task.unlabeled.truth >= 0).all()
    assert (task.labeled.labels >= 0).all()
    assert not set(task.test.ids) & (set(task.labeled.ids) | set(task.unlabeled.ids))


@settings(deadline=None, max_examples=40)
@given(size=st.integers(1, 30), batch=st.integers(1, 50), seed=st.integers(0, 1000))
def test_a_stream_visits_every_image_equally_often(size, batch, seed):
    stream = IndexStream(size, batch, seed)
    drawn = torch.cat([stream[number] for number in range(2 * size)])
    assert torch.bincount(drawn, minlength=size).tolist() == [2 * batch] * size
    for start in range(0, 2 * batch * size, size):
        assert sorted(drawn[start : start + size].tolist()) == list(range(size))


def test_a_stream_can_be_entered_anywhere():
    forwards, backwards = IndexStream(7, 5, seed=3), IndexStream(7, 5, seed=3)
    batches = [forwards[number] for number in range(10)]
    for number in reversed(range(10)):
        assert torch.equal(backwards[number], batches[number])
    whole, other = IndexStream(50, 50, seed=0), IndexStream(50, 50, seed=1)
    assert not torch.equal(whole[0], other[0])
    assert not torch.equal(whole[0], whole[1])


@pytest.mark.parametrize("labels", [[[0], [1]], 1, [0, 1, 0]])
def test_labels_of_another_shape_are_refused(labels):
    with pytest.raises(ValueError, match=r"labels have shape .*, expected int64 \(2,\)"):
        ImageSet.of(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), labels)


def test_images_without_labels_need_no_classes_and_a_task_of_them_has_none():
    digits = load("digits").train
    images = ImageSet.of(digits.images, None)
    assert (images.classes, images.counts(), images.num_classes) == ((), [], 0)
    assert (images.labels == -1).all()
    task = Task.of_unlabeled(digits)
    assert (len(task.labeled), len(task.unlabeled), len(task.test)) == (0, len(digits), 0)
    assert not task.has_labels
    assert task.unlabeled.classes == ()
    assert (task.unlabeled.truth == -1).all()  # not even for monitors
    assert task.unlabeled.ids == digits.ids
    assert Task.of(load("digits"), FewLabels(1), seed=0).has_labels
    for classes in ((), ("one",)):
        with pytest.raises(ValueError, match="classes"):
            ImageSet(digits.images, digits.labels, classes)
    with pytest.raises(ValueError, match="expected at least one image"):
        ImageSet(digits.images[:0], digits.labels[:0], digits.classes)
