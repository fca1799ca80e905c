"""The weak view against numpy's padding, and what chance does."""

import pytest
import torch

from debiaspl.augment import Weak

from .pillow import photos, slow_crops


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("size", "pad", "borders"),
    [
        ((32, 32, 3), 0.125, (4, 4)),
        ((8, 8, 1), 0.125, (1, 1)),
        ((7, 11, 3), 0.25, (2, 3)),
        ((33, 32, 3), 0.125, (4, 4)),
        ((96, 64, 3), 0.125, (12, 8)),
        ((5, 4, 1), 0.75, (4, 3)),
        ((2, 2, 3), 0.125, (0, 0)),
        ((9, 9, 3), 0.0, (0, 0)),
    ],
    ids=str,
)
def test_weak_is_flip_pad_and_crop(size: tuple[int, int, int], pad: float, borders: tuple[int, int]) -> None:
    images, weak = photos(40, *size), Weak(pad=pad)
    before = images.clone()
    crops = weak.draw(images, seeded())
    assert torch.equal(weak.apply(images, crops), slow_crops(images, crops, borders))
    assert torch.equal(weak(images, seeded()), weak.apply(images, crops))
    assert torch.equal(weak(images.to(memory_format=torch.channels_last), seeded()), weak.apply(images, crops))
    assert torch.equal(images, before)


def test_every_offset_and_both_flips_come_equally_often() -> None:
    images = torch.zeros(81_000, 1, 8, 12, dtype=torch.uint8)
    crops = Weak(pad=0.5).draw(images, seeded())
    places = torch.stack((crops.flip, crops.top, crops.left), 1)
    found, counts = torch.unique(places, dim=0, return_counts=True)
    assert found.amin(0).tolist() == [0, 0, 0]
    assert found.amax(0).tolist() == [1, 8, 12]
    expected = 81_000 / (2 * 9 * 13)
    assert len(found) == 2 * 9 * 13
    assert (counts - expected).abs().max() < 5 * expected**0.5


def test_no_flip_without_flip_and_the_same_crops() -> None:
    images = photos(64)
    with_flip, without = Weak().draw(images, seeded()), Weak(flip=False).draw(images, seeded())
    assert with_flip.flip.any()
    assert not without.flip.any()
    assert torch.equal(with_flip.top, without.top)


def test_each_image_has_its_own_draw_and_the_stream_goes_on() -> None:
    images, weak, generator = photos(1).expand(64, -1, -1, -1), Weak(), seeded()
    first, second = weak(images, generator), weak(images, generator)
    assert len(torch.unique(first, dim=0)) > 30
    assert not torch.equal(first, second)


def test_errors_teach() -> None:
    with pytest.raises(ValueError, match=r"pad is 1.0"):
        Weak(pad=1.0)
    with pytest.raises(ValueError, match=r"pad is 0.9, which is 4 of 4 pixels"):
        Weak(pad=0.9)(photos(2, 4, 4))
    with pytest.raises(ValueError, match=r"expected uint8 \(N, C, H, W\)"):
        Weak()(photos(2).float())
