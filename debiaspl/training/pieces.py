"""A batch in pieces, where a device cannot hold the whole."""

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from debiaspl.algorithms import Batch


def pieces(batch: Batch, truth: Tensor, count: int) -> Iterator[tuple[Batch, Tensor]]:
    """``count`` equal parts of a batch, with the truth of their unlabeled images."""
    if count == 1:
        yield batch, truth
        return
    for number in range(count):

        def part(rows: Tensor, number: int = number) -> Tensor:
            size = len(rows) // count
            return rows[number * size : (number + 1) * size]

        yield (
            replace(
                batch,
                labeled=part(batch.labeled),
                labels=part(batch.labels),
                weak=tuple(part(view) for view in batch.weak),
                strong=tuple(part(view) for view in batch.strong),
                positions=part(batch.positions),
            ),
            part(truth),
        )
