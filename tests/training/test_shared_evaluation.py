"""Sets that ranks predict together: each reads its share, and all are told what one process would have found."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from debiaspl.data import ImageSet, LazyImages
from debiaspl.data.open import read_place
from debiaspl.debias import ranks
from debiaspl.models import Network
from debiaspl.training import RunError
from debiaspl.training.classifier import mean_features
from debiaspl.training.evaluate import evaluate, predict_all
from debiaspl.training.group import ALONE, Group, Ranks
from debiaspl.training.parts import PARTS
from tests.ranks import on_ranks

IMAGES, BATCH = 23, 5
BAD = [7, *range(15, 20)]
"""One in the middle of a batch, and a whole batch."""


@dataclass(frozen=True)
class Counted:
    """Files, and which of them were read."""

    files: Any
    opened: list[int]

    def __len__(self) -> int:
        return len(self.files)

    def read(self, position: int) -> bytes:
        self.opened.append(position)
        return self.files.read(position)


def group_of() -> Group:
    """That of the ranks which ``on_ranks`` has started."""
    if ranks.count() == 1:
        return ALONE
    return Ranks(seconds=0.5)


def untrained() -> Network:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network: Network = PARTS["network"]["small"](num_classes=2, channels=3, width=4)
    return network.eval()


@mock.patch("debiaspl.training.evaluate.BATCH", BATCH)
@mock.patch("debiaspl.training.classifier.BATCH", BATCH)
def found(photos: Path) -> dict[str, Any]:
    """What this rank, or one process, finds in sets of several kinds."""
    model, group = untrained(), group_of()
    images = read_place(photos, 24).select(range(IMAGES))
    stored = images.images
    assert isinstance(stored, LazyImages)
    counted = Counted(stored.files, [])
    readable = images.select([position for position in range(IMAGES) if position not in BAD])
    sets = {
        "files": replace(images, images=replace(stored, files=counted)),
        "two": images.select([1, 0]),
        "memory": replace(readable, images=readable.images[torch.arange(len(readable))]),
    }
    told = {name: evaluate(model, one, group) for name, one in sets.items()}
    return {
        "opened": set(counted.opened),
        "csv": {name: one.to_csv() for name, one in told.items()},
        "skipped": list(told["files"].skipped.items()),
        "probabilities": {name: predict_all(model, one, group) for name, one in sets.items()},
        "features": {name: mean_features(model, one, group) for name, one in sets.items()},
    }


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    from tests.data.photos import write_folder  # every rank imports this file, and has no use for scikit-learn

    folder = write_folder(tmp_path_factory.mktemp("photos") / "data", per_class=12)
    names = read_place(folder, 24).ids
    for position in BAD:
        (folder / names[position]).write_bytes(b"\xff\xd8\xff broken")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_ranks_find_what_one_process_finds_and_each_reads_its_share(photos, count):
    alone, together = found(photos), on_ranks(count, found, photos)
    names = read_place(photos, 24).ids
    assert [name for name, _ in alone["skipped"]] == [names[position] for position in BAD]
    assert alone["opened"] == set(range(IMAGES))
    for rank, one in enumerate(together):
        assert one["csv"] == alone["csv"]
        assert one["skipped"] == alone["skipped"]
        for name, expected in alone["probabilities"].items():
            assert one["probabilities"][name].equal(expected)
        for name, expected in alone["features"].items():
            torch.testing.assert_close(one["features"][name], expected, rtol=1e-6, atol=1e-9)
            assert one["features"][name].equal(together[0]["features"][name])
        share = {position for position in range(IMAGES) if position // BATCH % count == rank}
        assert one["opened"] == share  # also of batch 3, which has no image that can be read
    assert alone["probabilities"]["files"][BAD].tolist() == [[0.5, 0.5]] * len(BAD)


class Sent(Group):
    """Keeps what this rank sends."""

    def everyone(self, value: Any) -> list[Any]:
        self.value = value
        return [value]


@mock.patch("debiaspl.training.evaluate.BATCH", BATCH)
def test_ranks_send_the_positions_of_a_batch_without_those_of_all_images():
    """A view of a tensor is sent with the whole tensor, in every batch again."""
    group, images = Sent(), ImageSet.of(torch.zeros(IMAGES, 3, 8, 8, dtype=torch.uint8), [0, 1] * 11 + [0])
    evaluate(untrained(), images, group)
    assert len(group.value) == 5
    assert all(one.untyped_storage().nbytes() == 8 * len(one) for one, *_ in group.value)


class Fails(torch.nn.Module):
    def embed(self, pictures: Tensor) -> Tensor:
        raise RunError("no room")


def one_fails(photos: Path) -> str:
    group, images = group_of(), read_place(photos, 24).select([0, 1])
    with pytest.raises(RunError) as caught, group.watched():
        evaluate(Fails() if group.first else untrained(), images, group)
    return str(caught.value)


@pytest.mark.slow
def test_a_rank_that_fails_ends_those_that_wait_for_it(photos):
    """The second has nothing to predict, and waits for the predictions of the first."""
    failed, waited = on_ranks(2, one_fails, photos)
    assert failed == "no room"
    assert waited.startswith("another rank has")
