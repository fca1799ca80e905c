"""Folders of ordinary photographs: what is listed, in which order, and what the pixels are."""

import io
import logging
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageFilter, JpegImagePlugin

from debiaspl.data.decode import decode
from debiaspl.data.lazy import read_listing
from debiaspl.data.listing import list_folder
from debiaspl.data.text import DataError
from tests.data.photos import close, encoded, photo, pixels, read_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """200 different small photographs in three classes, and some without a label; more than one chunk of work."""
    tiles = [(x, y) for x in range(0, 600, 30) for y in range(0, 400, 40)]
    for number, (x, y) in enumerate(tiles):
        folder = tmp_path / ("owl", "cat", "dog", "unlabeled")[number % 4]
        folder.mkdir(exist_ok=True)
        photo().crop((x, y, x + 40, y + 27)).save(folder / f"{number:03}.png")
    return tmp_path


def test_class_folders(root: Path) -> None:
    listing = list_folder(root)
    assert listing.root == root
    assert listing.classes == ("cat", "dog", "owl")
    assert listing.files == tuple(sorted(listing.files))
    assert listing.labels.dtype == torch.int64
    for file, label in zip(listing.files, listing.labels.tolist(), strict=True):
        assert file.split("/")[0] == (*listing.classes, "unlabeled")[label]
    assert len(listing.files) == 200
    assert listing.skipped == ()


def test_the_classes_given_decide_the_order(root: Path) -> None:
    listing = list_folder(root, classes=("owl", "eagle", "dog", "cat"))
    assert listing.classes == ("owl", "eagle", "dog", "cat")
    assert listing.labels[listing.files.index("cat/001.png")] == 3
    with pytest.raises(DataError, match=r"1 label outside of the given classes: owl\."):
        list_folder(root, classes=("cat", "dog"))
    (root / "owl").rename(root / "owl ")
    assert list_folder(root, classes=list_folder(root).classes).classes == ("cat", "dog", "owl ")


def test_read_folder(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[int, int]] = []
    threads = set()

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        threads.add(threading.current_thread())

    images, skipped = read_listing(list_folder(root), (27, 40), progress=progress)
    listing = list_folder(root)
    assert skipped == ()
    assert caplog.records == []
    assert images.ids == listing.files
    assert torch.equal(images.labels, listing.labels)
    assert images.images.shape == (200, 3, 27, 40)
    for file, image in zip(images.ids, images.images, strict=True):
        assert torch.equal(image, pixels(Image.open(root / file)))
    assert [done for done, _ in seen] == [64, 128, 192, 200]
    assert {total for _, total in seen} == {200}
    assert threads == {threading.current_thread()}


def test_bad_images_leave_no_gaps(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole, _ = read_listing(list_folder(root), (8, 8))
    bad = {"cat/001.png", "cat/005.png", "dog/102.png", "unlabeled/199.png"}
    for file in bad:
        (root / file).write_bytes(file.encode())
    images, skipped = read_listing(list_folder(root), (8, 8))
    kept = [position for position, file in enumerate(whole.ids) if file not in bad]
    expected = whole.select(kept)
    assert images.ids == expected.ids
    assert torch.equal(images.images, expected.images)
    assert torch.equal(images.labels, expected.labels)
    assert [file for file, _ in skipped] == sorted(bad)
    # One room was made for all, and the images moved inside of it: the rest would be a second copy.
    assert images.images.untyped_storage().nbytes() == 200 * 3 * 64
    record = caplog.records[-1]
    assert (record.name, record.levelno) == ("debiaspl", logging.WARNING)
    assert "read 196 images, skipped 4 files: cat/001.png (its content is not" in record.getMessage()


def test_too_large_sets_are_refused_and_an_interrupt_ends_the_work(root: Path) -> None:
    with pytest.raises(DataError, match=r"200 images of 10000000000 x 10000000000 pixels need .* GB of memory"):
        read_folder(root, (10**10, 10**10))

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_listing(list_folder(root), (8, 8), progress=interrupt)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("decode")]


@pytest.mark.parametrize("size", [(427, 640), (64, 64), (64, 96), (30, 200), (200, 30), (600, 600), (1, 1)])
@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_short_side_then_centre(size: tuple[int, int], format: str) -> None:
    height, width = size
    scale = max(width / 640, height / 427)
    # Without fine detail, since half a pixel of difference remains where the sides do not divide evenly.
    smooth = photo().filter(ImageFilter.GaussianBlur(4))
    resized = smooth.resize((max(width, round(640 * scale)), max(height, round(427 * scale))), Image.Resampling.BICUBIC)
    left, top = (resized.width - width) // 2, (resized.height - height) // 2
    found = decode(encoded(smooth, format), size)
    assert close(found, resized.crop((left, top, left + width, top + height)), 5.0)
    if resized.size != (width, height) and min(size) > 1:
        assert not close(found, resized.crop((0, 0, width, height)), 9.0)


def test_shrinking_averages() -> None:
    # A chequerboard of single pixels is grey from afar; taking every n-th pixel would give black or white.
    board = Image.fromarray(((torch.arange(512)[:, None] + torch.arange(512)) % 2 * 255).to(torch.uint8).numpy())
    for format in ("PNG", "JPEG"):
        found = decode(encoded(board, format), (64, 64), channels=1)
        assert (found.float() - 127.5).abs().max() < 4


def test_a_large_jpeg_is_read_at_a_fraction(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, int]] = []
    load = JpegImagePlugin.JpegImageFile.load
    monkeypatch.setattr(JpegImagePlugin.JpegImageFile, "load", lambda image: (load(image), read.append(image.size))[0])
    data = encoded(photo().resize((3200, 2135)))
    small = decode(data, (64, 64))
    assert read[0] == (400, 267)
    assert close(small, decode(encoded(photo(), "PNG"), (64, 64)), 4.0)
    read.clear()
    decode(data, (1200, 1200))
    assert read[0] == (3200, 2135)


def test_grey_and_colour() -> None:
    grey = photo().convert("L")
    assert torch.equal(decode(encoded(grey, "PNG"), None), pixels(grey).expand(3, -1, -1))
    assert torch.equal(decode(encoded(photo(), "PNG"), None, channels=1), pixels(grey))
    found = decode(encoded(photo(), "PNG"), None)
    assert (found.dtype, found.is_contiguous()) == (torch.uint8, True)


def test_pillow_warns_nobody_in_any_thread() -> None:
    # A TIFF with a tag that points past the end of the file: Pillow warns of it and reads the image.
    data = bytearray(encoded(photo().resize((32, 32)), "TIFF", software="x" * 50))
    tag = data.index(b"\x31\x01\x02\x00")
    data[tag + 4 : tag + 8] = (10**8).to_bytes(4, "little")
    with pytest.warns(UserWarning, match=r"Tag data larger than file|Truncated File Read"):
        Image.open(io.BytesIO(data)).load()
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        shapes = set(pool.map(lambda _: decode(bytes(data), (8, 8)).shape, range(100)))
    assert shapes == {(3, 8, 8)}
    assert list(warnings.filters) == before
