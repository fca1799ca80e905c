"""Views of a batch in Triton: crops, RandAugment's operations and conversion to floats, with one program per image.

The bits are those of the plain versions in ``debiaspl.augment``, so no product and sum may be one instruction
(``enable_fp_fusion=False``).
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

_RADIANS = tl.constexpr(-math.pi / 180)
_ROUND = tl.constexpr(6755399441055744.0)
"""1.5 * 2^52: adding it rounds to an integer, halves to even."""
_FIFTEEN = tl.constexpr(1e15)


@triton.jit
def _crop(
    images,
    flips,
    tops,
    lefts,
    result,
    down,
    across,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
):
    number = tl.program_id(0)
    pixel = tl.arange(0, block)
    inside = pixel < height * width
    y = pixel // width + tl.load(tops + number).to(tl.int32) - down
    x = pixel % width + tl.load(lefts + number).to(tl.int32) - across
    y = tl.where(y < 0, -y, y)
    x = tl.where(x < 0, -x, x)
    y = tl.where(y >= height, 2 * height - 2 - y, y)
    x = tl.where(x >= width, 2 * width - 2 - x, x)
    x = tl.where(tl.load(flips + number) != 0, width - 1 - x, x)
    for channel in tl.static_range(channels):
        plane = (number.to(tl.int64) * channels + channel) * height * width
        found = tl.load(images + plane + y * width + x, mask=inside)
        tl.store(result + plane + pixel, found, mask=inside)


@triton.jit
def _to_byte(level):
    """Clip and truncate."""
    return tl.minimum(tl.maximum(level, 0.0), 255.0).to(tl.int32)


@triton.jit
def _luma(image, pixel, inside, channels: tl.constexpr, area: tl.constexpr):
    grey = tl.load(image + pixel, mask=inside, other=0).to(tl.int32)
    if channels == 3:
        green = tl.load(image + area + pixel, mask=inside, other=0).to(tl.int32)
        blue = tl.load(image + 2 * area + pixel, mask=inside, other=0).to(tl.int32)
        grey = (grey * 19595 + green * 38470 + blue * 7471 + 32768) >> 16
    return grey


@triton.jit
def _level(image, pixel, inside):
    return tl.load(image + pixel, mask=inside, other=0).to(tl.int32)


@triton.jit
def _autocontrast(image, pixel, inside):
    level = _level(image, pixel, inside)
    low = tl.min(tl.where(inside, level, 255), 0)
    span = tl.max(level, 0) - low
    scale = 255.0 / tl.maximum(span, 1).to(tl.float64)
    stretched = _to_byte(level.to(tl.float64) * scale - low.to(tl.float64) * scale)
    return tl.where(span > 0, stretched, level)


@triton.jit
def _towards(level, dull, factor):
    """Blend of a duller level and the level, in float32."""
    return _to_byte((level.to(tl.float32) - dull) * factor + dull)


@triton.jit
def _equalize(image, pixel, inside, area: tl.constexpr):
    level = _level(image, pixel, inside)
    # Padding pixels of the block are counted in a bin that no level has.
    histogram = tl.histogram(tl.where(inside, level, 256), 512)
    bins = tl.arange(0, 512)
    lightest = tl.sum(tl.where(bins == tl.max(level, 0), histogram, 0), 0)
    step = (area - lightest) // 255
    before = tl.cumsum(histogram, 0) - histogram + (step >> 1)
    spread = tl.minimum(before.to(tl.float64) / tl.maximum(step, 1).to(tl.float64), 255.0).to(tl.int32)
    return tl.gather(tl.where(step > 0, spread, bins), level, 0)


@triton.jit
def _sharpness(image, pixel, inside, factor, height: tl.constexpr, width: tl.constexpr):
    y, x = pixel // width, pixel % width
    interior = (y > 0) & (y < height - 1) & (x > 0) & (x < width - 1)
    level = _level(image, pixel, inside)
    around = 4 * level
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            around += tl.load(image + pixel + dy * width + dx, mask=interior, other=0).to(tl.int32)
    return _towards(level, tl.where(interior, (around * 80660 + (1 << 19)) >> 20, level).to(tl.float32), factor)


@triton.jit
def _fixed(number):
    """Convert to 16.16 fixed point."""
    return tl.floor(number * 65536.0 + 0.5).to(tl.int32)


@triton.jit
def _to_fifteen_digits(number):
    return ((number * _FIFTEEN + _ROUND) - _ROUND) / _FIFTEEN


@triton.jit
def _matrix(code, value, height: tl.constexpr, width: tl.constexpr):
    """(a, b, c) and (d, e, f) of a rotation, a shear or a translation, as 16.16 fixed-point numbers."""
    radians = tl.where(value < 0, value + 360.0, value) * _RADIANS
    cos, sin = _to_fifteen_digits(tl.cos(radians)), _to_fifteen_digits(tl.sin(radians))
    middle_x, middle_y = width / 2.0, height / 2.0
    turned_c = middle_x - (cos * middle_x + sin * middle_y) + cos * 0.5 + sin * 0.5
    turned_f = middle_y - (-sin * middle_x + cos * middle_y) + -sin * 0.5 + cos * 0.5
    moved_x = tl.minimum(tl.maximum(tl.floor(value + 0.5), -1.0 * width), 1.0 * width) + 0.5
    moved_y = tl.minimum(tl.maximum(tl.floor(value + 0.5), -1.0 * height), 1.0 * height) + 0.5
    leaning = value * 0.5 + 0.5
    turns = code == 7
    a = tl.where(turns, cos, 1.0)
    b = tl.where(turns, sin, tl.where(code == 9, value, 0.0))
    c = tl.where(turns, turned_c, tl.where(code == 9, leaning, tl.where(code == 12, moved_x, 0.5)))
    d = tl.where(turns, -sin, tl.where(code == 10, value, 0.0))
    f = tl.where(turns, turned_f, tl.where(code == 10, leaning, tl.where(code == 13, moved_y, 0.5)))
    return _fixed(a), _fixed(b), _fixed(c), _fixed(d), _fixed(a), _fixed(f)


@triton.jit
def _operate(
    images,
    result,
    codes,
    values,
    boxes,
    count,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    hides: tl.constexpr,
    grey: tl.constexpr,
):
    """``OPERATIONS[code]`` for one image. Codes: 1 autocontrast, 2 brightness, 3 color, 4 contrast, 5 equalize,
    6 posterize, 8 sharpness, 11 solarize, 0 nothing; the others move pixels."""
    number = tl.program_id(0)
    area: tl.constexpr = height * width
    code, value = tl.load(codes + number), tl.load(values + number)
    factor = value.to(tl.float32)
    image = images + number.to(tl.int64) * channels * area
    out = result + number.to(tl.int64) * channels * area
    pixel = tl.arange(0, block)
    inside = pixel < area
    y, x = pixel // width, pixel % width
    hidden = pixel < 0
    if hides:
        top, bottom = tl.load(boxes + number), tl.load(boxes + count + number)
        left, right = tl.load(boxes + 2 * count + number), tl.load(boxes + 3 * count + number)
        hidden = (y >= top) & (y < bottom) & (x >= left) & (x < right)

    # Shared by all channels; computed only by the operations that need it.
    dull = tl.zeros((block,), tl.float32)
    source, seen = pixel, inside
    if (code == 3) | (code == 4):
        luma = _luma(image, pixel, inside, channels, area)
        mean = tl.floor(tl.sum(luma, 0).to(tl.float64) / area + 0.5).to(tl.float32)
        dull = tl.where(code == 3, luma.to(tl.float32), mean)
    if (code == 7) | (code == 9) | (code == 10) | (code >= 12):
        a, b, c, d, e, f = _matrix(code, value, height, width)
        source_x, source_y = (y * b + c + x * a) >> 16, (y * e + f + x * d) >> 16
        seen = inside & (source_x >= 0) & (source_x < width) & (source_y >= 0) & (source_y < height)
        source = source_y * width + source_x

    for channel in tl.static_range(channels):
        plane = image + channel * area
        level = tl.load(plane + source, mask=seen, other=0).to(tl.int32)
        if code == 1:
            level = _autocontrast(plane, pixel, inside)
        elif code == 2:
            level = _to_byte(level.to(tl.float32) * factor)
        elif (code == 3) | (code == 4):
            level = _towards(level, dull, factor)
        elif code == 5:
            level = _equalize(plane, pixel, inside, area)
        elif code == 6:
            lost = 8 - value.to(tl.int32)
            level = (level >> lost) << lost
        elif code == 8:
            level = _sharpness(plane, pixel, inside, factor, height, width)
        elif code == 11:
            level = tl.where(level.to(tl.float64) < value, level, 255 - level)
        tl.store(out + channel * area + pixel, tl.where(hidden, grey, level).to(tl.uint8), mask=inside)


@triton.jit
def _scale(images, result, channels: tl.constexpr, area: tl.constexpr, block: tl.constexpr):
    number = tl.program_id(0).to(tl.int64)
    pixel = tl.arange(0, block)
    inside = pixel < area
    for channel in tl.static_range(channels):
        level = tl.load(images + (number * channels + channel) * area + pixel, mask=inside, other=0).to(tl.float32)
        scaled = tl.div_rn(level, 127.5) - 1.0
        place = result + (number * area + pixel) * channels + channel
        tl.store(place, scaled.to(result.dtype.element_ty), mask=inside)


def _known(images: Tensor) -> dict[str, int | bool]:
    block = triton.next_power_of_2(images.shape[2] * images.shape[3])
    return {"block": block, "num_warps": 4 if block <= 1024 else 8, "enable_fp_fusion": False}


def crop(images: Tensor, flip: Tensor, top: Tensor, left: Tensor, down: int, across: int) -> Tensor:
    """Flip and crop from a reflected border."""
    channels, height, width = images.shape[1:]
    result = torch.empty_like(images)
    shape = {"channels": channels, "height": height, "width": width}
    _crop[(len(top),)](images, flip.view(torch.uint8), top, left, result, down, across, **shape, **_known(images))
    return result


def operate(images: Tensor, codes: Tensor, values: Tensor, box: Tensor, grey: int) -> Tensor:
    """Apply ``OPERATIONS[codes[d, i]]`` with ``values[d, i]`` to image i, one d after the other; then the square."""
    channels, height, width = images.shape[1:]
    shape = {"channels": channels, "height": height, "width": width, "grey": grey}
    codes, values, box = codes.contiguous(), values.contiguous(), box.contiguous()
    for number in range(len(codes)):
        result = torch.empty_like(images, memory_format=torch.contiguous_format)
        hides = number == len(codes) - 1
        drawn = (codes[number], values[number], box, images.shape[0])
        _operate[(images.shape[0],)](images, result, *drawn, hides=hides, **shape, **_known(images))
        images = result
    return images


def scale(images: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert uint8 to -1..1, channels last."""
    channels, height, width = images.shape[1:]
    result = torch.empty(images.shape, dtype=dtype, device=images.device, memory_format=torch.channels_last)
    _scale[(images.shape[0],)](images, result, channels=channels, area=height * width, **_known(images))
    return result
