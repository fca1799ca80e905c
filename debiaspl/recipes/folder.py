"""The folder of an experiment that is made of several runs."""

from pathlib import Path

from debiaspl.files import remove_folder
from debiaspl.training import RunError


def prepare_folder(out: Path, kind: str, resume: bool, overwrite: bool) -> None:
    """Make ``out`` a folder that is free, or holds an experiment of this ``kind``, which is known by a hidden file."""
    mark = out / f".{kind}"
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or a name that is free. Choose another --out.")
    if out.exists() and any(out.iterdir()):
        if not mark.exists():
            raise RunError(f"{out} is not empty and holds no {kind}. Choose another --out.")
        if overwrite:
            remove_folder(out)
        elif not resume:
            raise RunError(f"{out} already holds a {kind}. Go on with it: --resume. Begin it anew: --overwrite.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise RunError(f"could not write {out}: {error.strerror}. Choose another --out.") from error
