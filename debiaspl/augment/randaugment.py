"""RandAugment (Cubuk et al., 2020) with Cutout, the strong view of FixMatch, with its own draw for every image."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from debiaspl._checks import within
from debiaspl.augment.batch import check_images, constant, counting, uniform
from debiaspl.augment.magnitude import continuous, stepped
from debiaspl.augment.mix import mix
from debiaspl.augment.operations import CODES, OPERATIONS, check_names
from debiaspl.kernels import holds

GREY = 127


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
    generator.

    The number of random draws depends only on the settings and the size of the batch, so that a seeded stream is the
    same for any images. The first call may fill small tables; make it before a CUDA graph capture.
    """

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
    def fixmatch(cls, operations: tuple[str, ...] = OPERATIONS) -> "RandAugment":
        """As in FixMatch: two operations, each applied half of the time, at nine levels; a square of half the side."""
        return cls(operations=operations)

    @classmethod
    def benchmark(cls, operations: tuple[str, ...] = OPERATIONS) -> "RandAugment":
        """As in larger benchmarks: three operations, always applied, at any strength; a square up to half the side."""
        return cls(operations=operations, draws=3, probability=1.0, levels=None, cutout=(0.0, 0.5))

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        check_names(self.operations)
        if not self.operations:
            raise ValueError(f"operations is empty, expected at least one of {', '.join(OPERATIONS)}.")
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
        check_images(images)
        count, _, height, width = images.shape
        numbers = uniform(4 * self.draws + 3, images, generator)
        which, applied, size, sign = numbers[:-3].view(4, self.draws, count).unbind()
        codes = _codes(self.operations, images.device).take((which * len(self.operations)).long())
        codes = codes * (applied < self.probability)
        if self.levels is None:
            value = continuous(codes, size, height, width)
        else:
            value = stepped(codes, size, sign, self.levels, height, width)
        least, largest = self.cutout
        return Draws(codes, value, squares(numbers[-3] * (largest - least) + least, numbers[-2:], images))

    def apply(self, images: Tensor, draws: Draws) -> Tensor:
        """Apply the choices; nothing random is left."""
        check_images(images)
        if draws.operation.shape[1] != images.shape[0]:
            raise ValueError(
                f"the draws are for {draws.operation.shape[1]} images, but there are {images.shape[0]} images. "
                "Draw again with this batch."
            )
        if holds(images) and self.draws:
            from debiaspl.kernels.views_triton import operate

            return operate(images.contiguous(), draws.operation, draws.value, draws.box, GREY)
        return hide_(mix(images, draws.operation, draws.value), draws.box)


@lru_cache(maxsize=64)
def _codes(operations: tuple[str, ...], device: torch.device) -> Tensor:
    return torch.tensor([CODES[name] for name in operations]).to(device)


def squares(fraction: Tensor, centre: Tensor, images: Tensor) -> Tensor:
    """First row of each square and the row after its last, then the same for columns: (2, 2, N); may cross the border.

    `fraction` is the side of the square as a share of the image's side, (N,); `centre`, uniform in [0, 1), is its
    position, (2, N).
    """
    height, width = images.shape[2:]
    sides = constant(((height,), (width,)), torch.float64, images.device)
    size = (sides * fraction).round_().int()
    first = (sides * centre).int().sub_(size >> 1)
    return torch.stack((first, first + size), 1)


def hide_(images: Tensor, box: Tensor) -> Tensor:
    """Paint the squares grey, in place."""
    height, width = images.shape[2:]
    top, bottom, left, right = box.reshape(4, -1, 1, 1, 1).unbind()
    y, x = counting(height, torch.int32, images.device).unsqueeze(1), counting(width, torch.int32, images.device)
    rows, columns = (y >= top) & (y < bottom), (x >= left) & (x < right)
    # Hidden bytes become 255, then 127. A masked fill of bytes is twenty times as slow on a CPU.
    hidden = (rows.view(torch.uint8) & columns.view(torch.uint8)).mul_(255)
    return images.bitwise_or_(hidden).bitwise_xor_(hidden.bitwise_and_(255 - GREY))
