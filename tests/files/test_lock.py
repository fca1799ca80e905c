"""One process at a time; a lock file that is not one is left alone."""

import os
from pathlib import Path

import pytest

from debiaspl.files import Busy, FileError, locked
from debiaspl.files.whole import open_locked


def test_a_second_one_is_refused_and_nothing_is_left(tmp_path):
    path = tmp_path / ".lock"
    with locked(path), pytest.raises(Busy), locked(path):
        pass
    assert list(tmp_path.iterdir()) == []
    with locked(path):
        assert path.exists()


def test_a_lock_on_a_file_that_was_just_removed_is_taken_anew(tmp_path, monkeypatch):
    path, seen = tmp_path / ".lock", []
    monkeypatch.setattr("debiaspl.files.whole.is_at", lambda path, descriptor: seen.append(descriptor) or len(seen) > 1)
    open_locked(path).close()
    assert len(seen) == 2


def test_a_planted_link_is_neither_followed_nor_removed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".lock").symlink_to(victim)
    with pytest.raises(FileError, match=r"\.lock is a link, expected a regular file"), locked(tmp_path / ".lock"):
        pass
    assert victim.read_text() == "mine"
    assert (tmp_path / ".lock").is_symlink()


def second_name(path: Path) -> None:
    os.link(path.with_name("victim"), path)


@pytest.mark.parametrize("make", [os.mkfifo, second_name])
def test_what_is_no_file_of_its_own_is_refused(tmp_path, make):
    (tmp_path / "victim").write_text("mine")
    make(tmp_path / ".lock")
    with pytest.raises(FileError, match="is a pipe or a hard link"), locked(tmp_path / ".lock"):
        pass
    assert (tmp_path / "victim").read_text() == "mine"
