"""The warning of ``--resume`` where there is nothing to resume: most likely --out is mistyped.

It is not an error: job files always say --resume, and then a new run starts.
"""

import shlex
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from debiaspl._torchrun import rank
from debiaspl._wrapped import whole
from debiaspl.cli.terminal import say

if TYPE_CHECKING:
    from debiaspl.training import Recipe


def warn_of_new_run(folder: Path, recipe: "Recipe") -> None:
    """Warn about one run. Other folders that it names hold a run of the same recipe."""
    from debiaspl.training import Run, RunError

    def holds_it(place: Path) -> bool:
        try:
            run = Run.at(place, recipe, resume=True)
            return run.config_path.exists() and run.results() is None
        except (RunError, OSError, ValueError):
            return False  # of another recipe, or not a run

    if rank():
        return  # the first one speaks for all
    if _is_free(folder):
        _warn(folder, "run", "a run of this recipe", [place for place in _beside(folder) if holds_it(place)])


def warn_of_new_experiment(folder: Path, kind: str, words: str) -> None:
    """Warn about an experiment of several runs, in a folder marked by the hidden file ``.kind``."""

    def holds_it(place: Path) -> bool:
        try:
            return (place / f".{kind}").exists() and not (place / "results.json").exists()
        except OSError:
            return False  # closed to us

    if _is_free(folder) and not (folder / f".{kind}").exists():
        _warn(folder, words, f"a {words}", [place for place in _beside(folder) if holds_it(place)])


def _warn(folder: Path, words: str, one_like_it: str, others: list[Path]) -> None:
    """Print the warning. Of several other folders, name the one most similar to what was typed."""
    said = f"--resume found no {words} in {whole(folder)}, so a new one starts there."
    if others:
        meant = max(others, key=lambda place: SequenceMatcher(None, place.name, folder.name).ratio())
        option = whole(shlex.join(["--out", str(meant)]))
        said += f" {whole(meant)} holds {one_like_it} that has not ended. If you meant that one, stop this and use: "
        said += option
    say(said, err=True)


def _is_free(folder: Path) -> bool:
    """Whether a new run would start here; other contents are refused elsewhere."""
    try:
        return not folder.exists() or (folder.is_dir() and all(path.name.startswith(".") for path in folder.iterdir()))
    except OSError:
        return False


def _beside(folder: Path) -> list[Path]:
    """Other folders in the same one."""
    if folder.name in ("", ".."):
        return []
    try:
        return sorted(path for path in folder.parent.iterdir() if path.is_dir() and path.name != folder.name)
    except OSError:
        return []
