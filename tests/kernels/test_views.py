"""Views from the kernels against the plain ones: the same bits, for every operation."""

import pytest
import torch

from debiaspl.augment import OPERATIONS, RandAugment, Weak
from debiaspl.augment.randaugment import GREY, by_masks, continuous, hide_, stepped
from debiaspl.models import scale
from tests.kernels.device import DEVICE, INTERPRETED, needs_triton

pytestmark = needs_triton

SHAPES = [(56, 3, 32, 32), (28, 1, 8, 8), (28, 3, 24, 28), (28, 3, 64, 64)]


def pictures(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    images[0] = 7  # one level alone
    images[1, :, :2] = 3
    images[2] //= 8  # dark
    return images


def uniform(shape, seed):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("pad", [0.125, 0.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_crops_are_those_of_the_plain_version(shape, pad):
    from debiaspl.kernels.views_triton import crop

    weak, images = Weak(pad=pad), pictures(shape)
    drawn = weak.draw(images, torch.Generator().manual_seed(1))
    places = drawn.flip.to(DEVICE), drawn.top.to(DEVICE), drawn.left.to(DEVICE)
    borders = weak._border(shape[2]), weak._border(shape[3])
    expected = weak.apply(images, drawn)
    assert torch.equal(crop(images.to(DEVICE), *places, *borders).cpu(), expected)


@pytest.mark.parametrize("levels", [10, None])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_of_operations_gives_the_bits_of_the_plain_version(shape, levels):
    from debiaspl.kernels.views_triton import operate

    images, count = pictures(shape), shape[0]
    for turn in range(4 if INTERPRETED else len(OPERATIONS)):
        codes = torch.stack((torch.arange(count) % 14, (torch.arange(count) + turn) % 14))
        size, sign = uniform(codes.shape, turn), uniform(codes.shape, 100 + turn)
        values = continuous(codes, size, *shape[2:]) if levels is None else stepped(codes, size, sign, 10, *shape[2:])
        box = RandAugment.benchmark().draw(images, torch.Generator().manual_seed(turn)).box
        expected = hide_(by_masks(images, codes, values), box)
        found = operate(images.to(DEVICE), codes.to(DEVICE), values.to(DEVICE), box.to(DEVICE), GREY).cpu()
        wrong = [
            (OPERATIONS[codes[0, k]], OPERATIONS[codes[1, k]]) for k in range(count) if (found != expected)[k].any()
        ]
        assert not wrong


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_floats_are_those_of_the_plain_version(shape, dtype):
    from debiaspl.kernels import views_triton

    if INTERPRETED and dtype == torch.bfloat16:
        pytest.skip("the interpreter cuts off where a GPU rounds to bfloat16")
    images = pictures(shape)
    found = views_triton.scale(images.to(DEVICE), dtype)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found.cpu(), scale(images, dtype))
