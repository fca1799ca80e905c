"""Folders that a command fills: free, resumed, or overwritten with ``--overwrite``."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from debiaspl.files import exists_already, replacing
from debiaspl.training import Job, RunError


@contextmanager
def experiment_folder(
    out: Path, kind: str, resume: bool, overwrite: bool, inputs: Iterable[Any] = ()
) -> Iterator[None]:
    """Make ``out`` a folder that is free, or holds an experiment of this ``kind``, which is known by a hidden file.
    With ``overwrite`` an earlier one is replaced."""
    exists = _holds(out, kind)
    if exists and not resume and not overwrite:
        raise RunError(exists_already(out, f"a {kind}"))
    with replacing(out, overwrite and exists, inputs):
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / f".{kind}").touch()
        except OSError as error:
            raise RunError(f"could not write {out}: {error.strerror}. Choose another --out.") from error
        yield


def timed(
    train: Callable[[Callable[[int], None]], Sequence[dict[str, Any]]],
    jobs: Sequence[Job],
    watch: Callable[[int, int], None],
) -> tuple[Sequence[dict[str, Any]], dict[str, float]]:
    """The results of all runs, and how long they took. ``watch`` is called with the steps done and the total."""
    total, started = sum(job.recipe.steps for job in jobs), time.monotonic()
    ended = train(lambda steps: watch(steps, total))
    seconds = round(time.monotonic() - started, 1)
    return ended, {"seconds": seconds, "seconds_of_runs": sum(run["timing"]["seconds"] for run in ended)}


def _holds(out: Path, kind: str) -> bool:
    """Whether ``out`` holds an experiment of this ``kind``. Raises where it holds anything else."""
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or an unused name. Choose another --out.")
    if not out.exists() or not any(out.iterdir()):
        return False
    if not (out / f".{kind}").exists():
        raise RunError(f"{out} is not empty and contains no {kind}, so it is not overwritten. Choose another --out.")
    return True
