"""Files are whole or absent, whatever happens: failures, kills, two writers, planted links."""

import errno
import os
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from debiaspl.files import FileError, remove_leftovers, whole, write_bytes, write_json, write_text, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def leftover(tmp_path) -> Path:
    """What a process leaves that is killed while it writes ``t.csv``."""
    path = tmp_path / ".t.csv.0123456789abcdef.partial"
    path.write_text("half")
    return path


def test_what_is_written_is_there_and_nothing_else(tmp_path):
    write_bytes(tmp_path / "new" / "a", b"1")
    write_text(tmp_path / "new" / "b", "caf\udce9")
    write_json(tmp_path / "new" / "c", {"x": 1})
    assert names(tmp_path / "new") == ["a", "b", "c"]
    assert (tmp_path / "new" / "b").read_bytes() == b"caf\xe9"
    assert (tmp_path / "new" / "c").read_text() == '{\n  "x": 1\n}\n'


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), ValueError("no"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    write_text(tmp_path / "t", "old")

    def failing(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    expected, message = type(error), None
    if isinstance(error, OSError):
        expected, message = FileError, r"could not write .*t: broken\. Nothing else was changed"
    with pytest.raises(expected, match=message):
        write_whole(tmp_path / "t", failing)
    assert names(tmp_path) == ["t"]
    assert (tmp_path / "t").read_text() == "old"


def test_the_mode_is_the_usual_one_and_long_names_fit(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / ("é" * 127), "x")
    finally:
        os.umask(before)
    assert (tmp_path / ("é" * 127)).stat().st_mode & 0o777 == 0o640
    assert len(names(tmp_path)) == 1


@pytest.mark.parametrize("planted", [".t.csv.partial", ".t.csv.0123456789abcdef.partial"])
def test_a_planted_link_is_not_followed(tmp_path, planted):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / planted).symlink_to(victim)
    write_text(tmp_path / "t.csv", "new")
    assert (tmp_path / "t.csv").read_text() == "new"
    assert not (tmp_path / "t.csv").is_symlink()
    assert victim.read_text() == "mine"


def test_a_name_that_is_taken_is_never_opened(tmp_path, monkeypatch):
    """Even somebody who guessed the random name gains nothing."""
    monkeypatch.setattr(whole.secrets, "token_hex", lambda count: "0" * 16)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    planted = tmp_path / ".t.0000000000000000.partial"
    planted.symlink_to(victim)
    with pytest.raises(FileError, match="File exists"):
        write_text(tmp_path / "t", "new")
    assert planted.is_symlink()
    assert victim.read_text() == "mine"


def test_two_writers_at_once_each_write_a_whole_file(tmp_path):
    target, begun, other = tmp_path / "t", threading.Event(), threading.Event()

    def slowly(file: BinaryIO) -> None:
        file.write(b"slow " * 1000)
        begun.set()
        assert other.wait(10)

    thread = threading.Thread(target=write_whole, args=(target, slowly))
    thread.start()
    assert begun.wait(10)
    remove_leftovers.cache_clear()  # as in another process
    write_bytes(target, b"quick")
    assert target.read_bytes() == b"quick"
    other.set()
    thread.join()
    assert target.read_bytes() == b"slow " * 1000
    assert names(tmp_path) == ["t"]


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path, leftover):
    for number in range(5):
        (tmp_path / f".t.csv.{number:016x}.partial").symlink_to(tmp_path)  # a link is no leftover, and no obstacle
    for strange in (".t.csv.partial", ".t.csv.0123.partial", ".u.csv.0123456789abcdef.partial"):
        (tmp_path / strange).write_text("not ours")
    write_text(tmp_path / "t.csv", "new")
    assert not leftover.exists()
    assert len(names(tmp_path)) == 9


def test_a_file_taken_for_a_leftover_before_it_was_locked_is_written_anew(tmp_path, monkeypatch):
    locked = []

    def late(descriptor: int, wait: bool = False) -> bool:
        if not locked:
            (found,) = tmp_path.glob(".t.*.partial")
            found.unlink()
        locked.append(descriptor)
        return True

    monkeypatch.setattr(whole, "try_lock", late)
    write_text(tmp_path / "t", "new")
    assert len(locked) == 2
    assert names(tmp_path) == ["t"]
