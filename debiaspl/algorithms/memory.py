"""What is remembered of the latest images: rows of buffers, written over the oldest."""

import torch
from torch import Tensor


def write_over_oldest(written: Tensor, *pairs: tuple[Tensor, Tensor]) -> None:
    """Write rows into each buffer, (memory, ...), given as (buffer, rows); ``written``, the rows so far, counts on."""
    (buffer, rows), *_ = pairs
    memory, count = len(buffer), len(rows)
    if count > memory:
        raise ValueError(
            f"memory is {memory}, but a batch has {count} images or views to remember; expected at least as many."
        )
    places = (written + torch.arange(count, device=rows.device)) % memory
    for buffer, rows in pairs:
        buffer.index_copy_(0, places, rows.to(buffer.dtype))
    written.add_(count)
