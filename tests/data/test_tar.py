"""Tar shards: read in any order; sizes and offsets are believed only where they make sense."""

import gzip
import io
import os
import struct
import tarfile
from pathlib import Path

import pytest

from debiaspl.data.known import unpack
from debiaspl.data.open import read_place
from debiaspl.data.shards import list_shards
from debiaspl.data.text import DataError
from tests.data.photos import add, jpeg, patch, write_shards

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
@pytest.mark.parametrize("size", [-512, -(2**40), 10**6, 2**63 - 1])
def test_a_size_that_is_negative_or_beyond_the_end_is_refused(tmp_path, size):
    """After a negative one the next member would begin before this one: the pass over the shard would never end."""
    path = shard(tmp_path / "a.tar", header("0.jpg", 0), header("1.jpg", size), bytes(BLOCK))
    why = r"\(its member '1\.jpg' claims" if size < 0 else r"\(truncated inside 1\.jpg"
    with pytest.raises(DataError, match=rf"a\.tar is not a complete, plain tar file {why}"):
        list_shards(path)


@pytest.mark.timeout(20)
def test_so_it_is_in_an_archive_of_a_known_set(tmp_path):
    path = tmp_path / "set.tar.gz"
    path.write_bytes(gzip.compress(header("a/1.bin", 0) + header("a/2.bin", -512) + bytes(2 * BLOCK)))
    with pytest.raises(DataError, match="damaged"):
        unpack(path, tmp_path / "out")


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


def test_shards_are_read_in_any_order(tmp_path):
    samples = list_shards(write_shards(tmp_path))
    assert len(samples.files) == 20
    assert samples.classes == ("0", "1")
    for position in (13, 2, 19, 0):
        label, number = samples.files[position].rpartition("/")[2].split("-")
        assert samples.stored.read(position) == jpeg(patch(int(label), int(number)))
        assert samples.classes[samples.labels[position]] == label


def test_shards_keep_class_names_and_numbers_in_order(tmp_path):
    many = tuple(str(number) for number in range(12))
    images = read_place(write_shards(tmp_path / "numbers", 2, 1, labels=many), 0)
    assert images.classes == many  # 10 after 9, not after 1
    assert read_place(write_shards(tmp_path / "names", 2, 1, labels=("owl", "heron")), 0).classes == ("heron", "owl")


def test_samples_without_an_image_are_named_and_those_without_a_label_are_unlabeled(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        add(tar, "one.cls", b"0")
        add(tar, "two.jpg", jpeg(patch(0, 0)))
        add(tar, "._two.jpg", b"what a Mac leaves behind")
        add(tar, "folder/three.png", jpeg(patch(0, 1)))
        add(tar, "folder/three.cls", b"7\n")
    samples = list_shards(tmp_path)
    assert samples.files == ("a.tar/two", "a.tar/folder/three")
    assert (samples.labels.tolist(), samples.classes) == ([-1, 0], ("7",))
    assert samples.skipped == (("a.tar/one", "no image among .cls"),)


@pytest.mark.parametrize("damage", [lambda tar: tar[:10_000], lambda tar: b"no tar at all " * 100, gzip.compress])
def test_damaged_shards_are_named(tmp_path, damage):
    path = tmp_path / "part.tar"
    with tarfile.open(path, "w") as tar:
        add(tar, "big.jpg", os.urandom(20_000))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"part.tar .*(truncated inside|complete, plain tar)"):
        list_shards(tmp_path)


def test_no_shards_and_no_images_teach(tmp_path):
    with pytest.raises(DataError, match="there is no tar file at"):
        list_shards(tmp_path)
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    with pytest.raises(DataError, match=r"no image in 1 shard.*Expected members such as"):
        list_shards(tmp_path)


def test_a_shard_that_shrinks_while_it_is_used_is_named(tmp_path):
    write_shards(tmp_path, shards=1)
    samples = list_shards(tmp_path)
    (tmp_path / "part-000.tar").write_bytes(b"short")
    with pytest.raises(DataError, match="has become shorter"):
        samples.stored.read(5)
