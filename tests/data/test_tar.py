"""Tar files from anywhere: sizes and offsets are believed only where they make sense."""

import gzip
import io
import struct
import tarfile
from pathlib import Path

import pytest

from debiaspl.data.known import unpack
from debiaspl.data.shards import list_shards
from debiaspl.data.text import DataError
from tests.data.photos import add, jpeg, patch

BLOCK = 512


def header(name: str, size: int, kind: bytes = b"0") -> bytes:
    """A header whose size may be anything: in the binary form that tar has for large and for negative numbers."""
    block = bytearray(BLOCK)
    block[: len(name)] = name.encode()
    block[100:108] = b"0000644\0"
    block[124:136] = struct.pack(">iq", -1 if size < 0 else -(2**31), size)
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def shard(path: Path, *blocks: bytes) -> Path:
    path.write_bytes(b"".join(blocks) + bytes(2 * BLOCK))
    return path


@pytest.mark.timeout(20)
@pytest.mark.parametrize("size", [-512, -(2**40)])
def test_a_negative_size_is_refused(tmp_path, size):
    """The next member would begin before this one: the pass over the shard would never end."""
    path = shard(tmp_path / "a.tar", header("0.jpg", 0), header("1.jpg", size), bytes(BLOCK))
    with pytest.raises(DataError, match=r"a\.tar is not a complete, plain tar file"):
        list_shards(path)


@pytest.mark.timeout(20)
def test_so_it_is_in_an_archive_of_a_known_set(tmp_path):
    path = tmp_path / "set.tar.gz"
    path.write_bytes(gzip.compress(header("a/1.bin", 0) + header("a/2.bin", -512) + bytes(2 * BLOCK)))
    with pytest.raises(DataError, match="damaged"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("size", [10**6, 2**63 - 1])
def test_a_size_beyond_the_end_is_refused(tmp_path, size):
    path = shard(tmp_path / "a.tar", header("1.jpg", size), bytes(BLOCK))
    with pytest.raises(DataError, match=r"truncated inside 1\.jpg"):
        list_shards(path)


def test_a_sparse_member_is_refused(tmp_path):
    """Its bytes do not lie in the file as they are."""
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("1.jpg")
        content = b"1\n0\n3\n".ljust(BLOCK, b"\0") + b"abc"
        member.size = len(content)
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "3"}
        tar.addfile(member, io.BytesIO(content))
    with pytest.raises(DataError, match="sparse"):
        list_shards(tmp_path)


def test_a_label_as_large_as_a_film_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        add(tar, "1.jpg", jpeg(patch(0, 0)))
        add(tar, "1.cls", b"x" * 100_000)
    with pytest.raises(DataError, match=r"the label 1\.cls in .* has 100,000 bytes"):
        list_shards(tmp_path)
