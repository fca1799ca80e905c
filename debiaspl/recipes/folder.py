"""Folders that a command writes: free, resumed, or overwritten with ``--overwrite``."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from debiaspl.files import Busy, exists_already, locked, moved_aside
from debiaspl.training import Recipe, Run, RunError
from debiaspl.training.run import OTHER_OUT

RUN_FILES = {
    *("config.json", "log.jsonl", "checkpoint", "model.safetensors", "predictions.csv", "results.json", "report.html"),
    *("chosen.json", ".lock"),
}
EXPERIMENT_FILES = {
    *("results.json", "table.md", "report.html", "comparison.png", "predictions.csv", "zeroshot.csv", "labels.csv"),
    *("repeat.json", ".compare", ".demo", ".zeroshot", ".features"),
}
"""Of a folder with several runs: those of ``compare``, ``demo``, ``zeroshot`` and ``repeat``."""
BELOW = re.compile(r"supervised|graph|start|check|fixmatch|debiaspl|taught|fold-\d+|.+-seed\d+|.+-fold\d+")
"""Names of the folders in them: runs, or folders of runs."""
PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial")
"""What a killed process may leave of a file."""


@contextmanager
def experiment_folder(
    out: Path, kind: str, resume: bool, overwrite: bool, inputs: Iterable[Any] = ()
) -> Iterator[None]:
    """Make ``out`` a folder that is free, or holds an experiment of this ``kind``, which is known by a hidden file.
    With ``overwrite`` an earlier one is replaced: see ``overwriting``."""
    found = _holds(out, kind)
    if found and not resume and not overwrite:
        raise RunError(exists_already(out, f"a {kind}", resume=True, other=OTHER_OUT))
    with overwriting(out, inputs) if found and overwrite else nullcontext():
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / f".{kind}").touch()
        except OSError as error:
            raise RunError(f"could not write {out}: {error.strerror}. Choose another --out.") from error
        yield


def _holds(out: Path, kind: str) -> bool:
    """Whether ``out`` holds an experiment of this ``kind``. Raises where it holds anything else."""
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or an unused name. Choose another --out.")
    if not out.exists() or not any(out.iterdir()):
        return False
    if not (out / f".{kind}").exists():
        raise RunError(f"{out} is not empty and contains no {kind}, so it is not overwritten. Choose another --out.")
    return True


@contextmanager
def overwriting_run(folder: Path, recipe: Recipe) -> Iterator[None]:
    """Move an earlier run out of the way while ``recipe`` is trained in its ``folder``: see ``overwriting``."""
    if not Run(folder).config_path.exists():
        yield  # nothing, or not a run: Run.at refuses that
        return
    Run(folder).recipe()  # raises for the config.json of something else
    with overwriting(folder, [recipe.to_json()]):
        yield


@contextmanager
def overwriting(folder: Path, inputs: Iterable[Any]) -> Iterator[None]:
    """Move what debiaspl has written to ``folder`` out of the way while the block runs.

    It is deleted when the block has begun to write the new one, and moved back if the block fails before that. Raises,
    and changes nothing, where the folder contains files of others or one of the ``inputs`` (paths, or values with paths
    in them), where a process trains in it, and where it is a link or the current folder.
    """
    if folder.is_symlink():
        raise RunError(f"{folder} is a link, so it is not overwritten. Give the folder that it leads to.")
    if Path.cwd().is_relative_to(folder.resolve()):
        raise RunError(
            f"{folder} is the current folder or contains it, so it is not overwritten. Choose another --out."
        )
    if strange := sorted(_foreign(folder)):
        named = ", ".join(str(path.relative_to(folder)) for path in strange[:3]) + (", ..." if len(strange) > 3 else "")
        raise RunError(
            f"{folder} also contains {named}, which debiaspl has not written there, so it is not overwritten. Move "
            "that away, or choose another --out."
        )
    refuse_inputs_inside(folder, (Path(text) for text in _texts(list(inputs))))
    _refuse_busy(folder)
    with moved_aside(folder):
        yield


def refuse_inputs_inside(folder: Path, inputs: Iterable[Path]) -> None:
    """Raise where a file or folder that is needed lies inside the ``folder`` that would be removed."""
    for path in inputs:
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            raise RunError(
                f"{path} is needed and lies in {folder}, which --overwrite would remove. Choose another --out."
            )


def _foreign(folder: Path) -> Iterator[Path]:
    """Files and folders that no command of debiaspl writes there."""
    for path in folder.iterdir():
        if path.is_symlink():
            yield path
        elif path.name in RUN_FILES | EXPERIMENT_FILES or PARTIAL.fullmatch(path.name):
            continue
        elif path.is_dir() and BELOW.fullmatch(path.name):
            yield from _foreign(path)
        else:
            yield path


def _refuse_busy(folder: Path) -> None:
    """Raise where a process trains in ``folder`` or in one of its runs."""
    if (folder / ".lock").exists():
        try:
            with locked(folder / ".lock"):
                pass
        except Busy as error:
            raise RunError(
                f"another process is training in {folder}, so it is not overwritten. Wait for it or stop it, or choose "
                "another --out."
            ) from error
    for path in folder.iterdir():
        if path.is_dir() and BELOW.fullmatch(path.name):
            _refuse_busy(path)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value that may be a path; ``PATH.py:Class`` is one of a file."""
    if isinstance(value, Path):
        yield str(value)
    elif isinstance(value, str) and value and len(value) < 1000:
        yield value
        yield value.rpartition(":")[0] or value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
