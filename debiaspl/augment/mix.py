"""Applies different operations and values to every image of a batch."""

import math

import torch
from torch import Tensor

from debiaspl.augment.operations import CODES, FAMILIES, OPERATIONS, Family

SORTED = ("identity", *(name for family in FAMILIES for name in family.build))
"""Families are adjacent, so that the sorted images of one family are one slice."""
RANKS = torch.tensor([SORTED.index(name) for name in OPERATIONS])

BYTES_AT_ONCE = 1 << 17
"""Indices take eight bytes per byte of the image: this many still fit in the cache."""


def mix(images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
    """Apply `OPERATIONS[codes[d, i]]` with `values[d, i]` to image i, for one d after the other and all i at once.

    On a CPU each operation gets only the rows that drew it. Elsewhere every operation gets every row and the results
    are selected: more arithmetic, but static shapes and no wait for the device, as a CUDA graph needs.
    """
    pick = by_rows if images.device.type == "cpu" else by_masks
    return pick(images, codes, values)


def by_rows(images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
    """Sort the images by operation, change those that drew one, and write them back."""
    mixed = images.clone(memory_format=torch.contiguous_format)
    for ranks, value in zip(RANKS.take(codes).unbind(), values.unbind(), strict=True):
        counts = ranks.bincount(minlength=len(SORTED)).tolist()
        rows = ranks.argsort()[counts[0] :]
        part = mixed.index_select(0, rows)
        _work(part, value.take(rows), counts[1:])
        _words(mixed).index_copy_(0, rows, _words(part))
    return mixed


def _work(images: Tensor, values: Tensor, counts: list[int]) -> None:
    """Change images in place; they are sorted by operation, `counts` of each."""
    limit = max(1, BYTES_AT_ONCE // math.prod(images.shape[1:]))
    pairs = zip(torch.split(images, counts), torch.split(values, counts), strict=True)
    parts = dict(zip(SORTED[1:], pairs, strict=True))
    first = 0
    for family in FAMILIES:
        built = [build(*parts[name]) for name, build in family.build.items() if len(parts[name][1])]
        if not built:
            continue
        prepared = torch.cat(built)
        for start in range(0, len(prepared), limit):
            some = prepared[start : start + limit]
            here = slice(first + start, first + start + len(some))
            images[here] = family.finish(images[here], some, values[here])
        first += len(prepared)


def _words(images: Tensor) -> Tensor:
    """View eight bytes as one number if the size of an image allows it: rows are copied element by element."""
    flat = images.flatten(1)
    return flat if flat.shape[1] % 8 else flat.view(torch.int64)


def by_masks(images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
    mixed = images.clone(memory_format=torch.contiguous_format)
    for code, value in zip(codes.unbind(), values.unbind(), strict=True):
        before = mixed
        for family in FAMILIES:
            drawn, built = _all(family, before, code, value)
            mixed = torch.where(_beside(drawn, mixed), family.finish(before, built, value), mixed)
    return mixed


def _all(family: Family, images: Tensor, code: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Mask of the images that drew an operation of this family, and what it built for each."""
    drawn, prepared = torch.zeros_like(code, dtype=torch.bool), None
    for name, build in family.build.items():
        mine, built = code == CODES[name], build(images, value)
        drawn = drawn | mine
        prepared = built if prepared is None else torch.where(_beside(mine, built), built, prepared)
    assert prepared is not None
    return drawn, prepared


def _beside(mask: Tensor, other: Tensor) -> Tensor:
    return mask.view(-1, *[1] * (other.dim() - 1))
