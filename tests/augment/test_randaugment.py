"""RandAugment replayed with Pillow, its decisions re-derived in plain Python, and what chance does."""

import dataclasses

import pytest
import torch

from debiaspl.augment import OPERATIONS, Draws, RandAugment
from debiaspl.augment.randaugment import by_masks, by_rows

from .pillow import photos, slow_draws

PRESETS = {"fixmatch": RandAugment.fixmatch(), "benchmark": RandAugment.benchmark()}
SIZES = [(32, 32, 3), (8, 8, 1), (7, 11, 3), (33, 24, 3), (2, 2, 1)]
ENHANCE = ("brightness", "color", "contrast", "sharpness")

both_presets = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
all_sizes = pytest.mark.parametrize("size", SIZES, ids=str)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def stepped(name: str, u: float, sign: float, height: int, width: int) -> float:
    m = int(u * 9) + 1
    side = width if name == "translate_x" else height
    value = 0.0
    if name in ENHANCE:
        value = 0.05 + 0.9 * m / 10
    elif name == "posterize":
        value = 4 + int(4 * m / 10)
    elif name == "solarize":
        value = 256 - int(256 * m / 10)
    elif name == "rotate":
        value = int(30 * m / 10)
    elif name.startswith("shear"):
        value = 0.3 * m / 10
    elif name.startswith("translate"):
        value = int(0.3 * m / 10 * side)
    signed = name == "rotate" or name.startswith(("shear", "translate"))
    return -value if signed and sign < 0.5 else value


def continuous(name: str, u: float, height: int, width: int) -> float:
    side = width if name == "translate_x" else height
    if name in ENHANCE:
        return 0.05 + 0.9 * u
    if name == "posterize":
        return int(4 + 4 * u)
    if name == "solarize":
        return 256 * u
    if name == "rotate":
        return -30 + 60 * u
    if name.startswith("shear"):
        return -0.3 + 0.6 * u
    if name.startswith("translate"):
        return (-0.3 + 0.6 * u) * side
    return 0.0


@both_presets
@all_sizes
def test_views_are_pillows(preset: RandAugment, size: tuple[int, int, int]) -> None:
    images = photos(150, *size)
    before = images.clone()
    draws = preset.draw(images, seeded())
    views = preset.apply(images, draws)
    assert torch.equal(views, slow_draws(images, draws))
    assert torch.equal(preset(images, seeded()), views)
    assert torch.equal(images, before)


@both_presets
@all_sizes
def test_decisions_follow_from_the_numbers(preset: RandAugment, size: tuple[int, int, int]) -> None:
    images = photos(50, *size)
    height, width, _ = size
    draws = preset.draw(images, seeded(5))
    numbers = torch.rand(4 * preset.draws + 3, 50, generator=seeded(5), dtype=torch.float64).tolist()
    for d in range(preset.draws):
        which, applied, magnitude, sign = numbers[d : 4 * preset.draws : preset.draws]
        for i in range(50):
            name = OPERATIONS[int(which[i] * 14)] if applied[i] < preset.probability else "identity"
            value = (
                continuous(name, magnitude[i], height, width)
                if preset.levels is None
                else stepped(name, magnitude[i], sign[i], height, width)
            )
            assert OPERATIONS[int(draws.operation[d, i])] == name
            assert float(draws.value[d, i]) == pytest.approx(value, abs=1e-12)
            assert preset.levels is None or float(draws.value[d, i]) == value
    least, largest = preset.cutout
    for axis, side in enumerate((height, width)):
        for i in range(50):
            s = round(side * (least + (largest - least) * numbers[-3][i]))
            centre = int(numbers[-2 + axis][i] * side)
            inside = [p for p in range(-side, 2 * side) if centre - s / 2 <= p < centre + s / 2]
            first, stop = draws.box[axis, :, i].tolist()
            assert list(range(first, stop)) == inside


@both_presets
@all_sizes
def test_skipped_rows_and_masked_rows_give_the_same_bits(preset: RandAugment, size: tuple[int, int, int]) -> None:
    images = photos(100, *size)
    draws = preset.draw(images, seeded(1))
    skipped = by_rows(images, draws.operation, draws.value)
    assert torch.equal(skipped, by_masks(images, draws.operation, draws.value))
    assert not torch.equal(skipped, images)


@both_presets
def test_numbers_drawn_do_not_depend_on_the_images(preset: RandAugment) -> None:
    states = []
    for images in (photos(16), torch.zeros(16, 1, 5, 9, dtype=torch.uint8)):
        generator = seeded(3)
        preset(images, generator)
        states.append(generator.get_state())
    assert torch.equal(*states)


@both_presets
def test_an_image_is_its_own_affair(preset: RandAugment) -> None:
    images = photos(24)
    draws = preset.draw(images, seeded(4))
    together = preset.apply(images, draws)
    for i in range(24):
        alone = Draws(draws.operation[:, i : i + 1], draws.value[:, i : i + 1], draws.box[:, :, i : i + 1])
        assert torch.equal(preset.apply(images[i : i + 1], alone), together[i : i + 1])
    same = photos(1).expand(64, -1, -1, -1)
    assert len(torch.unique(preset(same, seeded()), dim=0)) > 60


def test_settings_are_obeyed() -> None:
    images = photos(64)
    some = RandAugment(("rotate", "shear_x"))
    allowed = {0, OPERATIONS.index("rotate"), OPERATIONS.index("shear_x")}
    assert set(torch.unique(some.draw(images, seeded()).operation).tolist()) == allowed
    nothing = RandAugment(probability=0.0, cutout=(0.0, 0.0))
    assert torch.equal(nothing(images, seeded()), images)
    untouched = RandAugment(draws=0, cutout=(0.0, 0.0))
    assert torch.equal(untouched(images, seeded()), images)
    assert untouched(images).data_ptr() != images.data_ptr()
    assert RandAugment.fixmatch() == RandAugment()
    assert RandAugment()(images[:0]).shape == (0, 3, 32, 32)
    five = RandAugment(levels=5).draw(images.repeat(20, 1, 1, 1), seeded())
    turned = five.value[five.operation == OPERATIONS.index("rotate")].abs()
    assert torch.unique(turned).tolist() == [6, 12, 18, 24]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operations": ("rotate", "blur")}, "unknown operation 'blur'"),
        ({"operations": ()}, "operations is empty"),
        ({"draws": -1}, "draws is -1"),
        ({"probability": 1.5}, "probability is 1.5"),
        ({"levels": 1}, "levels is 1"),
        ({"cutout": (0.5, 0.2)}, r"cutout is \(0.5, 0.2\)"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(RandAugment(), **change)  # type: ignore[arg-type]
