"""Folders that a command writes: free, resumed, or overwritten with ``--overwrite``."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from debiaspl.files import Busy, exists_already, locked, remove_folder
from debiaspl.training import Recipe, Run, RunError
from debiaspl.training.run import OTHER_OUT


def prepare_folder(out: Path, kind: str, resume: bool, overwrite: bool) -> None:
    """Make ``out`` a folder that is free, or holds an experiment of this ``kind``, which is known by a hidden file."""
    mark = out / f".{kind}"
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or a name that is free. Choose another --out.")
    if out.exists() and any(out.iterdir()):
        if not mark.exists():
            raise RunError(
                f"{out} is not empty and contains no {kind}, so it is not overwritten. Choose another --out."
            )
        if overwrite:
            remove_folder(out)
        elif not resume:
            raise RunError(exists_already(out, f"a {kind}", resume=True, other=OTHER_OUT))
    try:
        out.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise RunError(f"could not write {out}: {error.strerror}. Choose another --out.") from error


def overwrite_run(folder: Path, recipe: Recipe) -> None:
    """Remove an earlier run from ``folder``, so that ``recipe`` can be trained there.

    Only runs are removed; ``Run.at`` refuses anything else. Raises where a process trains in the folder, or where the
    new run would read something inside it.
    """
    if not Run(folder).config_path.exists():
        return
    Run(folder).recipe()  # raises for the config.json of something else
    refuse_inputs_inside(folder, [Path(text) for text in _texts(recipe.to_json())])
    try:
        with locked(folder / ".lock"):
            remove_folder(folder)
    except Busy as error:
        raise RunError(
            f"another process is training in {folder}, so it is not overwritten. Wait for it or stop it, or choose "
            "another --out."
        ) from error


def refuse_inputs_inside(folder: Path, inputs: Iterable[Path]) -> None:
    """Raise where a file or folder that is needed lies inside the ``folder`` that would be removed."""
    for path in inputs:
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            raise RunError(
                f"{path} is needed and lies in {folder}, which --overwrite would remove. Choose another --out."
            )


def _texts(value: Any) -> Iterator[str]:
    """Every text in a recipe that may be a path."""
    if isinstance(value, str) and value and len(value) < 1000:
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
