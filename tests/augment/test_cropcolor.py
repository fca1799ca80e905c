"""CropColor: what it leaves alone, what it changes and by how much, against colours computed pixel by pixel."""

import colorsys
import math

import pytest
import torch

from debiaspl.augment import CropColor
from debiaspl.augment.cropcolor import LUMA


def noise(count: int = 6, channels: int = 3, side: int = 16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, channels, side, side), dtype=torch.uint8, generator=generator)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def luma(images: torch.Tensor) -> torch.Tensor:
    return (images.float() * torch.tensor(LUMA).view(1, 3, 1, 1)).sum(1)


@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_to_do_leaves_every_bit(channels):
    images = noise(channels=channels)
    assert torch.equal(CropColor(least_area=1, color=0, grey_share=0)(images, seeded()), images)


@pytest.mark.parametrize("channels", [1, 3])
def test_views_are_bytes_of_the_same_shape_and_differ_from_image_to_image(channels):
    images = noise(1, channels).expand(8, -1, -1, -1)
    views = CropColor()(images, seeded())
    assert views.dtype == torch.uint8
    assert views.shape == images.shape
    assert len({bytes(view.flatten().tolist()) for view in views}) == 8
    assert torch.equal(views, CropColor()(images, seeded()))


def test_a_crop_shows_a_part_of_the_picture():
    """Columns that grow from left to right: a crop shows a range of them, in order, of the drawn width at the least."""
    ramp = torch.linspace(0, 255, 64).round().to(torch.uint8).view(1, 1, 1, 64).expand(200, 1, 64, 64)
    views = CropColor(least_area=0.25, color=0, grey_share=0)(ramp, seeded()).float()
    rows = views.mean(2)[:, 0]
    assert (rows.diff() >= -1e-3).all()
    shown = (rows[:, -1] - rows[:, 0]) / 255
    # The narrowest crop: a quarter of the area at the narrowest shape.
    assert shown.min() > 0.9 * math.sqrt(0.25 * 3 / 4) - 2 / 64
    assert shown.max() > 0.9
    assert rows[:, 0].std() > 10


def test_grey_images_have_their_own_luma():
    images = noise()
    views = CropColor(least_area=1, color=0, grey_share=1)(images, seeded()).float()
    assert (views.amax(1) - views.amin(1)).max() <= 1
    assert (views[:, 0] - luma(images)).abs().max() <= 0.51


def test_brightness_and_contrast_are_pillows_formula():
    """Of a grey image, with the numbers that were drawn: bright, then away from the mean."""
    images = (64 + noise(50, 1) // 4).to(torch.uint8)
    numbers = torch.rand(10, 50, generator=seeded(), dtype=torch.float64)
    views = CropColor(least_area=1, color=0.5, color_share=1.0)(images, seeded()).double()
    for image, view, (bright, contrast) in zip(images.double(), views, numbers[5:7].T.tolist(), strict=True):
        brighter = image * (1 + 0.4 * (2 * bright - 1))
        expected = brighter.mean() + (brighter - brighter.mean()) * (1 + 0.4 * (2 * contrast - 1))
        assert (view - expected.clamp(0, 255)).abs().max() <= 0.51


def test_hue_turns_and_grey_stays():
    """A turn of the hue is the same for every pixel, about as large as drawn, and changes no brightness."""
    color = torch.tensor([180, 90, 60], dtype=torch.uint8).view(1, 3, 1, 1).expand(200, 3, 4, 4)
    views = CropColor(least_area=1, color=0.5, color_share=1.0, grey_share=0)(color, seeded())
    hues = [colorsys.rgb_to_hsv(*(view[:, 0, 0] / 255).tolist())[0] for view in views]
    own = colorsys.rgb_to_hsv(180 / 255, 90 / 255, 60 / 255)[0]
    turns = torch.tensor([(hue - own + 0.5) % 1 - 0.5 for hue in hues])
    assert 0.08 < turns.abs().max() < 0.2
    assert turns.min() < -0.05
    assert turns.max() > 0.05


def test_the_share_of_changed_images():
    images = noise(1).expand(2000, -1, -1, -1)
    views = CropColor(least_area=1, color=0.5, color_share=0.8, grey_share=0)(images, seeded())
    changed = (views != images).flatten(1).any(1).float().mean()
    assert changed.item() == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(("name", "value"), [("least_area", 0), ("color", 2), ("grey_share", -1)])
def test_bad_settings_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        CropColor(**{name: value})
