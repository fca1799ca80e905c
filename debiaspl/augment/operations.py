"""The fourteen operations of RandAugment by name: table lookups, affine maps, and blends with a duller image."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.augment.batch import constant
from debiaspl.data.images import check_pixels


@dataclass(frozen=True)
class Family:
    """Operations that differ in what they build for each image, and share the work on its pixels."""

    build: Mapping[str, Callable[[Tensor, Tensor], Tensor]]
    """For each operation: images and values -> lookup tables, matrices or dull images."""
    finish: Callable[[Tensor, Tensor, Tensor], Tensor]
    """Images, what was built for them, and values -> images."""


def autocontrast(images: Tensor, value: Tensor) -> Tensor:
    """Stretch each channel so that its darkest level becomes 0 and its lightest 255."""
    flat = images.flatten(2)
    low = flat.amin(2, keepdim=True).double()
    span = flat.amax(2, keepdim=True) - low
    # The last bit can decide between two levels: float64, a difference of two products, and 255 as a tensor, because
    # torch computes a number over a tensor as a reciprocal times the number.
    scale = constant(255, torch.float64, images.device) / span.clamp(min=1)
    stretched = (constant(range(256), torch.float64, images.device) * scale).sub_(low * scale).clamp_(0, 255)
    return torch.where(span > 0, stretched.to(torch.uint8), constant(range(256), torch.uint8, images.device))


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    table = constant(range(256), torch.float32, images.device) * beside(factor.float())
    return shared(table.clamp_(0, 255).to(torch.uint8), images)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey of the image, rounded to an integer level."""
    pixels = constant(images.shape[2] * images.shape[3], torch.float64, images.device)
    grey = beside((luma(images).sum(1) / pixels).add_(0.5).floor_().float())
    table = (constant(range(256), torch.float32, images.device) - grey).mul_(beside(factor.float())).add_(grey)
    return shared(table.clamp_(0, 255).to(torch.uint8), images)


def equalize(images: Tensor, value: Tensor) -> Tensor:
    """Equalize the histogram as far as integer levels allow; a channel with almost one level does not change."""
    flat = images.flatten(2).long()
    one = constant(1, torch.int32, images.device).expand_as(flat)
    histogram = torch.zeros(*flat.shape[:2], 256, dtype=torch.int32, device=images.device).scatter_add_(2, flat, one)
    lightest = histogram.gather(2, images.flatten(2).amax(2, keepdim=True).long())
    step = (flat.shape[2] - lightest).div_(255, rounding_mode="floor")
    before = histogram.cumsum(2, dtype=torch.int32).sub_(histogram).add_(step >> 1)
    # A float64 quotient of such integers never rounds up to the next one.
    spread = (before / step.clamp(min=1).double()).clamp_(max=255).to(torch.uint8)
    return torch.where(step > 0, spread, constant(range(256), torch.uint8, images.device))


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    masks = constant(tuple(256 - (1 << 8 - kept) for kept in range(9)), torch.uint8, images.device)
    table = constant(range(256), torch.uint8, images.device) & beside(masks.take(bits.clamp(0, 8).long()))
    return shared(table, images)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    kept = constant(range(256), torch.float64, images.device) < beside(threshold)
    inverted = constant(range(255, -1, -1), torch.uint8, images.device)
    return shared(torch.where(kept, constant(range(256), torch.uint8, images.device), inverted), images)


def beside(value: Tensor) -> Tensor:
    return value.view(-1, 1, 1)


def shared(table: Tensor, images: Tensor) -> Tensor:
    """The same table for all channels: (N, 1, 256) -> (N, C, 256)."""
    return table.expand(-1, images.shape[1], -1)


def look_up(images: Tensor, tables: Tensor, value: Tensor) -> Tensor:
    return tables.gather(2, images.flatten(2).long()).view(images.shape)


