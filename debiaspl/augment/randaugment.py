"""RandAugment (Cubuk et al., 2020) with Cutout, the strong view of FixMatch, with its own draw for every image."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from debiaspl.augment.batch import constant, uniform
from debiaspl.augment.operations import CODES, FAMILIES, OPERATIONS, Family, check_names
from debiaspl.data.images import check_pixels
from debiaspl.debias.correction import within
from debiaspl.kernels import holds

GREY = 127
SORTED = ("identity", *(name for family in FAMILIES for name in family.build))
"""Families are adjacent, so that the sorted images of one family are one slice."""
RANKS = torch.tensor([SORTED.index(name) for name in OPERATIONS])

BYTES_AT_ONCE = 1 << 17
"""Indices take eight bytes per byte of the image: this many still fit in the cache."""


@dataclass(frozen=True, eq=False)
class Draws:
    """The random choices for each image of a batch."""

    operation: Tensor
    """int64, (draws, N): indices into OPERATIONS, in order of application; 0, identity, if none is applied."""
    value: Tensor
    """float64, (draws, N), in Pillow's units."""
    box: Tensor
    """int64, (2, 2, N): first row of the grey square and the row after its last, then columns; may cross the border."""


@dataclass(frozen=True)
class RandAugment:
    """A few random operations of random strength, then a grey square: called with uint8 images (N, C, H, W) and a
    generator. The first call may fill small tables; make it before a CUDA graph capture."""

    operations: tuple[str, ...] = OPERATIONS
    """Operations to draw from, uniformly and with replacement."""
    draws: int = 2
    """Operations drawn per image."""
    probability: float = 0.5
    """Probability with which each drawn operation is applied."""
    levels: int | None = 10
    """Magnitudes are the integer levels 1 to levels - 1; None for any real magnitude in the range."""
    cutout: tuple[float, float] = (0.5, 0.5)
    """Smallest and largest side of the grey square, as a share of the image's side; (0, 0) for no square."""

    @classmethod
    def fixmatch(cls) -> "RandAugment":
        """As in FixMatch."""
        return cls()

    @classmethod
    def benchmark(cls) -> "RandAugment":
        """As in larger benchmarks."""
        return cls(draws=3, probability=1.0, levels=None, cutout=(0.0, 0.5))

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        check_names(self.operations)
        within("draws", self.draws, "[0, inf)")
        within("probability", self.probability, "[0, 1]")
        if self.levels is not None:
            within("levels", self.levels, "[2, inf)")
        if not (len(self.cutout) == 2 and 0 <= self.cutout[0] <= self.cutout[1]):
            raise ValueError(f"cutout is {self.cutout}, expected (smallest, largest) share of the side, 0 or more.")

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.apply(images, self.draw(images, generator))

    def draw(self, images: Tensor, generator: torch.Generator | None = None) -> Draws:
        """Make the random choices for a batch of this shape and device; pixels are not used."""
        check_pixels(images)
        count, _, height, width = images.shape
        numbers = uniform(4 * self.draws + 3, images, generator)
        which, applied, size, sign = numbers[:-3].view(4, self.draws, count).unbind()
        choices = constant(tuple(CODES[name] for name in self.operations), torch.int64, images.device)
        codes = choices.take((which * len(choices)).long())
        codes = codes * (applied < self.probability)
        if self.levels is None:
            value = continuous(codes, size, height, width)
        else:
            value = stepped(codes, size, sign, self.levels, height, width)
        least, largest = self.cutout
        return Draws(codes, value, squares(numbers[-3] * (largest - least) + least, numbers[-2:], images))

    def apply(self, images: Tensor, draws: Draws) -> Tensor:
        """Apply the choices; nothing random is left."""
        if holds(images) and self.draws:
            from debiaspl.kernels.views_triton import operate

            return operate(images.contiguous(), draws.operation, draws.value, draws.box, GREY)
        # On a CPU each operation gets only the rows that drew it. Elsewhere every operation gets every row and the
        # results are selected: more arithmetic, but no wait for the device, as a CUDA graph needs.
        mix = by_rows if images.device.type == "cpu" else by_masks
        return hide_(mix(images, draws.operation, draws.value), draws.box)


