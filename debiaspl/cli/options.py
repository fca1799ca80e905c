"""Options that several commands have, each declared once: one name, one meaning, one help text."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from debiaspl._torchrun import rank
from debiaspl.cli.usage import checked_encoder, checked_method, checked_settings

MACHINE = "GPUs and several processes"
"""Title of options that few need."""


def option(help: str, without: str | None = None, *names: str, **more: Any) -> Any:
    """An option; ``without`` says what happens without it, where its default does not."""
    return Option(*names, help=help, show_default=without or True, **more)


def file(help: str, without: str | None = None, *names: str, **more: Any) -> Any:
    """An option that names a file."""
    return option(help, without, *names, metavar="FILE", **more)


def flag(name: str, help: str, **more: Any) -> Any:
    return Option(name, help=help, **more)


EndedRun = Annotated[Path, Argument(metavar="RUN", help="The folder of a run that has ended.")]
Photos = Annotated[Path, Argument(metavar="PHOTOS", help="A folder of photos, at any depth.")]
LabelTable = Annotated[
    list[Path] | None, file("Read labels from this table (file_name,label).", "PHOTOS/labels.csv or class folders")
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
        "A column of another name: file=photo, label=kind; may be repeated.",
        "the usual names",
        "--column",
        metavar="ROLE=NAME",
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
        callback=checked_encoder,
    ),
]
Features = Annotated[
    Path | None,
    option(
        "A folder of features, as debiaspl encode writes them: what it has is not computed again, and PHOTOS may be "
        "left out.",
        "beside the run",
        metavar="FOLDER",
    ),
]
PartOf = Annotated[
    str | None,
    option(
        "Compute part I of N, from 1. /N takes I from JOB_COMPLETION_INDEX.",
        "that of torchrun or of a Slurm array, or all",
        "--part",
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
    str | None,
    option("The code of the run's network, if that is your own.", "no code", "--network", metavar="FILE:NAME"),
]
OnRay = Annotated[
    str | None, option("ray: share the work on a Ray cluster (RAY_ADDRESS, or this machine).", "this process", "--on")
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
        raise ValueError(
            f"--features {features} is not a folder. Make it first: debiaspl encode PHOTOS --out {features}"
        )
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
