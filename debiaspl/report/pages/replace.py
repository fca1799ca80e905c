"""What a page may take the place of."""

from pathlib import Path

MARK = b'<meta name="generator" content="debiaspl">'
"""Near the beginning of every page."""


def refuse_replacing(out: Path) -> None:
    """Raise where a page would take the place of anything but an older page."""
    wrong = _what_is_wrong(out)
    if wrong is not None:
        from debiaspl.training import RunError  # takes torch along, which an audit of labels does not need

        raise RunError(wrong)


def _what_is_wrong(out: Path) -> str | None:
    if out.is_dir():
        return f"{out} is a folder, expected the name of a page to be made, such as {out / 'page.html'}."
    if not out.is_file():
        return None
    with out.open("rb") as file:
        beginning = file.read(1000)
    if not beginning or MARK in beginning:
        return None
    return (
        f"{out} exists and is no page of debiaspl, which alone a new page replaces. Give another name, or remove the "
        "file."
    )
