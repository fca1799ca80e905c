"""Which photos of a folder a run was trained with: they do not show its accuracy on others."""

import os
from collections.abc import Collection
from pathlib import Path

from debiaspl.data.file_names import leads_out
from debiaspl.deploy.labeled import labels_of_run, learned_from_teacher, recipe_of
from debiaspl.files.digest import digest_of_file
from debiaspl.training import Run, RunError


def trained_with(run: Path, photos: Path, files: Collection[str]) -> set[str] | None:
    """Those of ``files``, all images of the folder ``photos``, that were labeled training images of the run; None if
    that is not known.

    The run has recorded their names. For a run of an earlier version, its current table is used. In another folder than
    the run's, copies are found by their content. Labels of a zero-shot teacher do not count.
    """
    if learned_from_teacher(run):
        return set()
    names = _recorded(run)
    if names is None:
        known = labels_of_run(run, photos)
        return None if known is None else known.keys() & set(files)
    try:
        origin = Path(recipe_of(run).data).expanduser()
        if not origin.is_dir():  # moved, or on another machine; names are enough if all of them are here
            return names if names <= set(files) else None
        return names & set(files) if os.path.samefile(origin, photos) else _copies(names, origin, photos, files)
    except (RunError, OSError, ValueError):
        return None


def _recorded(run: Path) -> set[str] | None:
    """The names in results.json; None if it has none, or something else."""
    try:
        found = (Run(run).results() or {}).get("learned_from")
    except (RunError, OSError):
        return None
    return set(found) if isinstance(found, list) and all(isinstance(name, str) for name in found) else None


def _copies(names: set[str], origin: Path, photos: Path, files: Collection[str]) -> set[str] | None:
    """Those of ``files`` with the content of a photo of these names below ``origin``; None if some are missing."""
    theirs = [origin / name for name in names]
    if any(leads_out(origin, path) or not path.is_file() for path in theirs):
        return None
    # Only files of equal size are read.
    sizes = {path: path.stat().st_size for path in theirs}
    own = {file: (photos / file).stat().st_size for file in files if (photos / file).is_file()}
    both = set(sizes.values()) & set(own.values())
    contents = {digest_of_file(path) for path, size in sizes.items() if size in both}
    return {file for file, size in own.items() if size in both and digest_of_file(photos / file) in contents}
