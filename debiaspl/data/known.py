"""Known sets by name: where they are, how they are read, and their download, which is complete or absent."""

import errno
import gzip
import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from debiaspl._checks import did_you_mean
from debiaspl.data.cifar import CIFAR10, CIFAR100
from debiaspl.data.formats import EUROSAT, IMAGENET, MNIST, KnownSet, Source, digits
from debiaspl.data.images import TrainTest
from debiaspl.data.text import DataError
from debiaspl.files import put_in_place

SETS: dict[str, KnownSet] = {known.name: known for known in (CIFAR10, CIFAR100, EUROSAT, IMAGENET, MNIST)}
TIMEOUT = 30.0
"""Seconds that a server may be silent."""
Watch = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received and, if the server sends it, the total."""


def load(name: str, root: Path | str | None = None) -> TrainTest:
    """Load a known set by name. It is searched in the folder ``$DEBIASPL_DATA``, in ``~/.cache/debiaspl``, and in
    ``root`` if given, which may also be the set's own folder."""
    if name == "digits":
        return digits()
    known, own = known_set(name), None if root is None else Path(root).expanduser()
    get = f"debiaspl data get {name}"
    place = find(known, data_folders(), own)
    if place is None:
        folders = [*data_folders(), *([] if own is None else [own])]
        asked = ", ".join(str(folder) if folder.exists() else f"{folder} (does not exist)" for folder in folders)
        advice = f"Get it with: {get}" if known.sources else known.elsewhere
        raise DataError(f"the set {name} was not found: looked for {' or '.join(known.places)} in {asked}. {advice}")
    try:
        return known.read(place)
    except OSError as error:
        raise DataError(f"{error.filename or place} could not be read: {error.strerror or error}.") from error
    except DataError as error:
        again = f" To get the set again, remove {place} and run: {get}" if known.sources else ""
        raise DataError(f"{error}{again}") from error


def known_set(name: str) -> KnownSet:
    if name not in SETS:
        names = sorted([*SETS, "digits"])
        hint = did_you_mean(name, names)
        raise DataError(f"there is no image set named {name!r}.{hint} Known image sets are {', '.join(names)}.")
    return SETS[name]


def data_folders() -> list[Path]:
    """Folders in which sets are searched, in order; downloads go into the first."""
    given = os.environ.get("DEBIASPL_DATA")
    cache = Path.home() / ".cache" / "debiaspl"
    return [Path(given).expanduser(), cache] if given else [cache]


def find(known: KnownSet, folders: list[Path], own: Path | None = None) -> Path | None:
    """Where the set is, complete or not: a place below these folders, or below ``own``, or ``own`` itself."""
    places = [folder / name for folder in folders for name in known.places]
    if own is not None:
        places += [*(own / name for name in known.places), own]
    return next((place for place in places if any((place / sign).exists() for sign in known.signs)), None)


def get(known: KnownSet, root: Path | None = None, watch: Watch | None = None) -> tuple[Path, bool]:
    """Download a set into ``root`` or the first data folder, unless it is there; its place, and whether it is new."""
    place = find(known, data_folders()) if root is None else find(known, [], root)
    if place is not None:
        return place, False
    if not known.sources:
        raise DataError(known.elsewhere)
    folder = data_folders()[0] if root is None else root
    target = folder / known.target
    if target.exists():
        raise DataError(f"{target} exists, but does not contain the set {known.name}. Move it away.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=folder) as waiting:
            # The folder gets its name when the last file is in it: part of a set must not look like the set.
            content = Path(waiting) / "files"
            content.mkdir()
            for source in known.sources:
                fetch(source, content / source.name, watch)
            if known.inside is not None:
                archive, unpacked = content / known.sources[0].name, Path(waiting) / "unpacked"
                unpack(archive, unpacked)
                content = unpacked / known.inside
                if not content.is_dir():
                    raise DataError(f"{archive.name} contains no folder {known.inside}. Has it changed?")
            put_in_place(content, target)
    except OSError as error:
        full = error.errno == errno.ENOSPC
        free = f" {shutil.disk_usage(folder).free / 1e6:,.0f} MB are free." if full else ""
        why = error.strerror or error
        raise DataError(f"could not write to {folder}: {why}.{free} Use another folder: --root.") from error
    return target, True


def fetch(source: Source, target: Path, watch: Watch | None = None) -> None:
    """Download a file to ``target`` and check it."""
    digest, done, total = hashlib.md5(usedforsecurity=False), 0, None
    again = "Run the same command again, or get the set from another source."
    try:
        with urlopen(Request(source.url, headers={"User-Agent": "debiaspl"}), timeout=TIMEOUT) as answer:
            length = answer.headers.get("Content-Length")
            total = int(length) if length else None
            with target.open("xb") as file:
                while chunk := answer.read(1 << 18):
                    file.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    if watch:
                        watch(source.name, done, total)
    except HTTPError as error:
        raise DataError(f"{source.url}: the server answered {error.code} ({error.reason}). {again}") from error
    except (URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        reason = getattr(error, "reason", error) or type(error).__name__
        raise DataError(f"{source.url} stopped after {done:,} bytes: {reason}. {again}") from error
    if digest.hexdigest() != source.md5:
        sent = f"{done:,} of {'?' if total is None else f'{total:,}'} bytes with the md5 {digest.hexdigest()}"
        raise DataError(f"{source.url} sent {sent}, expected {source.md5}. {again}")


def unpack(archive: Path, folder: Path) -> None:
    """Write the content of a .tar.gz or .zip below ``folder``; nothing of it can lead out of that."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as pack:
                pack.extractall(folder)
        else:
            with tarfile.open(archive, "r:gz") as tar:
                tar.extractall(folder, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError) as error:
        # zipfile raises RuntimeError for a member that is encrypted or has an unknown compression.
        raise DataError(f"{archive} is damaged ({error or type(error).__name__}). Download it again.") from error
