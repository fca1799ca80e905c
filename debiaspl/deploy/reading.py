"""Photos of a folder in batches, a batch ahead of the network that sees them; memory stays flat."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.data.decode import BadImage
from debiaspl.deploy.saved import SavedModel

MOST_IMAGES, MOST_BYTES = 256, 2**23
"""Of a batch; the same on every machine, because sums in a network may depend on it in the last bit."""


class ReadBatch(NamedTuple):
    """Photos that could be read, and those that could not."""

    files: list[str]
    pictures: Tensor
    """uint8, (N, C, H, W)."""
    bad: dict[str, str]
    """File -> reason."""


def in_batches(model: SavedModel, root: Path, files: Sequence[str], workers: int = 4) -> Iterator[ReadBatch]:
    """All photos once, in their order, as the model takes them."""
    size = max(1, min(MOST_IMAGES, MOST_BYTES // (model.channels * model.size[0] * model.size[1])))
    chunks = [files[start : start + size] for start in range(0, len(files), size)]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")

    def begin(chunk: Sequence[str]) -> list[Future[Tensor]]:
        return [pool.submit(model.read, root / file) for file in chunk]

    try:
        ahead = begin(chunks[0])
        for number, chunk in enumerate(chunks):
            under_way, ahead = ahead, begin(chunks[number + 1]) if number + 1 < len(chunks) else []
            yield _collected(chunk, under_way, model)
    finally:
        # After an interrupt, the files under way end and no other one begins.
        pool.shutdown(cancel_futures=True)


def _collected(files: Sequence[str], under_way: list[Future[Tensor]], model: SavedModel) -> ReadBatch:
    good: list[str] = []
    pictures: list[Tensor] = []
    bad: dict[str, str] = {}
    for file, future in zip(files, under_way, strict=True):
        try:
            pictures.append(future.result())
            good.append(file)
        except BadImage as error:
            bad[file] = str(error)
    stacked = torch.stack(pictures) if pictures else torch.empty((0, model.channels, *model.size), dtype=torch.uint8)
    return ReadBatch(good, stacked, bad)
