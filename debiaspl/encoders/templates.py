"""Caption templates for class names, in the style that text models were trained on: ours by name, or a user's file."""

from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import DataError
from debiaspl.data.text import read_text

PLACE = "{}"


def read_file(file: Path) -> tuple[str, ...]:
    """Templates from a file with one per line."""
    lines = map(str.strip, read_text(file, "one template per line").removeprefix("\ufeff").splitlines())
    templates = tuple(line for line in lines if line)
    if not templates:
        raise DataError(f"{file} is empty. Expected at least one template, such as: a photo of {PLACE}.")
    for number, template in enumerate(templates, 1):
        if template.count(PLACE) != 1:
            expected = f"{PLACE} once, in the place of the class name: a photo of {PLACE}."
            raise DataError(f"template {number} of {file} is {template!r}, expected {expected}")
    return templates


TEMPLATES = {file.stem: read_file(file) for file in sorted((Path(__file__).parent / "prompts").glob("*.txt"))}
"""Our own by name; for ImageNet as many as CLIP's, in our own words."""


def read_templates(name_or_file: str) -> tuple[str, ...]:
    """The templates of this name, or from a file with one template per line."""
    if name_or_file in TEMPLATES:
        return TEMPLATES[name_or_file]
    if not Path(name_or_file).is_file():
        expected = f"{', '.join(TEMPLATES)}, or a file with one template per line, such as: a photo of {PLACE}."
        raise DataError(f"there are no templates named {name_or_file!r}, and no such file. Expected one of {expected}")
    return read_file(Path(name_or_file))


def filled(templates: Sequence[str], name: str) -> list[str]:
    # Not str.format: a class may be called "{0}".
    return [template.replace(PLACE, name) for template in templates]
