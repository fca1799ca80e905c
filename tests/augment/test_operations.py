"""Each operation against Pillow, bit for bit."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from debiaspl.augment import OPERATIONS, operation

from .pillow import photos, slow_operation

SIZES = [(32, 32, 3), (7, 11, 3), (33, 32, 3), (96, 64, 3), (8, 8, 1), (2, 2, 3), (1, 5, 1), (3, 3, 3)]
SIGNED = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def levels(name: str, height: int, width: int) -> list[float]:
    """The nine levels of FixMatch, then places in the continuous range; both signs where there are two."""
    side = width if name == "translate_x" else height
    tenths = [m / 10 for m in range(1, 10)]
    values = {
        "posterize": [4 + int(4 * m / 10) for m in range(1, 10)] + [1, 2, 3, 8],
        "rotate": [int(30 * m / 10) for m in range(1, 10)] + [30 * t - 0.37 for t in tenths],
        "solarize": [256 - int(256 * m / 10) for m in range(1, 10)] + [256 * t for t in tenths] + [0, 256],
    }.get(name)
    if name.startswith("shear"):
        values = [0.3 * m / 10 for m in range(1, 10)] + [0.3 * t + 0.011 for t in tenths]
    if name.startswith("translate"):
        values = [int(0.3 * m / 10 * side) for m in range(1, 10)] + [0.3 * t * side for t in tenths]
    if values is None:
        values = [0.05 + 0.9 * m / 10 for m in range(1, 10)] + [0.0, 0.5, 1.0, 1.5, 2.0]
    return [float(value) for value in values] + ([-float(value) for value in values] if name in SIGNED else [])


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_pillows_on_photographs(name: str, size: tuple[int, int, int]) -> None:
    height, width, channels = size
    values = levels(name, height, width)
    images = photos(len(values), height, width, channels)
    assert torch.equal(operation(name, images, values), slow_operation(name, images, values))


def test_every_whole_degree() -> None:
    degrees = [float(degree) for degree in range(-360, 361)]
    images = photos(1, 7, 12).repeat(len(degrees), 1, 1, 1)
    assert torch.equal(operation("rotate", images, degrees), slow_operation("rotate", images, degrees))


def test_every_pair_of_levels_blends_as_pillow_does() -> None:
    """A grey ramp under all levels of a smooth neighbour is too much to ask of photographs: here are all 256 x 256."""
    level = torch.arange(256, dtype=torch.uint8)
    images = torch.stack((level.expand(256, 256), level.unsqueeze(1).expand(256, 256), level.flip(0).expand(256, 256)))
    for name in ("brightness", "color", "contrast", "sharpness"):
        for factor in (0.05 + 0.9 * 3 / 10, 0.1, 0.7, 0.95, 1.3, -0.5):
            ours, theirs = operation(name, images[None], factor), slow_operation(name, images[None], [factor])
            assert torch.equal(ours, theirs), (name, factor)


def picture(kind: str, seed: int, channels: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (1, channels, height, width)
    low, high = sorted(torch.randint(0, 256, (2,), generator=generator).tolist())
    if kind == "constant":
        return torch.full(shape, low, dtype=torch.uint8)
    if kind == "two-valued":
        return torch.where(torch.rand(shape, generator=generator) < 0.3, low, high).to(torch.uint8)
    return torch.randint(low, high + 1, shape, generator=generator, dtype=torch.int64).to(torch.uint8)


pictures = st.builds(
    picture,
    st.sampled_from(["constant", "two-valued", "noise"]),
    st.integers(0, 2**31),
    st.sampled_from([1, 3]),
    st.integers(1, 24),
    st.integers(1, 24),
)
factors = st.floats(0, 2) | st.floats(-4, 8, width=32)  # beyond one they are clipped
angles = st.floats(-720, 720) | st.integers(-8, 8).map(lambda quarter: 90.0 * quarter)
slopes = st.floats(-1, 1)
# Sixty-fourths hold whole pixels and halves.
pixels = st.integers(-40 * 64, 40 * 64).map(lambda part: part / 64) | st.floats(-40, 40).map(lambda v: round(v, 3))
VALUES = {
    "brightness": factors,
    "color": factors,
    "contrast": factors,
    "posterize": st.integers(1, 8).map(float),
    "rotate": angles,
    "sharpness": factors,
    "shear_x": slopes,
    "shear_y": slopes,
    "solarize": st.floats(0, 256) | st.integers(0, 256).map(float),
    "translate_x": pixels,
    "translate_y": pixels,
}


@settings(deadline=None, max_examples=300)
@given(data=st.data(), image=pictures, name=st.sampled_from(OPERATIONS))
def test_operation_is_pillows_on_anything(data: st.DataObject, image: Tensor, name: str) -> None:
    value = data.draw(VALUES.get(name, st.just(0.0)))
    assert torch.equal(operation(name, image, value), slow_operation(name, image, [value]))


def test_values_may_be_a_number_a_list_or_a_tensor() -> None:
    images = photos(4)
    before = images.clone()
    expected = slow_operation("rotate", images, [15.0] * 4)
    for value in (15, 15.0, [15] * 4, torch.full((4,), 15), torch.tensor(15.0)):
        assert torch.equal(operation("rotate", images, value), expected)
    assert torch.equal(images, before)
    assert operation("identity", images).data_ptr() != images.data_ptr()


@pytest.mark.parametrize("name", OPERATIONS)
def test_layout_in_memory_does_not_matter(name: str) -> None:
    images = photos(5, 12, 10)
    value = 4.0 if name in VALUES else 0.0
    strange = images.to(memory_format=torch.channels_last)
    assert torch.equal(operation(name, strange, value), operation(name, images, value))
    assert operation(name, images[:0], value).shape == (0, 3, 12, 10)


@pytest.mark.parametrize(
    ("name", "images", "value", "message"),
    [
        ("sheer", photos(2), 1, "unknown operation 'sheer'"),
        ("rotate", photos(2).float(), 1, r"dtype torch.float32, expected uint8 \(N, C, H, W\)"),
        ("rotate", photos(2).permute(0, 2, 3, 1), 1, "permute"),
        ("rotate", photos(2), math.nan, "finite"),
        ("rotate", photos(2), [1, 2, 3], r"values \[1, 2, 3\]"),
        ("posterize", photos(2), [4, 0.5], r"values \[4, 0.5\]"),
    ],
)
def test_errors_teach(name: str, images: Tensor, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        operation(name, images, value)  # type: ignore[arg-type]
