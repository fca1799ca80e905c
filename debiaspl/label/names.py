"""Which file of the folder a row of the table means: the rules that training reads labels.csv by."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath

from debiaspl.data.class_names import composed


class Names:
    """The files below ``root``, in whatever spelling a table has them."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.root = root
        files = tuple(files)
        # macOS writes accents in two code points where most keyboards write one: both forms find the file.
        self._known = {composed(file): file for file in files} | {file: file for file in files}

    def locate(self, name: str) -> str | None:
        """The file, relative to root; None if there is none. A file named in a table needs no image extension."""
        if name in self._known:  # nearly always, and it spares a look at the disk
            return self._known[name]
        if leaves(name):
            return None
        for spelled in (PurePosixPath(name).as_posix(), PurePosixPath(name.strip()).as_posix()):
            file = self._known.get(spelled) or self._known.get(composed(spelled))
            if file is not None or os.path.isfile(self.root / spelled):
                return file or spelled
        return None


def leaves(name: str) -> bool:
    """Whether a path would lead out of the folder, by the rules of Windows too, on any system."""
    bare = name.strip()
    return bool(PurePath(bare).anchor) or bare.startswith("\\") or ".." in bare.replace("\\", "/").split("/")


def why_unnameable(file: str) -> str | None:
    """Why a file cannot stand in a table that every reader takes, if so."""
    try:
        file.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, so labels.csv cannot hold it; rename it"
    return "its name looks like a path out of the folder; rename it" if leaves(file) else None
