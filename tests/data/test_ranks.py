"""Several ranks read one set from files: each its own images, with the pixels that one process would have seen."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from debiaspl.data import feed
from debiaspl.data.open import read_place
from tests.data.photos import write_shards
from tests.ranks import on_ranks

pytestmark = pytest.mark.slow

STEPS = 5
"""Of 6 images from 20: the end of an epoch lies inside a batch, and inside a rank's part of it."""


def read(root: Path) -> list[tuple[list[int], Tensor]]:
    source = feed(read_place(root, 16), 6, 2, 3, torch.device("cpu"), workers=0)
    return [(drawn.positions.tolist(), torch.stack(drawn.pictures)) for drawn in (source[k] for k in range(STEPS))]


def test_ranks_read_unequal_shards_past_the_end_of_an_epoch(tmp_path):
    root = write_shards(tmp_path, per_class=10, shards=3)
    alone = read(root)
    for count in (2, 3):
        parts = on_ranks(count, read, root)
        for step, (positions, pictures) in enumerate(alone):
            assert [place for part in parts for place in part[step][0]] == positions
            assert torch.cat([part[step][1] for part in parts], dim=1).equal(pictures)
    assert len({place for positions, _ in alone for place in positions}) == 20
