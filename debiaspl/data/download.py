"""Download known sets from their authors' addresses. A downloaded set is complete or absent."""

import errno
import hashlib
import http.client
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from debiaspl.data.archive import unpack
from debiaspl.data.errors import DataError
from debiaspl.data.formats.definition import KnownSet, Source
from debiaspl.data.known import data_folders, find
from debiaspl.files import put_in_place

Watch = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received and, if the server sends it, the total."""

_CHUNK = 1 << 18


def get(
    known: KnownSet, root: Path | None = None, watch: Watch | None = None, timeout: float = 30.0
) -> tuple[Path, bool]:
    """Download a set into ``root``, or into the first data folder, unless it is there. Returns where it is, and whether
    it was downloaded."""
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
                fetch(source, content / source.name, watch, timeout)
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
        raise DataError(
            f"could not write to {folder}: {error.strerror or error}.{free} Use another folder: --root."
        ) from error
    return target, True


def fetch(source: Source, target: Path, watch: Watch | None = None, timeout: float = 30.0) -> None:
    """Download a file to ``target`` and check it."""
    digest, done, total = hashlib.md5(usedforsecurity=False), 0, None
    again = "Run the same command again, or get the set from another source."
    try:
        with urlopen(Request(source.url, headers={"User-Agent": "debiaspl"}), timeout=timeout) as answer:
            length = answer.headers.get("Content-Length")
            total = int(length) if length else None
            with target.open("xb") as file:
                while chunk := answer.read(_CHUNK):
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
        raise DataError(
            f"{source.url} sent {done:,} of {'?' if total is None else f'{total:,}'} bytes with the md5 "
            f"{digest.hexdigest()}, expected {source.md5}. {again}"
        )
