"""What a page may take the place of."""

from pathlib import Path

from debiaspl.training import RunError

MARK = b'<meta name="generator" content="debiaspl">'
"""Near the beginning of every page."""


def refuse_replacing(out: Path) -> None:
    """Raise where a page would take the place of anything but an older page."""
    if out.is_dir():
        raise RunError(f"{out} is a folder, expected the name of a page to be made, such as {out / 'page.html'}.")
    if not out.is_file():
        return
    with out.open("rb") as file:
        beginning = file.read(1000)
    if beginning and MARK not in beginning:
        raise RunError(
            f"{out} exists and is no page of debiaspl, which alone a new page replaces. Give another name, or remove "
            "the file."
        )