def squares(fraction: Tensor, centre: Tensor, images: Tensor) -> Tensor:
    """``Draws.box``: ``fraction`` are their sides as shares of the image's, (N,), ``centre``, uniform in [0, 1), their
    positions, (2, N)."""
    height, width = images.shape[2:]
    sides = constant(((height,), (width,)), torch.float64, images.device)
    size = (sides * fraction).round_().int()
    first = (sides * centre).int().sub_(size >> 1)
    return torch.stack((first, first + size), 1)


def hide_(images: Tensor, box: Tensor) -> Tensor:
    """Paint the squares grey, in place."""
    height, width = images.shape[2:]
    top, bottom, left, right = box.reshape(4, -1, 1, 1, 1).unbind()
    y = constant(range(height), torch.int32, images.device).unsqueeze(1)
    x = constant(range(width), torch.int32, images.device)
    rows, columns = (y >= top) & (y < bottom), (x >= left) & (x < right)
    # Hidden bytes become 255, then 127. A masked fill of bytes is twenty times as slow on a CPU.
    hidden = (rows.view(torch.uint8) & columns.view(torch.uint8)).mul_(255)
    return images.bitwise_or_(hidden).bitwise_xor_(hidden.bitwise_and_(255 - GREY))


SIGNED = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def magnitude(name: str, level: int, levels: int, height: int, width: int) -> tuple[float, float, float]:
    """FixMatch's value at `level` of `levels`, without its sign, and the range of a continuous magnitude."""
    side = width if name == "translate_x" else height
    match name:
        case "brightness" | "color" | "contrast" | "sharpness":
            return 0.05 + 0.9 * level / levels, 0.05, 0.95
        case "posterize":
            return 4 + int(4 * level / levels), 4, 8
        case "rotate":
            return int(30 * level / levels), -30, 30
        case "shear_x" | "shear_y":
            return 0.3 * level / levels, -0.3, 0.3
        case "solarize":
            return 256 - int(256 * level / levels), 0, 256
        case "translate_x" | "translate_y":
            return int(0.3 * level / levels * side), -0.3 * side, 0.3 * side
    return 0, 0, 0


def stepped(codes: Tensor, size: Tensor, sign: Tensor, levels: int, height: int, width: int) -> Tensor:
    """Values at the integer levels 1 to `levels` - 1; `size` and `sign` are uniform in [0, 1)."""
    level = (size * (levels - 1)).long() + 1
    negative = (sign < 0.5).long()
    table = _levels(levels, height, width, codes.device)
    return table.take((negative * len(OPERATIONS) + codes) * levels + level)


def continuous(codes: Tensor, size: Tensor, height: int, width: int) -> Tensor:
    """Values anywhere in the range of the operation; `size` is uniform in [0, 1)."""
    low, span = _limits(height, width, codes.device)
    value = low.take(codes) + span.take(codes) * size
    return torch.where(codes == CODES["posterize"], value.floor(), value)


# Tables are made on the CPU and moved: in a CUDA graph capture that fails, instead of caching the graph's memory.
@lru_cache(maxsize=64)
def _levels(levels: int, height: int, width: int, device: torch.device) -> Tensor:
    values = [[magnitude(name, level, levels, height, width)[0] for level in range(levels)] for name in OPERATIONS]
    table = torch.tensor(values, dtype=torch.float64)
    sign = torch.tensor([[-1.0 if name in SIGNED else 1.0] for name in OPERATIONS], dtype=torch.float64)
    return torch.stack((table, sign * table)).to(device)


@lru_cache(maxsize=64)
def _limits(height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    ranges = [magnitude(name, 0, 1, height, width)[1:] for name in OPERATIONS]
    low, high = torch.tensor(ranges, dtype=torch.float64).unbind(1)
    return low.to(device), (high - low).to(device)


def by_rows(images: Tensor, codes: Tensor, values: Tensor) -> Tensor:
    """Apply `OPERATIONS[codes[d, i]]` with `values[d, i]` to image i, for one d after the other: sort the images by
    operation, change those that drew one, and write them back."""
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
    """The same with static shapes: apply every operation to all images, and select."""
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
