"""Caption templates for class names, in the style that text models were trained on."""

from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import DataError
from debiaspl.data.text import read_text

PLACE = "{}"

TEMPLATES: dict[str, tuple[str, ...]] = {
    "name": ("{}",),
    "general": (
        "a photo of {}.",
        "a picture that shows {}.",
        "a close-up of {}.",
        "{} seen from far away.",
        "a small, grainy photo of {}.",
        "a bright photo of {}.",
        "a dark photo of {}.",
        "there is {} in this picture.",
    ),
    "satellite": (
        "a satellite photo of {}.",
        "an aerial picture of {}.",
        "{} seen from above.",
        "{} seen from space.",
        "a coarse satellite image that shows {}.",
        "land that is used as {}, from above.",
    ),
    "texture": (
        "a photo of a {} texture.",
        "a {} surface, from close by.",
        "a {} pattern.",
        "something that looks {}.",
        "a material that is {}.",
    ),
    "digits": (
        'the number "{}", written by hand.',
        'a handwritten "{}".',
        'a picture of the digit "{}".',
        'the number "{}" in white on black.',
    ),
}
"""Our own templates by name."""

_MANNERS = (
    "a photo of", "a good photo of", "a bad photo of", "a blurred photo of", "a sharp photo of", "a noisy photo of",
    "a bright photo of", "a dark photo of", "a dull photo of", "a colorful photo of", "a faded photo of",
    "a black and white photo of", "a photo of a small", "a photo of a large", "a photo of a clean",
    "a photo of a dirty",
    "a photo of an old", "a photo of a new", "a photo of a strange", "a photo of a pretty", "a photo of one",
    "a photo of many", "a photo of the hidden", "a photo of the whole", "a photo of part of", "a close-up of",
    "a distant view of", "a side view of", "a view from above of", "a photo from below of", "a photo taken at night of",
    "a photo taken outdoors of", "a photo taken indoors of", "a photo through a window of", "a phone photo of",
    "a film photo of", "a studio photo of", "a snapshot of", "an amateur photo of", "a press photo of",
    "a square crop of", "a poorly cropped photo of", "a compressed image of", "a thumbnail of", "a video frame of",
    "a postcard of", "a stamp with", "a poster of", "a magazine picture of", "a catalog picture of",
    "a drawing of", "a pencil sketch of", "a line drawing of", "a child's drawing of", "a painting of",
    "a watercolor of", "an oil painting of", "a print of", "a cartoon of", "a comic strip with",
    "a computer graphic of", "a 3D rendering of", "a pixel image of", "an icon of", "a logo with",
    "graffiti of", "a mosaic of", "a tattoo of", "an embroidery of", "a sculpture of",
    "a model of", "a toy version of", "a plush toy of", "an origami figure of", "a plastic figure of",
    "a picture showing", "an example of", "a scene with", "a person with", "nothing but",
)  # fmt: skip
"""Ways to show an object, for ImageNet: as many as CLIP's own templates, in our own words."""
TEMPLATES["imagenet"] = tuple(f"{manner} {PLACE}." for manner in _MANNERS)


def read_templates(name_or_file: str) -> tuple[str, ...]:
    """The templates of this name, or from a file with one template per line."""
    if name_or_file in TEMPLATES:
        return TEMPLATES[name_or_file]
    place = Path(name_or_file)
    if not place.is_file():
        expected = f"{', '.join(TEMPLATES)}, or a file with one template per line, such as: a photo of {PLACE}."
        raise DataError(f"there are no templates named {name_or_file!r}, and no such file. Expected one of {expected}")
    lines = read_text(place, "one template per line").removeprefix("\ufeff").splitlines()
    return check_templates([line.strip() for line in lines if line.strip()], str(place))


def check_templates(templates: Sequence[str], where: str = "the list of templates") -> tuple[str, ...]:
    if isinstance(templates, str):
        raise DataError(f"templates are the text {templates!r}, expected a list of texts.")
    if not templates:
        raise DataError(f"{where} is empty. Expected at least one template, such as: a photo of {PLACE}.")
    for number, template in enumerate(templates, 1):
        if template.count(PLACE) != 1:
            expected = f"{PLACE} once, in the place of the class name: a photo of {PLACE}."
            raise DataError(f"template {number} of {where} is {template!r}, expected {expected}")
    return tuple(templates)


def filled(templates: Sequence[str], name: str) -> list[str]:
    # Not str.format: a class may be called "{0}".
    return [template.replace(PLACE, name) for template in templates]
