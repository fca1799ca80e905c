"""Finds the file that a table names: by a relative or absolute path, or by a Label Studio address."""

import os
import re
from collections.abc import Iterable
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import unquote

from debiaspl.data.text import composed

EXTENSIONS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp"),
    *(".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"),
)
HEIC = (".heic", ".heif")
NO_HEIC = "HEIC, the format of iPhones, needs pillow-heif: pip install 'debiaspl[heic]'"
_UPLOADED = re.compile(r"(?:https?://[^/]+)?/data/upload/(?:\d+/)?(?:[0-9a-f]{8}-)?([^/]+)")
_SERVED = re.compile(r"(?:https?://[^/]+)?/data/local-files/\?d=(.+)|[a-z][a-z0-9+.-]*://[^/]*/(.+)", re.IGNORECASE)

FOLLOW_LINKS = "DEBIASPL_FOLLOW_LINKS"
"""Environment variable: whether links may lead out of a folder. Workers and ranks inherit it."""


def leads_out(root: Path, path: Path) -> bool:
    """Whether a path below root is, through a link, outside of it, and links must not be followed."""
    if os.environ.get(FOLLOW_LINKS) == "1":
        return False
    return not PurePath(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


@cache
def reads_heic() -> bool:
    return find_spec("pillow_heif") is not None


def is_image_name(name: str) -> bool:
    extension = os.path.splitext(name)[1].lower()
    return extension in EXTENSIONS or (extension in HEIC and reads_heic())


class FileNames:
    """The files below ``root``, in any spelling that a table may have."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.root = root
        self._files = tuple(files)
        # macOS writes accents as two code points, most keyboards as one: both forms find the file.
        self._known = {composed(file): file for file in self._files} | {file: file for file in self._files}
        self._roots = tuple(PurePath(place(root)) for place in (os.path.abspath, os.path.realpath))

    def locate(self, name: str) -> str | None:
        """The file, relative to root, which needs no image extension; None if there is none, or if several fit."""
        if name in self._known:  # the usual case, without disk access
            return self._known[name]
        inside = self.below(name)
        if inside is None:
            return None
        for spelled in (PurePosixPath(inside).as_posix(), PurePosixPath(inside.strip()).as_posix()):
            file = self._known.get(spelled) or self._known.get(composed(spelled))
            if file is not None:
                return file
            if os.path.isfile(self.root / spelled) and not leads_out(self.root, self.root / spelled):
                return spelled
        # By the conventions of other systems and programs.
        plain = composed(PurePosixPath(inside.strip().replace("\\", "/")).as_posix())
        inner = {self._known[each] for each in self._below_root_name(plain) if each in self._known}
        return self._known.get(plain) or (inner.pop() if len(inner) == 1 else None)

    def _below_root_name(self, path: str) -> list[str]:
        """The rest of a path that begins with the last folders of root, as seen from above."""
        parts = PurePosixPath(path).parts
        counts = range(1, len(parts))
        return ["/".join(parts[n:]) for n in counts if any(parts[:n] == root.parts[-n:] for root in self._roots)]

    def below(self, name: str) -> str | None:
        """The path relative to root; None if it leads out of it."""
        bare = name.strip()
        if uploaded := _UPLOADED.fullmatch(bare):
            # A name that cannot be a file becomes ".", which is never a file.
            return self._uploads.get(_uploaded_name(unquote(uploaded[1], errors="surrogateescape"))) or "."
        if served := _SERVED.fullmatch(bare):
            # The path part of an address is relative to a folder that may be above root.
            path = unquote(served[1] or served[2], errors="surrogateescape")
            name = bare = (self._below_root_name(path) or [path])[-1]
        # Checked without surrounding spaces, as it may be read, and by the rules of Windows too.
        if bare.startswith("\\") or ".." in bare.replace("\\", "/").split("/"):
            return None
        return self._of_absolute(bare) if PurePath(bare).anchor else name

    def _of_absolute(self, name: str) -> str | None:
        if "\0" in name:
            return None
        path = PurePath(os.path.normpath(name))
        for found in (path, PurePath(os.path.realpath(path.parent), path.name)):
            for root in self._roots:
                if found.is_relative_to(root):
                    return found.relative_to(root).as_posix()
        return None

    @cached_property
    def _uploads(self) -> dict[str, str]:
        """Uploading drops folders and changes special characters: new name -> the file, or empty if several fit."""
        found: dict[str, str] = {}
        for file in self._files:
            name = _uploaded_name(file)
            found[name] = "" if name in found else file
        return found


def leaves(name: str) -> bool:
    """Whether a path is absolute or leads out of its folder, by the rules of Windows too."""
    bare = name.strip()
    anchored = bare.startswith(("/", "\\")) or bool(os.path.splitdrive(bare)[0])
    return anchored or (".." in bare and ".." in bare.replace("\\", "/").split("/"))


def _uploaded_name(file: str) -> str:
    return re.sub(r"[^-\w.]", "", PurePosixPath(file).name.strip().replace(" ", "_"))
