"""Options that several commands have, each declared once."""

import os
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def _follow(wanted: bool) -> bool:
    if wanted:
        os.environ["DEBIASPL_FOLLOW_LINKS"] = "1"
    return wanted


FollowLinks = Annotated[
    bool, Option("--follow-links", callback=_follow, help="Also read photos by links that lead out of their folder.")
]
EndedRun = Annotated[Path, Argument(metavar="RUN", help="The folder of a run that has ended.")]
Images = Annotated[Path, Argument(metavar="PHOTOS", help="A folder of images; those in its sub-folders too.")]
LabelTable = Annotated[
    list[Path] | None,
    Option(metavar="FILE", help="The table of labels (file_name,label), if it lies elsewhere."),
]
Folders = Annotated[
    str | None, Option(metavar="use|ignore", help="Beside a table: whether class folders are labels too.")
]
FileColumn = Annotated[str | None, Option(metavar="NAME", help="Column of the table that names the image; file_name.")]
LabelColumn = Annotated[str | None, Option(metavar="NAME", help="Column of the table that names its class; label.")]
Settings = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")]
Seeds = Annotated[int, Option(min=1, help="How many seeds; each is another choice of labels.")]
Resume = Annotated[bool, Option("--resume", help="Go on with what was stopped.")]
BeginAnew = Annotated[bool, Option("--overwrite", help="Begin anew in the same folder.")]
Replace = Annotated[bool, Option("--overwrite", help="Replace files that are there.")]
ParallelRuns = Annotated[int | None, Option(min=1, help="Runs at a time; as many as there are cores.")]
Device = Annotated[str | None, Option(help="cuda or cpu; a GPU if there is one.")]
Port = Annotated[int, Option(min=0, max=65535, help="0: any that is free.")]
AsJson = Annotated[bool, Option("--json", help="Print all of it as JSON.")]


def one_table(tables: list[Path] | None) -> Path | None:
    """The table that ``--labels`` names. Of two, the last alone would count, and nobody would notice."""
    if not tables:
        return None
    if len(tables) > 1:
        names = " and ".join(map(str, tables))
        raise ValueError(
            f"--labels is given {len(tables)} times: {names}. Expected one table; put their rows into one."
        )
    return tables[0]
