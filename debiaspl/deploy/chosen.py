"""Which of several models that were trained together is the model of their run."""

import json
import os
import stat
from pathlib import Path

from debiaspl.files import parse_json, write_text
from debiaspl.training import RunError

CHOSEN = "chosen.json"
"""A file in a run's folder that names the subfolder whose model is used instead; absent if there is none."""


LARGEST = 10_000
"""In bytes."""


def hand_out(run: Path, folder: str) -> None:
    """Make the model of this subfolder the model of the run; an empty name selects the run's own."""
    if folder:
        write_text(run / CHOSEN, json.dumps({"folder": folder}) + "\n")
    else:
        (run / CHOSEN).unlink(missing_ok=True)


def chosen_folder(run: Path) -> Path:
    """The folder whose model is the model of this run."""
    path = run / CHOSEN
    if not os.path.lexists(path):
        return run
    try:
        status = path.lstat()
        small = stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST
        name = str(parse_json(path.read_bytes())["folder"]) if small else ""
    except (KeyError, TypeError, ValueError, OSError):
        name = ""
    if name in ("", ".", "..") or Path(name).name != name or "\\" in name or _has_links(run / name):
        # The file is untrusted: a path could lead out of the run.
        raise RunError(
            f'{path} is damaged, expected {{"folder": NAME}} with the name of a folder in {run}. Remove it to use the '
            "run's own model."
        )
    return run / name


def _has_links(folder: Path) -> bool:
    return folder.is_symlink() or (folder / "model.safetensors").is_symlink()
