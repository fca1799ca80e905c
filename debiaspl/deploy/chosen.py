"""Which of the models that were trained together is used where their run is named."""

import json
from pathlib import Path

from debiaspl.files import parse_json, write_text
from debiaspl.training import RunError

CHOSEN = "chosen.json"
"""A file in a run's folder that names the folder below it whose model is used instead; only where there is one."""


def hand_out(run: Path, folder: str) -> None:
    """Have the model of this folder below the run used wherever the run is named; an empty name: its own."""
    if folder:
        write_text(run / CHOSEN, json.dumps({"folder": folder}) + "\n")
    else:
        (run / CHOSEN).unlink(missing_ok=True)


def chosen_folder(run: Path) -> Path:
    """The folder whose model is used where this run is named."""
    path = run / CHOSEN
    if not path.is_file():
        return run
    try:
        name = str(parse_json(path.read_bytes())["folder"])
    except (KeyError, TypeError, ValueError, OSError):
        name = ""
    if name in ("", ".", "..") or Path(name).name != name or "\\" in name or (run / name).is_symlink():
        # It may be somebody else's: a path would lead out of the run.
        raise RunError(
            f'{path} is damaged, expected {{"folder": NAME}} with the name of a folder in {run}. Remove it to use the '
            "run's own model."
        )
    return run / name