UNMOVED = ((1, 0, 0.5), (0, 1, 0.5))
"""A matrix is (2, 3): the pixel in column x and row y, both from 0, shows the point (a x + b y + c, d x + e y + f). So
c and f are the origin of the centre of the first pixel: (0.5, 0.5), if nothing moves."""


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Rotate about the centre. Pillow rounds the matrix to 15 digits, so that 90 degrees are exact."""
    radians = degrees.remainder(360.0).mul_(-math.pi / 180)
    cos, sin = radians.cos(), radians.sin()
    turn = torch.stack((cos, sin, -sin, cos), 1).round(decimals=15).view(-1, 2, 2)
    middle = constant((images.shape[3] / 2, images.shape[2] / 2), torch.float64, images.device)
    corner = middle - (turn * middle).sum(2)
    centre = corner.add_(turn[:, :, 0], alpha=0.5).add_(turn[:, :, 1], alpha=0.5)
    return torch.cat((turn, centre.unsqueeze(2)), 2)


def shear_x(images: Tensor, slope: Tensor) -> Tensor:
    return moved(slope, ((0, 1, 0.5), (0, 0, 0)))


def shear_y(images: Tensor, slope: Tensor) -> Tensor:
    return moved(slope, ((0, 0, 0), (1, 0, 0.5)))


def translate_x(images: Tensor, pixels: Tensor) -> Tensor:
    return moved(whole(pixels, images.shape[3]), ((0, 0, 1), (0, 0, 0)))


def translate_y(images: Tensor, pixels: Tensor) -> Tensor:
    return moved(whole(pixels, images.shape[2]), ((0, 0, 0), (0, 0, 1)))


def moved(amount: Tensor, where: tuple[tuple[float, ...], ...]) -> Tensor:
    along, still = (constant(entries, torch.float64, amount.device) for entries in (where, UNMOVED))
    return (amount.view(-1, 1, 1) * along).add_(still)


def whole(pixels: Tensor, side: int) -> Tensor:
    """Truncate to whole pixels, as Pillow does without rotation or shear; beyond the side the image is black anyway."""
    return (pixels + 0.5).floor_().clamp_(-side, side)


def nearest(images: Tensor, matrices: Tensor, value: Tensor) -> Tensor:
    """Pillow's `Image.transform` with AFFINE and NEAREST: 16.16 fixed-point coordinates. Points outside are read from a
    black border, one pixel wide, around a copy."""
    channels, height, width = images.shape[1:]
    fixed = (matrices * 65536.0).add_(0.5).floor_().int()
    along_x, along_y, start = fixed.view(-1, 2, 3, 1, 1).unbind(2)
    x, y = (constant(range(side), torch.int32, images.device) for side in (width, height))
    source = (y.unsqueeze(1) * along_y).add_(start).add_(65536) + x * along_x
    source_x, source_y = source.bitwise_right_shift_(16).unbind(1)
    index = source_y.clamp(0, height + 1).mul_(width + 2).add_(source_x.clamp(0, width + 1)).long()
    bordered = F.pad(images, (1, 1, 1, 1)).flatten(2)
    return bordered.gather(2, index.flatten(1).unsqueeze(1).expand(-1, channels, -1)).view(images.shape)


def color(images: Tensor, factor: Tensor) -> Tensor:
    return luma(images).to(torch.uint8).view(-1, 1, *images.shape[2:]).expand_as(images)


def luma(images: Tensor) -> Tensor:
    """Pillow's mode "L", (N, H W) of int32: the weights of ITU-R 601 in 1/65536, rounded."""
    if images.shape[1] == 1:
        return images.flatten(1).int()
    weights = constant(((19595,), (38470,), (7471,)), torch.int32, images.device)
    total = images.flatten(2).int().mul_(weights).sum(1, dtype=torch.int32)
    return total.add_(1 << 15).bitwise_right_shift_(16)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Pillow's `ImageFilter.SMOOTH`: a pixel times five plus its eight neighbours, over 13; borders do not change."""
    smoothed = images.clone()
    if min(images.shape[2:]) < 3:
        return smoothed
    wide = images.short()
    rows = (wide[:, :, :-2] + wide[:, :, 1:-1]).add_(wide[:, :, 2:])
    total = (rows[..., :-2] + rows[..., 1:-1]).add_(rows[..., 2:]).add_(wide[:, :, 1:-1, 1:-1], alpha=4)
    # total / 13, rounded: for all possible sums of thirteen bytes, a product and a shift give the same.
    smoothed[:, :, 1:-1, 1:-1] = total.int().mul_(80660).add_(1 << 19).bitwise_right_shift_(20)
    return smoothed


def towards(images: Tensor, dull: Tensor, factor: Tensor) -> Tensor:
    """Pillow's `Image.blend` in float32: it rounds product and sum, lerp and addcmul would round once."""
    start = dull.float()
    blend = (images.float() - start).mul_(factor.float().view(-1, 1, 1, 1)).add_(start)
    return blend.clamp_(0, 255).int().to(torch.uint8)  # via int32: three times as fast on a CPU


TABLES = (autocontrast, brightness, contrast, equalize, posterize, solarize)
AFFINE = (rotate, shear_x, shear_y, translate_x, translate_y)
FAMILIES = (
    Family({build.__name__: build for build in TABLES}, look_up),
    Family({build.__name__: build for build in AFFINE}, nearest),
    Family({"color": color, "sharpness": sharpness}, towards),
)
OPERATIONS = ("identity", *sorted(name for family in FAMILIES for name in family.build))
CODES = {name: code for code, name in enumerate(OPERATIONS)}
"""Their numbers, which kernels/views_triton.py knows too."""


def operation(name: str, images: Tensor, value: Tensor | Sequence[float] | float = 0.0) -> Tensor:
    """Apply one operation to every image, with one value each: the result is bit for bit that of Pillow.

    Values are in Pillow's units: the factor of `ImageEnhance` (brightness, color, contrast, sharpness), the bits of
    `ImageOps.posterize`, the threshold of `ImageOps.solarize`, the degrees of `Image.rotate`, and the coefficient of
    `Image.transform` with `AFFINE` (shears and translations, nearest neighbour, black outside). A single number applies
    to all images.
    """
    check_names((name,))
    check_pixels(images)
    if name == "identity":
        return images.clone()
    values = torch.as_tensor(value, dtype=torch.float64, device=images.device)
    good = values.round().clamp(1, 8) == values if name == "posterize" else values.isfinite()
    if values.shape not in ((), images.shape[:1]) or not bool(good.all()):
        expected = f"expected a finite number, of bits 1 to 8, or one for each of {len(images)} images"
        raise ValueError(f"{name} has the values {value!r:.60}, {expected}.")
    values = values.expand(len(images))
    family = next(family for family in FAMILIES if name in family.build)
    return family.finish(images, family.build[name](images, values), values)


def check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in CODES]
    if unknown or not names:
        found = f"unknown operation {', '.join(map(repr, unknown))}" if unknown else "operations is empty"
        raise ValueError(f"{found}. Expected one of {', '.join(OPERATIONS)}.")
