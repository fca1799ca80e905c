"""``--overwrite``: the earlier folder becomes NAME.old, which is removed when the new one is complete.

Nothing is hidden, and nothing is moved back. A folder is complete when it has its ``results.json``. From NAME.old only
what a run writes is removed; other files stay there. A NAME.old that exists already is kept: an unfinished NAME is
then replaced, and a finished one becomes NAME.old2.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from debiaspl.files.whole import PARTIAL, Busy, FileError, open_locked, put_in_place, write_text

NOTE = "OLD.txt"
"""In a folder that --overwrite has renamed. Without it, a folder of that name is the user's own."""
_LAST = ("config.json", NOTE)
"""Removed last: a folder that is removed in part is still known for what it is."""
_RUN = (
    r"config\.json|log\.jsonl|model\.safetensors|predictions\.csv|results\.json|report\.html|chosen\.json"
    r"|table\.md|zeroshot\.csv|repeat\.json|OLD\.txt|\.compare|\.demo|\.zeroshot|\.lock|events\.out\.tfevents\..+"
)
_FOLDERS = {
    r"checkpoint": r"step-\d+\.safetensors",
    r"\.features|[0-9a-f]{16}": r"\d+\.safetensors|about\.json|manifest\.jsonl|\.lock",
    r"supervised|frozen|graph|start|check|fixmatch|debiaspl|taught|fold-\d+|.+-seed\d+|.+-fold\d+": _RUN,
}
"""Folders in a run, and the files that belong into them."""
_log = logging.getLogger("debiaspl")


@contextmanager
def replacing(folder: Path, overwrite: bool, inputs: Iterable[Any] = ()) -> Iterator[None]:
    """Around what fills ``folder``; with ``overwrite``, the earlier one is renamed before.

    Raises, and changes nothing, where a process works in the folder, where it is a link or the current folder, and
    where it contains one of the ``inputs`` (paths, or values with paths in them).
    """
    if overwrite and folder.is_dir() and any(folder.iterdir()):
        _refuse(folder, inputs)
        _set_aside(folder)
    name = re.compile(re.escape(folder.name) + r"\.old\d*")
    noted = (path.parent for path in sorted(folder.parent.glob(f"*.old*/{NOTE}")) if path.is_file())
    old = [path for path in noted if name.fullmatch(path.name) and not path.is_symlink()]
    kept = f"the earlier one is kept in {' and '.join(map(str, old))} until a new one in {folder} is complete"
    if old:
        _log.warning("%s", kept)
    try:
        yield
    except BaseException:
        if old:
            _log.warning("not complete: %s", kept)
        raise
    if is_complete(folder):
        for path in old:
            remove_written(path)


def is_complete(folder: Path) -> bool:
    return (folder / "results.json").is_file()


def remove_written(folder: Path) -> None:
    """Remove what a run writes from a folder, and the folder if nothing else is in it; what stays is logged."""
    try:
        left = _remove(folder, rf"{_RUN}|labels\.csv" if (folder / ".zeroshot").is_file() else _RUN)
    except OSError as error:
        _log.warning("%s could not be removed: %s. Remove it by hand.", folder, error.strerror or error)
        return
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        names = ", ".join(str(path.relative_to(folder)) for path in left[:3])
        _log.warning("%s stays, because a run did not write what it also contains: %s%s", folder, names, more)


def _set_aside(folder: Path) -> None:
    """Rename the folder, or remove an unfinished one if there is an older one."""
    names = (folder.with_name(f"{folder.name}.old{number}") for number in chain([""], count(2)))
    old = next(path for path in names if not os.path.lexists(path))
    if not is_complete(folder) and old.name != f"{folder.name}.old":
        remove_written(folder)
        if not folder.exists():
            return
    try:
        put_in_place(folder, old)
    except OSError as error:
        raise FileError(f"{folder} could not be moved to {old}: {error.strerror or error}. Nothing is lost.") from error
    until = "This earlier one is removed when the new one is complete.\nTo keep it, rename this folder.\n"
    write_text(old / NOTE, f"{folder.name} is being replaced with --overwrite. {until}")


def _remove(folder: Path, files: str) -> list[Path]:
    """Remove files of these names, also from the folders of a run; returns what is left."""
    left: list[Path] = []
    for path in sorted(folder.iterdir(), key=lambda path: (path.name in _LAST, path.name)):
        inside = next((files for name, files in _FOLDERS.items() if re.fullmatch(name, path.name)), None)
        if path.is_symlink():
            left.append(path)
        elif path.is_dir():
            left += [path] if inside is None else _remove(path, inside)
        elif path.is_file() and (re.fullmatch(files, path.name) or PARTIAL.fullmatch(path.name)):
            path.unlink()
        else:
            left.append(path)
    with suppress(OSError):
        folder.rmdir()
    return left


def _refuse(folder: Path, inputs: Iterable[Any]) -> None:
    if folder.is_symlink():
        raise FileError(f"{folder} is a link, so it is not overwritten. Give the folder that it leads to.")
    if Path.cwd().is_relative_to(folder.resolve()):
        raise FileError(f"{folder} is the current folder or contains it, so it is not overwritten. Use another --out.")
    for path in map(Path, _texts(list(inputs))):
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            raise FileError(f"{path} is needed and lies in {folder}, which would be renamed. Choose another --out.")
    for lock in (path for depth in ("", "*/", "*/*/") for path in folder.glob(f"{depth}.lock")):
        try:
            open_locked(lock).close()
        except Busy as error:
            raise FileError(f"another process is training in {lock.parent}. Wait, or choose another --out.") from error


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value that may be a path; ``PATH.py:Class`` is one of a file."""
    if isinstance(value, Path):
        yield str(value)
    elif isinstance(value, str) and 0 < len(value) < 1000:
        yield value
        yield value.rpartition(":")[0] or value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
