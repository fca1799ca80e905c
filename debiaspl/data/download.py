"""Download known sets from their authors' addresses. A downloaded set is complete or absent."""

import contextlib
import errno
import http.client
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from debiaspl.data.errors import DataError
from debiaspl.data.formats.archive import unpack
from debiaspl.data.formats.definition import KnownSet, Source
from debiaspl.data.known import data_folders, find
from debiaspl.files import Busy, digest_of_file, open_locked, put_in_place

Watch = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received and, if the server sends it, the total."""

_CHUNK = 1 << 18


class Got(NamedTuple):
    """A set that is available."""

    place: Path
    fetched: bool
    """False if it was there before."""


def get(known: KnownSet, root: Path | None = None, watch: Watch | None = None, timeout: float = 30.0) -> Got:
    """Download a set into ``root``, or into the first data folder, unless it is there."""
    place = find(known, data_folders()) if root is None else find(known, [], root)
    if place is not None:
        return Got(place, False)
    if not known.sources:
        raise DataError(known.elsewhere)
    folder = data_folders()[0] if root is None else root
    target = folder / known.target
    with _disk_errors(folder):
        if target.exists():
            raise DataError(f"{target} exists, but does not contain the set {known.name}. Move it away.")
        if known.inside is None:
            _get_files(known.sources, target, watch, timeout)
        else:
            _get_archive(known.sources[0], folder, known.inside, target, watch, timeout)
    return Got(target, True)


def _get_files(sources: tuple[Source, ...], target: Path, watch: Watch | None, timeout: float) -> None:
    # The folder gets its name when the last file is in it: part of a set must not look like the set.
    waiting = target.with_name(f"{target.name}.partial")
    try:
        for source in sources:
            fetch(source, waiting / source.name, watch, timeout)
        put_in_place(waiting, target)
    finally:
        with contextlib.suppress(OSError):  # not empty: it contains the bytes received so far
            waiting.rmdir()


def _get_archive(source: Source, folder: Path, inside: str, target: Path, watch: Watch | None, timeout: float) -> None:
    archive = folder / source.name
    fetched = fetch(source, archive, watch, timeout)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=folder) as unpacked:
        unpack(archive, Path(unpacked))
        if not (Path(unpacked) / inside).is_dir():
            raise DataError(f"{archive} contains no folder {inside}, expected the authors' archive.")
        target.parent.mkdir(parents=True, exist_ok=True)
        put_in_place(Path(unpacked) / inside, target)
    if fetched:  # an archive that the user put there is not deleted
        archive.unlink()


def fetch(source: Source, target: Path, watch: Watch | None = None, timeout: float = 30.0, tries: int = 5) -> bool:
    """Download a file to ``target``; False if it is there. An interrupted download continues where it stopped."""
    with _disk_errors(target.parent):
        partial = target.with_name(f"{target.name}.partial")
        there = target.exists()
        if not there:
            with _opened(partial) as file:
                _receive(source, target, file, watch, timeout, tries)
        found = digest_of_file(target if there else partial, "md5")
        if found != source.md5 and there:
            raise DataError(f"{target} has the md5 {found}, expected {source.md5}. Move it away and try again.")
        if found != source.md5:
            partial.unlink()
            raise DataError(
                f"{source.url} sent a file with the md5 {found}, expected {source.md5}. It was deleted: run the "
                "same command again. If this happens again, the file at this address has changed."
            )
        if not there:
            put_in_place(partial, target)
        return not there


def _receive(source: Source, target: Path, file: BinaryIO, watch: Watch | None, timeout: float, tries: int) -> None:
    """Append until the file is complete; reconnect as long as each connection brings new bytes."""
    by_hand = f"If you have {source.name} from another source, put it at {target} and run the same command again."
    for left in reversed(range(tries)):
        before = _size(file)
        reason = "the connection was cut"
        try:
            if _receive_more(source, file, watch, timeout):
                return
        except HTTPError as error:
            advice = "Try again later." if error.code >= 500 else by_hand
            raise DataError(f"{source.url}: the server answered {error.code} ({error.reason}). {advice}") from error
        except URLError as error:
            raise DataError(
                f"{source.url} could not be reached: {error.reason}. Check the network connection. {by_hand}"
            ) from error
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
        if not left or _size(file) <= before:
            raise DataError(
                f"{source.url} stopped after {_size(file):,} bytes: {reason}. Run the same command again: it continues "
                f"with {target}.partial."
            )


def _receive_more(source: Source, file: BinaryIO, watch: Watch | None, timeout: float) -> bool:
    """Append what one connection sends; returns whether the file is complete."""
    done = _size(file)
    headers = {"User-Agent": "debiaspl"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        answer = urlopen(Request(source.url, headers=headers), timeout=timeout)
    except HTTPError as error:
        error.close()
        if not (done and error.code == 416):
            raise
        if error.headers.get("Content-Range") == f"bytes */{done}":
            return True
        file.truncate(0)  # longer than the whole file, so it is something else
        return _receive_more(source, file, watch, timeout)
    with answer:
        # Many servers ignore the request for a range and send everything; some send another part.
        if done and not (answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")):
            file.truncate(0)
            if answer.status == 206:
                return _receive_more(source, file, watch, timeout)
            done = 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        try:
            # read1: a read that waits for a full chunk would lose its bytes when the connection stalls.
            while chunk := answer.read1(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if watch:
                    watch(source.name, done, total)
        finally:
            file.flush()
    return total is None or done >= total


@contextlib.contextmanager
def _opened(partial: Path) -> Iterator[BinaryIO]:
    """The partial file, locked for this process; removed again if nothing arrived."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = open_locked(partial)
    except Busy:
        raise DataError(f"another process is writing {partial}. Wait until it has finished.") from None
    with opened as file:
        try:
            yield file
        finally:
            if not _size(file):
                partial.unlink()


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "Choose another folder with --root."
        if error.errno == errno.ENOSPC:
            advice = f"{shutil.disk_usage(folder).free / 1e6:,.0f} MB are free: free some space, or use another --root."
        raise DataError(f"could not write to {folder}: {error.strerror or error}. {advice}") from error


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)
