"""Options that several commands have, each declared once: one name, one meaning, one help text."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from debiaspl._processes import rank
from debiaspl.cli.usage import checked_method, checked_settings

if TYPE_CHECKING:
    from debiaspl.data.label_table import Columns

MACHINE = "GPUs and several processes"
"""Title of options that few need."""


def option(help: str, without: str | None = None, *names: str, **more: Any) -> Any:
    """An option; ``without`` says what happens without it, where its default does not."""
    return Option(*names, help=help, show_default=without or True, **more)


def argument(metavar: str, help: str, without: str | None = None) -> Any:
    """What is typed without the name of an option."""
    return Argument(metavar=metavar, help=help, show_default=without or True)


def file(help: str, without: str | None = None, *names: str, **more: Any) -> Any:
    return option(help, without, *names, metavar="FILE", **more)


def flag(name: str, help: str, **more: Any) -> Any:
    return Option(name, help=help, **more)


EndedRun = Annotated[Path, argument("RUN", "The folder of a run that has ended.")]
Photos = Annotated[Path, argument("PHOTOS", "A folder of photos, at any depth.")]
LabelTable = Annotated[
    Path | None, file("Read labels from this table (file_name,label).", "PHOTOS/labels.csv or class folders")
]
Folders = Annotated[
    str | None,
    option(
        "With a table of labels: whether class folders are labels too.",
        "an error where both exist",
        metavar="use|ignore",
    ),
]
TableColumns = Annotated[
    list[str] | None,
    option(
        "A column of another name: file=photo, label=kind; may be repeated.", "the usual names", metavar="ROLE=NAME"
    ),
]
Settings = Annotated[
    list[str] | None,
    option(
        "Change a setting; may be repeated. See: debiaspl list settings.",
        "no change",
        "--set",
        metavar="KEY=VALUE",
        callback=checked_settings,
    ),
]
Encoder = Annotated[
    str | None,
    option(
        "A pretrained network: efficientnet-lite0, a vision model (hub name or folder), or none.",
        "efficientnet-lite0, if it is installed",
    ),
]
STORED = "A folder of features, as debiaspl encode writes them: what it has is not computed again."
Features = Annotated[Path | None, option(STORED, "beside the run", metavar="FOLDER")]
RunFeatures = Annotated[Path | None, option(STORED, "with a run: all are computed", metavar="FOLDER")]
PartOf = Annotated[
    str | None,
    option(
        "Compute part I of N, from 1. /N takes I from JOB_COMPLETION_INDEX.",
        "that of torchrun or of a Slurm array, or all",
        metavar="I/N",
    ),
]
Network = Annotated[
    str | None,
    option(
        "Your own network: mine.py:build, called with num_classes.", "an encoder, or the recipe's", metavar="FILE:NAME"
    ),
]
RunNetwork = Annotated[
    str | None, option("The code of the run's network, if that is your own.", "no code", metavar="FILE:NAME")
]
OnRay = Annotated[
    str | None, option("ray: share the work on a Ray cluster (RAY_ADDRESS, or this machine).", "this process")
]
Seeds = Annotated[int, option("How many seeds; each chooses other labels.", min=1)]
Resume = Annotated[bool, flag("--resume", "Resume a run that was stopped.")]
Overwrite = Annotated[
    bool, flag("--overwrite", "Replace what --out holds; it is NAME.old until the new one is complete.")
]
OverwriteFiles = Annotated[bool, flag("--overwrite", "Replace files that exist already.")]
Jobs = Annotated[int | None, option("Runs that train at the same time.", "one for each core; one on a GPU", min=1)]
Device = Annotated[str | None, option("cuda or cpu; or mps, which is not tested.", "cuda if there is a GPU")]
Port = Annotated[int, option("Port of the page; 0 takes any free one.", min=0, max=65535)]
AsJson = Annotated[bool, flag("--json", "Print JSON instead.")]
Length = Annotated[str | None, option("paper, fast, minutes or start.", "the recipe's first one", metavar="NAME")]
Method = Annotated[
    str | None,
    option(
        "debiaspl, fixmatch, supervised, ALGORITHM or ALGORITHM+CORRECTION; moco, simclr and swav learn features "
        "without labels.",
        "debiaspl, or the recipe's",
        callback=checked_method,
        metavar="NAME",
    ),
]


def photos_or_features(photos: Path | None, features: Path | None) -> tuple[Path, Path | None]:
    """The photos, or the folder of features in their place; and where features are."""
    from debiaspl.data.manifest import encoders_in

    if features is not None and not features.is_dir():
        make = f"debiaspl encode PHOTOS --out {features}"
        raise ValueError(f"--features {features} is not a folder. Make it first: {make}")
    if photos is None and features is not None:
        if not encoders_in(features):
            raise ValueError(f"{features} holds no features. Expected a folder that debiaspl encode has written.")
        return features, features
    if photos is None:
        raise ValueError("expected a folder of photos, or --features.")
    return photos, features or (photos if encoders_in(photos) else None)


def is_on_ray(on: str | None) -> bool:
    if on not in (None, "ray"):
        raise ValueError(f"--on is {on}, expected ray, or nothing.")
    return on is not None


def part_of(text: str | None) -> tuple[int, int]:
    """The part of this process, by ``--part`` or a scheduler: its number, from 0, and how many there are."""
    environment = os.environ
    if text is not None:
        parsed = re.fullmatch(r"(\d*)/(\d+)", text)
        if parsed is None or not (parsed[1] or "JOB_COMPLETION_INDEX" in environment):
            raise ValueError(f"--part is {text}, expected I/N, such as 2/8; or /N, with JOB_COMPLETION_INDEX.")
        part = int(parsed[1]) - 1 if parsed[1] else int(environment["JOB_COMPLETION_INDEX"]), int(parsed[2])
    elif (number := rank()) is not None:
        part = number, int(environment["WORLD_SIZE"])
    elif "SLURM_ARRAY_TASK_ID" in environment:
        first = int(environment.get("SLURM_ARRAY_TASK_MIN", 0))
        step = max(int(environment.get("SLURM_ARRAY_TASK_STEP", 1)), 1)
        number, rest = divmod(int(environment["SLURM_ARRAY_TASK_ID"]) - first, step)
        part = -1 if rest else number, int(environment.get("SLURM_ARRAY_TASK_COUNT", 0))
    else:
        part = 0, 1
    if not 0 <= part[0] < part[1]:
        raise ValueError(f"the part is {part[0] + 1} of {part[1]}, expected 1 to {part[1]}. Name it: --part I/N.")
    return part


def columns_of(texts: list[str] | None, roles: tuple[str, ...]) -> dict[str, str]:
    named = {}
    for text in texts or ():
        role, _, name = text.partition("=")
        if role not in roles or not name:
            raise ValueError(f"--column is {text!r}, expected ROLE=NAME, with a role of {', '.join(roles)}.")
        named[role] = name
    return named


def table_columns(texts: list[str] | None) -> "Columns":
    """Those of a table of labels."""
    from debiaspl.data.label_table import Columns

    return Columns(**columns_of(texts, ("file", "label")))


def refuse_useless(options: Mapping[str, Any], why: str) -> None:
    """Raise where one of these is given, which would do nothing; ``why``."""
    if given := [name for name, value in options.items() if value not in (None, False, [])]:
        raise ValueError(f"{why}: leave out {' and '.join(given)}.")


def refuse_existing_files(overwrite: bool, outputs: Mapping[str, Path | None]) -> None:
    """Raise where a file exists already, or where two outputs, by option, are the same file."""
    from debiaspl.files import refuse_existing

    seen: dict[str, str] = {}
    for name, path in outputs.items():
        if path is not None:
            first = seen.setdefault(os.path.realpath(path), name)
            if first != name:
                raise ValueError(f"{first} and {name} are the same file, {path}. Expected a file for each.")
            refuse_existing(path, overwrite)


def refuse_both(resume: bool, overwrite: bool) -> None:
    """Raise where a run should be both continued and replaced, or replaced by processes that may be restarted."""
    if resume and overwrite:
        raise ValueError("--resume continues a run and --overwrite replaces it, and both are given. Expected one.")
    if overwrite and rank() is not None:
        raise ValueError("--overwrite is for one process, as torchrun may restart it. Remove the folder first.")
