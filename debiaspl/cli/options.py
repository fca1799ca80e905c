"""Options that several commands have, each declared once: one name, one meaning, one help text."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from debiaspl._torchrun import rank
from debiaspl.cli.usage import checked_encoder, checked_method, checked_settings

MACHINE = "GPUs and several processes"
"""Title of options that few need."""
EndedRun = Annotated[Path, Argument(metavar="RUN", help="The folder of a run that has ended.")]
LabelTable = Annotated[
    list[Path] | None,
    Option(
        metavar="FILE",
        help="Read labels from this table (file_name,label).",
        show_default="PHOTOS/labels.csv or class folders",
    ),
]
Folders = Annotated[
    str | None,
    Option(
        metavar="use|ignore",
        help="With a table of labels: whether class folders are labels too.",
        show_default="an error where both exist",
    ),
]
TableColumns = Annotated[
    list[str] | None,
    Option(
        "--column",
        metavar="ROLE=NAME",
        help="A column of another name: file=photo, label=kind; may be repeated.",
        show_default="the usual names",
    ),
]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        callback=checked_settings,
        help="Change a setting; may be repeated. See: debiaspl list settings.",
        show_default="no change",
    ),
]
Encoder = Annotated[
    str | None,
    Option(
        callback=checked_encoder,
        help="A pretrained network: efficientnet-lite0, or a vision model (hub name or folder).",
        show_default="no encoder",
    ),
]
Seeds = Annotated[int, Option(min=1, help="How many seeds; each chooses other labels.")]
Resume = Annotated[bool, Option("--resume", help="Resume a run that was stopped.")]
Overwrite = Annotated[
    bool, Option("--overwrite", help="Replace what --out holds; it is NAME.old until the new one is complete.")
]
OverwriteFiles = Annotated[bool, Option("--overwrite", help="Replace files that exist already.")]
Jobs = Annotated[
    int | None,
    Option(min=1, help="Runs that train at the same time.", show_default="one for each core; one on a GPU"),
]
Device = Annotated[str | None, Option(help="cuda or cpu.", show_default="cuda if there is a GPU")]
Port = Annotated[int, Option(min=0, max=65535, help="Port of the page; 0 takes any free one.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead.")]
Length = Annotated[
    str | None, Option(metavar="NAME", help="paper, fast, minutes or start.", show_default="the recipe's first one")
]
Method = Annotated[
    str | None,
    Option(
        callback=checked_method,
        metavar="NAME",
        help="debiaspl, fixmatch, supervised, ALGORITHM or ALGORITHM+CORRECTION; moco, simclr and swav learn "
        "features without labels.",
        show_default="debiaspl, or the recipe's",
    ),
]


def columns_of(texts: list[str] | None, *roles: str) -> dict[str, str]:
    """Role -> the column that ``--column`` names; by default those of a table of labels."""
    roles, named = roles or ("file", "label"), {}
    for text in texts or ():
        role, _, name = text.partition("=")
        if role not in roles or not name:
            raise ValueError(f"--column is {text!r}, expected ROLE=NAME, with a role of {', '.join(roles)}.")
        named[role] = name
    return named


def one_table(tables: list[Path] | None) -> Path | None:
    """The table of ``--labels``. Two are refused: typer would silently use the last one only."""
    if not tables:
        return None
    if len(tables) > 1:
        names = " and ".join(map(str, tables))
        raise ValueError(
            f"--labels is given {len(tables)} times: {names}. Expected one table; put their rows into one."
        )
    return tables[0]


def refuse_both(resume: bool, overwrite: bool) -> None:
    """Raise where a run should be both continued and replaced, or replaced by processes that may be restarted."""
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it, and both are given. Expected one.")
    if overwrite and rank() is not None:
        raise ValueError(
            "--overwrite is for one process: torchrun may restart it, and it would then replace what it has trained. "
            "Remove the folder first, or choose another --out."
        )
