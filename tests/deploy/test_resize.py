"""The resize inside an exported graph is Pillow's, bit for bit."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from PIL import Image

from debiaspl.data.decode import decode
from debiaspl.deploy.resize import cover
from tests.data.photos import photographs

sides = st.integers(1, 90)


def from_file(pixels: np.ndarray, size: tuple[int, int]) -> torch.Tensor:
    """What training makes of these pixels."""
    content = io.BytesIO()
    Image.fromarray(pixels.squeeze(-1) if pixels.shape[2] == 1 else pixels).save(content, "PNG")
    return decode(content.getvalue(), size, pixels.shape[2])


def resized(pixels: np.ndarray, size: tuple[int, int]) -> torch.Tensor:
    return cover(torch.tensor(pixels).permute(2, 0, 1)[None], size)[0]


@settings(deadline=None, max_examples=50)
@given(sides, sides, sides, sides, st.sampled_from([1, 3]), st.integers(0, 100))
def test_noise_of_any_size_to_any_size(height, width, to_height, to_width, channels, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    size = to_height, to_width
    assert torch.equal(resized(pixels, size), from_file(pixels, size))


@pytest.mark.parametrize("size", [(8, 8), (32, 32), (64, 96), (224, 224)])
@pytest.mark.parametrize("turned", [False, True])
def test_photographs(size, turned):
    for photo in photographs():
        pixels = np.ascontiguousarray(photo.transpose(1, 0, 2) if turned else photo)
        assert torch.equal(resized(pixels, size), from_file(pixels, size))


def test_an_image_that_fits_stays_as_it_is():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 24, 3), dtype=np.uint8)
    assert torch.equal(resized(pixels, (40, 24)), torch.from_numpy(pixels).permute(2, 0, 1))
