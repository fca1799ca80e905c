"""One test for every row of docs/bad-files.md, by the name of the row."""

import io
import os
import re
import struct
import unicodedata
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from debiaspl.data.decode import BadImage, decode
from debiaspl.data.errors import DataError
from debiaspl.data.folder import read_folder
from debiaspl.data.listing import Listing, list_folder, list_images
from debiaspl.files import memory

ROWS: set[str] = set()
"""The rows that have a test."""

Test = Callable[..., None]


def row(name: str) -> Callable[[Test], Test]:
    ROWS.add(name)
    return lambda test: test


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bad-files.md").read_text(encoding="utf-8")
    written = re.findall(r"^\| `([a-z0-9-]+)`:", page, re.MULTILINE)
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| case ")]
    assert len(written) == len(rows), "a row does not begin with its name in backticks and a colon"
    assert sorted(written) == sorted(ROWS)


@lru_cache
def photographs() -> list[NDArray[np.uint8]]:
    from sklearn.datasets import load_sample_images

    return load_sample_images().images


def photo(number: int = 0) -> Image.Image:
    """A real photograph, 640 x 427: a temple (0) or a flower (1); a fresh one, since Pillow's savers write into it."""
    return Image.fromarray(photographs()[number])


def encoded(image: Image.Image, format: str = "JPEG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def pixels(image: Image.Image) -> Tensor:
    array = torch.from_numpy(np.array(image))
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def plain(*colour: int, size: tuple[int, int]) -> Tensor:
    return torch.tensor(colour, dtype=torch.uint8)[:, None, None].expand(3, *size)


def close(found: Tensor, expected: Tensor | Image.Image, tolerance: float = 3.0) -> bool:
    """Alike on average, in steps of 255; two photographs, or one and its mirror image, are some 60 apart."""
    reference = pixels(expected) if isinstance(expected, Image.Image) else expected
    return found.shape == reference.shape and float((found.float() - reference.float()).abs().mean()) < tolerance


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes with one good photograph each."""
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "good.jpg").write_bytes(encoded(photo(number)))
    return tmp_path / "photos"


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Photographs in one folder, for a table of labels; the list of files does not open them."""
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "c.jpg", "sub/d.jpg"):
        (tmp_path / "photos" / name).write_bytes(b"")
    return tmp_path / "photos"


def table(root: Path, text: str | bytes) -> dict[str, str | None]:
    """File -> label, as a labels.csv with this text gives it."""
    (root / "labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return labels_of(list_folder(root))


def labels_of(listing: Listing) -> dict[str, str | None]:
    names = (*listing.classes, None)
    return {file: names[label] for file, label in zip(listing.files, listing.labels.tolist(), strict=True)}


def skipped(root: Path, file: str) -> str:
    """Why this file is skipped; the good ones are read all the same."""
    images, reasons = read_folder(root, (16, 16))
    assert images.ids == ("cat/good.jpg", "dog/good.jpg")
    assert images.labels.tolist() == [0, 1]
    assert close(images.images[1], decode(root / "dog/good.jpg", (16, 16)), 0.01)
    assert [name for name, _ in reasons] == [file]
    return reasons[0][1]


# Image files


@row("truncated")
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_truncated(root: Path, format: str) -> None:
    whole = encoded(photo(), format)
    (root / "cat/half.jpg").write_bytes(whole[: len(whole) // 2])
    assert skipped(root, "cat/half.jpg").startswith("cannot be decoded: ")


@row("zero-bytes")
def test_zero_bytes(root: Path) -> None:
    (root / "cat/empty.jpg").touch()
    assert skipped(root, "cat/empty.jpg") == "the file is empty (zero bytes)"


@row("wrong-extension")
@pytest.mark.parametrize("format", ["PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_wrong_extension(root: Path, format: str) -> None:
    (root / "cat/other.jpg").write_bytes(encoded(photo(), format))
    images, reasons = read_folder(root, (427, 640))
    assert reasons == ()
    assert close(images.images[1], photo(), 8.0)


@row("text-as-image")
@pytest.mark.parametrize("text", ["<html>not found</html>", "BM is how this begins", "P5 and so on", "x"])
def test_text_as_image(root: Path, text: str) -> None:
    (root / "cat/page.jpg").write_text(text)
    assert skipped(root, "cat/page.jpg")


@row("other-format")
@pytest.mark.parametrize("format", ["ICO", "TGA", "PCX"])
def test_other_format(root: Path, format: str) -> None:
    (root / "cat/icon.jpg").write_bytes(encoded(photo().resize((32, 32)), format))
    assert (
        skipped(root, "cat/icon.jpg") == "its content is not JPEG, PNG, WebP, GIF, BMP, TIFF or PPM, or it is damaged"
    )


def deep() -> Image.Image:
    """The photograph in grey with 16 bits; the low byte is noise."""
    grey = np.array(photo().convert("L")).astype(np.uint32)
    low = np.random.RandomState(0).randint(-128, 129, grey.shape)
    return Image.fromarray(np.clip(grey * 257 + low, 0, 65535).astype(np.uint16))


@row("grey-16-png")
@row("grey-16-tiff")
@row("grey-16-pgm")
@pytest.mark.parametrize("format", ["PNG", "TIFF", "TIFF big-endian", "PPM"])
def test_grey_16(format: str) -> None:
    if format == "TIFF big-endian":
        data = encoded(Image.frombytes("I;16B", photo().size, np.array(deep()).astype(">u2").tobytes()), "TIFF")
    else:
        data = encoded(deep(), format)
    assert torch.equal(decode(data, None, channels=1), pixels(photo().convert("L")))
    assert torch.equal(decode(data, None), pixels(photo().convert("L")).expand(3, -1, -1))


@row("float-tiff")
@pytest.mark.parametrize("mode", ["F", "I"])
def test_float_tiff(root: Path, mode: str) -> None:
    (root / "cat/float.tif").write_bytes(encoded(photo().convert("L").convert(mode), "TIFF"))
    assert "no standard range" in skipped(root, "cat/float.tif")


@row("palette")
@pytest.mark.parametrize("format", ["PNG", "GIF", "TIFF"])
def test_palette(format: str) -> None:
    few = photo().quantize(64)
    assert torch.equal(decode(encoded(few, format), None), pixels(few.convert("RGB")))


@row("palette-transparent")
@pytest.mark.parametrize("transparency", [0, bytes([0, 128])])
def test_palette_transparent(transparency: int | bytes) -> None:
    image = Image.new("P", (3, 1))
    image.putpalette([200, 0, 0, 0, 200, 0, 0, 0, 200])
    image.putdata([0, 1, 2])
    half = [0, 200, 0] if transparency == 0 else [127, 227, 127]
    found = decode(encoded(image, "PNG", transparency=transparency), None)
    assert found[:, 0].T.tolist() == [[255, 255, 255], half, [0, 0, 200]]


@row("alpha")
def test_alpha() -> None:
    image = Image.new("RGBA", (3, 1))
    image.putdata([(200, 0, 0, 0), (200, 0, 0, 128), (200, 0, 0, 255)])
    for format in ("PNG", "TIFF"):
        found = decode(encoded(image, format), None)[:, 0].T.tolist()
        assert found == [[255, 255, 255], [227, 127, 127], [200, 0, 0]]
    lossless = decode(encoded(image, "WEBP", lossless=True, exact=True), None)
    assert torch.equal(lossless, decode(encoded(image, "PNG"), None))
    grey = Image.new("LA", (2, 1))
    grey.putdata([(10, 0), (10, 255)])
    assert decode(encoded(grey, "PNG"), None, channels=1)[0, 0].tolist() == [255, 10]


@row("cmyk")
def test_cmyk() -> None:
    assert close(decode(encoded(photo().convert("CMYK")), (427, 640)), photo(), 6.0)


@row("one-bit")
@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP", "PPM"])
def test_one_bit(format: str) -> None:
    scan = photo().convert("1")
    assert torch.equal(decode(encoded(scan, format), None, channels=1), pixels(scan.convert("L")))


# How a camera that was held this way stores the upright picture.
STORED = {
    1: lambda upright: upright,
    2: lambda upright: upright.flip(2),
    3: lambda upright: upright.flip(1, 2),
    4: lambda upright: upright.flip(1),
    5: lambda upright: upright.transpose(1, 2),
    6: lambda upright: upright.transpose(1, 2).flip(1),
    7: lambda upright: upright.transpose(1, 2).flip(1, 2),
    8: lambda upright: upright.transpose(1, 2).flip(2),
}


@row("exif-rotation")
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", STORED)
def test_exif_rotation(format: str, orientation: int) -> None:
    upright = photo().resize((320, 214))
    stored = Image.fromarray(STORED[orientation](pixels(upright)).permute(1, 2, 0).contiguous().numpy())
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(stored, format, exif=exif)
    assert close(decode(data, None), upright, 9.0)
    # Small enough that the JPEG is read at a fraction of its size, in the proportions of the upright picture.
    assert close(decode(data, (43, 64)), upright.resize((64, 43), Image.Resampling.BICUBIC), 8.0)


@row("exif-broken")
@pytest.mark.parametrize(
    "exif",
    [b"Exif\0\0 nonsense", b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\0" * 9],
    ids=["no header", "cut short"],
)
def test_exif_broken(exif: bytes) -> None:
    assert close(decode(encoded(photo(), exif=exif), None), photo(), 8.0)


@row("animated")
@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF"])
def test_animated(format: str) -> None:
    data = encoded(photo(0), format, save_all=True, append_images=[photo(1)])
    assert close(decode(data, None), photo(0), 8.0)


@row("one-pixel")
def test_one_pixel() -> None:
    data = encoded(Image.new("RGB", (1, 1), (10, 20, 30)), "PNG")
    assert decode(data, None).flatten().tolist() == [10, 20, 30]
    assert torch.equal(decode(data, (32, 48)), plain(10, 20, 30, size=(32, 48)))


@row("wide")
@pytest.mark.parametrize("height", [1, 20])
def test_wide(height: int) -> None:
    image = Image.new("RGB", (30_000, height), (0, 0, 0))
    image.paste((200, 100, 50), (14_000, 0, 16_000, height))
    for turned in (image, image.transpose(Image.Transpose.ROTATE_90)):
        found = decode(encoded(turned, "PNG"), (64, 64))
        assert torch.equal(found, plain(200, 100, 50, size=(64, 64)))


def test_the_centre_of_a_wide_jpeg_is_kept() -> None:
    image = Image.new("RGB", (30_000, 20), (0, 0, 0))
    image.paste((200, 100, 50), (14_000, 0, 16_000, 20))
    # One row for twenty: 300 columns stand for the middle 6,000, from 12,000 on.
    bright = decode(encoded(image), (1, 300))[0, 0] > 100
    assert bright.nonzero().flatten().tolist() == list(range(100, 200))


def png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


def gif_header(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + encoded(Image.new("P", (1, 1)), "GIF")[10:]


def jpeg_header(width: int, height: int) -> bytes:
    data = encoded(Image.new("RGB", (16, 16)))
    return data.replace(struct.pack(">BHH", 8, 16, 16), struct.pack(">BHH", 8, height, width))


@row("bomb")
@pytest.mark.parametrize("header", [png_header, gif_header, jpeg_header])
def test_bomb(root: Path, header: Callable[[int, int], bytes]) -> None:
    (root / "cat/bomb.png").write_bytes(header(60_000, 60_000))
    assert "pixels" in skipped(root, "cat/bomb.png")


def test_a_large_image_within_the_limit_is_decoded_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pillow's own limit, a tenth of this image, so that the test needs little memory; warnings are errors here.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200_000)
    for format in ("JPEG", "PNG", "GIF", "BMP", "PPM"):
        assert decode(encoded(photo(), format), (8, 8)).shape == (3, 8, 8)
    with pytest.raises(BadImage, match=r"640 x 427 pixels, more than the limit of 1,000"):
        decode(encoded(photo()), (8, 8), pixel_limit=1000)


@row("unreadable")
def test_unreadable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not bind a superuser, who may well run these tests; so the refusal is acted.
    (root / "cat/secret.jpg").write_bytes(encoded(photo()))
    honest = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "secret.jpg":
            raise PermissionError(13, "Permission denied", str(path))
        return honest(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert skipped(root, "cat/secret.jpg") == "cannot be opened: Permission denied"


@row("class-all-bad")
def test_class_all_bad(root: Path) -> None:
    (root / "dog/good.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"can be read: dog/good.jpg \(the file is empty"):
        read_folder(root, (8, 8))


@row("all-bad")
def test_all_bad(root: Path) -> None:
    for name in ("cat", "dog"):
        (root / name / "good.jpg").write_text("bad")
    with pytest.raises(DataError, match=r"none of the 2 images in .* can be read: cat/good.jpg \(its content is not"):
        read_folder(root, (8, 8))


# Folders and names


@row("odd-names")
def test_odd_names(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [" two  spaces .jpg", "line\nbreak.jpg", "猫 кошка قطة.jpg", "quote\"'.jpg", "日本/写真 1.jpg"]
    (root / "cat/日本").mkdir()
    for name in names:
        (root / "cat" / name).write_bytes(encoded(photo()))
    (root / "cat/bad\nname.jpg").touch()
    images, reasons = read_folder(root, (8, 8))
    assert images.ids == (*sorted(f"cat/{name}" for name in ["good.jpg", *names]), "dog/good.jpg")
    assert reasons == (("cat/bad\nname.jpg", "the file is empty (zero bytes)"),)
    assert r"cat/bad\nname.jpg" in caplog.text


@row("undecodable-name")
def test_undecodable_name(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = os.fsdecode(b"caf\xe9")
    (root / "cat" / f"{name}.jpg").write_bytes(encoded(photo()))
    (root / "cat" / f"{name}.txt").touch()
    images, reasons = read_folder(root, (8, 8))
    assert images.ids == (f"cat/{name}.jpg", "cat/good.jpg", "dog/good.jpg")
    assert os.fsencode(images.ids[0]) == b"cat/caf\xe9.jpg"
    assert reasons == ((f"cat/{name}.txt", "not an image: .txt"),)
    assert caplog.text.encode("utf-8")


@row("undecodable-class")
def test_undecodable_class(root: Path) -> None:
    (root / "cat").rename(root / os.fsdecode(b"caf\xe9"))
    with pytest.raises(DataError, match=r"'caf\\udce9'.*UTF-8"):
        list_folder(root)


@row("too-large")
def test_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of it: test_room.py."""
    Image.new("L", (3000, 3000)).save(root / "cat/wide.png")
    monkeypatch.setattr(memory, "free_memory", lambda: 10**8)
    assert skipped(root, "cat/wide.png") == "its 3,000 x 3,000 pixels need 0.1 GB of memory, but only 0.1 GB are free"


@row("link")
def test_link(root: Path) -> None:
    (root / "cat/inner").mkdir()
    (root / "cat/inner/far.jpg").write_bytes(encoded(photo()))
    (root / "owl").symlink_to(root / ".owls")
    (root / ".owls").mkdir()
    (root / ".owls/far.jpg").symlink_to(root / "cat/inner/far.jpg")
    images, reasons = read_folder(root, (8, 8))
    assert images.ids == ("cat/good.jpg", "cat/inner/far.jpg", "dog/good.jpg", "owl/far.jpg")
    assert torch.equal(images.images[1], images.images[3])
    assert reasons == ()


@pytest.fixture
def linked(root: Path, tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/far.jpg").write_bytes(encoded(photo()))
    (root / "dog/more").symlink_to(tmp_path / "elsewhere")
    (root / "cat/link.jpg").symlink_to(tmp_path / "elsewhere/far.jpg")
    return root


@row("link-out")
def test_link_out(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, reasons = read_folder(linked, (8, 8))
    assert images.ids == ("cat/good.jpg", "dog/good.jpg")
    out = "a link that leaves the folder; --follow-links reads it"
    assert reasons == (("cat/link.jpg", out), ("dog/more", out))
    monkeypatch.setenv("DEBIASPL_FOLLOW_LINKS", "1")
    images, reasons = read_folder(linked, (8, 8))
    assert images.ids == ("cat/good.jpg", "cat/link.jpg", "dog/good.jpg", "dog/more/far.jpg")
    assert reasons == ()


def test_a_table_does_not_lead_out_by_a_link(linked: Path) -> None:
    (linked / "labels.csv").write_text("file_name,label\ncat/good.jpg,cat\ndog/good.jpg,dog\ncat/link.jpg,cat\n")
    with pytest.raises(DataError, match=r"names 1 file not in .*: cat/link\.jpg"):
        list_folder(linked)


def test_a_class_folder_that_leads_out_is_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / "owl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"without an image: owl\. .* owl: a link that leaves the folder"):
        list_folder(root)


def test_a_folder_of_links_alone_says_how_to_read_them(linked: Path) -> None:
    for name in ("cat/good.jpg", "dog/good.jpg"):
        (linked / name).unlink()
    with pytest.raises(DataError, match=r"contains no image.* 2 of them are links out of the folder: --follow-links"):
        list_folder(linked)


@row("link-loop")
def test_link_loop(root: Path) -> None:
    (root / "cat/again").symlink_to(root)
    (root / "cat/self.jpg").symlink_to(root / "cat/self.jpg")
    (root / "dog/abc").symlink_to(root / "cat")
    listing = list_folder(root)
    assert listing.files == ("cat/good.jpg", "dog/good.jpg")
    assert [name for name, _ in listing.skipped] == ["cat/again", "cat/self.jpg", "dog/abc"]
    assert listing.skipped[2][1] == "the same folder as cat, which is already read"


@row("link-dangling")
def test_link_dangling(root: Path) -> None:
    (root / "cat/gone.jpg").symlink_to(root / "nowhere.jpg")
    assert skipped(root, "cat/gone.jpg") == "a link to a file that is not there"


@row("pipe")
def test_pipe(root: Path) -> None:
    os.mkfifo(root / "cat/pipe.jpg")
    assert skipped(root, "cat/pipe.jpg") == "neither a file nor a folder"


@row("class-of-one")
def test_class_of_one(root: Path) -> None:
    assert labels_of(list_folder(root)) == {"cat/good.jpg": "cat", "dog/good.jpg": "dog"}


@row("class-empty")
def test_class_empty(root: Path) -> None:
    (root / "owl").mkdir()
    (root / "owl/owl.xyz").touch()
    with pytest.raises(DataError, match=r"1 class folder without an image: owl\. Add images, which end in \.jpg"):
        list_folder(root)


@row("hidden")
def test_hidden(root: Path) -> None:
    for name in (".git", "__MACOSX", "cat/.thumbnails"):
        (root / name).mkdir()
        (root / name / "a.jpg").write_bytes(encoded(photo()))
    for name in (".DS_Store", "cat/._good.jpg", "cat/Thumbs.db", "dog/desktop.ini", "dog/.hidden.jpg"):
        (root / name).touch()
    listing = list_folder(root)
    assert (listing.files, listing.skipped) == (("cat/good.jpg", "dog/good.jpg"), ())


@row("not-images")
def test_not_images(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("cat/notes.txt", "dog/raw.xyz", "README"):
        (root / name).touch()
    images, reasons = read_folder(root, (8, 8))
    assert len(images) == 2
    reason = "not an image: "
    assert reasons == (
        ("README", f"{reason}no extension"),
        ("cat/notes.txt", f"{reason}.txt"),
        ("dog/raw.xyz", f"{reason}.xyz"),
    )
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("debiaspl", "WARNING")
    assert "read 2 images, skipped 3 files: README (not an image: no extension), cat/notes.txt" in record.getMessage()


@row("no-images")
def test_no_images(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no image and no other file"):
        list_folder(tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/a.xyz").touch()
    words = r"contains no image and 1 other file: cat/a.xyz\. Images end in \.jpg "
    with pytest.raises(DataError, match=words):
        list_folder(tmp_path)


@row("one-class")
def test_one_class(root: Path) -> None:
    (root / "dog").rename(root / "unlabeled")
    with pytest.raises(DataError, match=r"has labels of one class only: cat\. Expected two"):
        list_folder(root)


@row("unlabeled")
def test_unlabeled(root: Path) -> None:
    (root / "unlabeled/deep").mkdir(parents=True)
    assert list_folder(root).classes == ("cat", "dog")
    (root / "unlabeled/deep/a.jpg").write_bytes(encoded(photo()))
    images, _ = read_folder(root, (8, 8))
    assert images.classes == ("cat", "dog")
    assert images.labels.tolist() == [0, 1, -1]


@row("nested")
def test_nested(root: Path) -> None:
    (root / "dog/2024/may/cat").mkdir(parents=True)
    (root / "dog/2024/may/cat/a.jpg").touch()
    assert labels_of(list_folder(root))["dog/2024/may/cat/a.jpg"] == "dog"


@row("parts")
def test_parts(root: Path) -> None:
    for part in ("train", "Val"):
        (root / part).mkdir()
        for name in ("cat", "dog"):
            (root / part / name).mkdir()
            (root / part / name / "a.jpg").touch()
    for name in ("cat", "dog"):
        (root / name).rename(root / "train" / name / "2024")
    told = rf"contains Val, train, named like parts .*; {root}/train contains cat, dog\. Expected a folder for each"
    with pytest.raises(DataError, match=rf"{told} class\. Use the part to learn from: {root}/train\."):
        list_folder(root)
    assert labels_of(list_folder(root / "train"))["dog/2024/good.jpg"] == "dog"
    (root / "unlabeled").mkdir()
    (root / "unlabeled/a.jpg").touch()
    with pytest.raises(DataError, match=rf"{told}.*{root}/train, and move {root}/unlabeled into it\."):
        list_folder(root)
    # Of the test images one often gets the files alone; or nothing yet; or there is one part only.
    for name in ("cat", "dog"):
        (root / "Val" / name / "a.jpg").rename(root / "Val" / f"{name}.jpg")
        (root / "Val" / name).rmdir()
    for change in ((), ("cat.jpg", "dog.jpg"), None):
        if change is None:
            (root / "Val").rmdir()
        for name in change or ():
            (root / "Val" / name).unlink()
        with pytest.raises(DataError, match=f"named like parts .*from: {root}/train, and move"):
            list_folder(root)


def test_classes_may_be_called_like_parts(root: Path) -> None:
    """Where it is not sure that they are parts, and where the user says that they are classes."""
    (root / "cat").rename(root / "train")
    (root / "dog").rename(root / "test")
    (root / "test/monday").mkdir()
    (root / "test/good.jpg").rename(root / "test/monday/good.jpg")
    assert list_folder(root).classes == ("test", "train")  # one folder is no set of classes
    for day in ("monday", "tuesday"):
        (root / "train" / day).mkdir()
        (root / "train" / day / "a.jpg").touch()
    assert list_folder(root).classes == ("test", "train")  # an image lies in train/ itself
    (root / "train/good.jpg").unlink()
    with pytest.raises(DataError, match="named like parts"):
        list_folder(root)
    assert list_folder(root, classes=("test", "train")).classes == ("test", "train")
    (root / "bus").mkdir()
    (root / "bus/a.jpg").touch()
    assert list_folder(root).classes == ("bus", "test", "train")


@row("loose")
def test_loose(root: Path, flat: Path) -> None:
    assert root == flat
    with pytest.raises(DataError, match=r"3 images outside of class folders: a.jpg, b.jpg, c.jpg\. Expected"):
        list_folder(root, classes=("cat", "dog", "sub"))
    for name in ("cat/good.jpg", "dog/good.jpg", "sub/d.jpg"):
        (root / name).unlink()
    assert labels_of(list_folder(root, classes=("x", "y"))) == dict.fromkeys(("a.jpg", "b.jpg", "c.jpg"))
    with pytest.raises(DataError, match=r"no image of .* has a label yet") as error:
        list_folder(root)
    for way in (
        f'debiaspl label {root} --classes "',
        f'debiaspl zeroshot {root} --classes "',
        "--labels TABLE",
        "/CLASS/",
    ):
        assert way in str(error.value)


@row("root-missing")
def test_root_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist\. Expected a folder of images"):
        list_folder(tmp_path / "nowhere")


@row("root-file")
def test_root_file(tmp_path: Path) -> None:
    (tmp_path / "photos.zip").touch()
    with pytest.raises(DataError, match=r"photos\.zip is a file .*unpack an archive"):
        list_folder(tmp_path / "photos.zip")


# labels.csv


@row("csv-missing-file")
def test_csv_missing_file(flat: Path) -> None:
    with pytest.raises(DataError, match=r"labels.csv names 2 files not in .*photos: x.jpg, sub/a.jpg\. Paths are rel"):
        table(flat, "file_name,label\na.jpg,cat\nx.jpg,cat\nsub/a.jpg,dog\nb.jpg,dog\n")
    with pytest.raises(DataError, match="names 1 file not in"):
        table(flat, f"file_name,label\n{'long' * 1000}.jpg,cat\n")


@row("csv-no-extension")
def test_csv_no_extension(flat: Path) -> None:
    (flat / "000123").write_bytes(encoded(photo()))
    assert table(flat, "file_name,label\n000123,cat\na.jpg,dog\n")["000123"] == "cat"
    assert list_folder(flat).skipped == ()
    (flat / "labels.csv").rename(flat.parent / "mine.csv")
    (flat / "labels.csv").write_text("file_name,label\n")  # its own table is not reported, even if another one is used
    assert list_folder(flat, flat.parent / "mine.csv").skipped == ()
    assert [name for name, _ in list_images(flat).skipped] == ["000123"]


@row("csv-same-twice")
def test_csv_same_twice(flat: Path) -> None:
    found = table(flat, "file_name,label\na.jpg,cat\nb.jpg,dog\n./a.jpg,cat\n")
    assert found == {"a.jpg": "cat", "b.jpg": "dog", "c.jpg": None, "sub/d.jpg": None}


@row("csv-conflict")
def test_csv_conflict(flat: Path) -> None:
    with pytest.raises(DataError, match=r"says cat for a.jpg in line 2 and dog in line 5\. Keep one"):
        table(flat, "file_name,label\na.jpg,cat\nb.jpg,dog\n\na.jpg,dog\n")
    with pytest.raises(DataError, match=r"says cat for a.jpg in line 2 and no label in line 3"):
        table(flat, "file_name,label\na.jpg,cat\na.jpg,\n")


@row("csv-unknown-class")
def test_csv_unknown_class(flat: Path) -> None:
    (flat / "labels.csv").write_text("file_name,label\na.jpg,cat\nb.jpg,dgo\n")
    with pytest.raises(DataError, match=r"1 label outside of the given classes: dgo\. The given classes are dog, cat"):
        list_folder(flat, classes=("dog", "cat"))


@row("csv-bom")
def test_csv_bom(flat: Path) -> None:
    assert table(flat, b"\xef\xbb\xbffile_name,label\na.jpg,cat\nb.jpg,dog\n")["a.jpg"] == "cat"


@row("csv-crlf")
@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
def test_csv_crlf(flat: Path, ending: str) -> None:
    assert table(flat, ending.join(["file_name,label", "a.jpg,cat", "b.jpg,dog"]))["b.jpg"] == "dog"


@row("csv-quotes")
def test_csv_quotes(flat: Path) -> None:
    for name in ("x, y.jpg", "line\nbreak.jpg", 'say "hi".jpg', " padded .jpg"):
        (flat / name).touch()
    found = table(
        flat,
        'id, label , file_name\n1,"cats, wild","x, y.jpg"\n2, dog ," line\nbreak.jpg"\n3,dog,"say ""hi"".jpg"\n'
        '4, "dog" , "a.jpg" \n5,dog," padded .jpg"\n',
    )
    assert found["x, y.jpg"] == "cats, wild"
    for name in ("line\nbreak.jpg", 'say "hi".jpg', "a.jpg", " padded .jpg"):
        assert found[name] == "dog"
    with pytest.raises(DataError, match=r"says dog for a.jpg in line 4 and cat in line 5"):
        table(flat, 'file_name,label\n"line\nbreak.jpg",cat\na.jpg,dog\na.jpg,cat\n')


@row("csv-unquoted-comma")
def test_csv_unquoted_comma(flat: Path) -> None:
    with pytest.raises(DataError, match=r"3 cells in line 3, expected 2 as in its first line"):
        table(flat, "file_name,label\na.jpg,cat\nx, y.jpg,dog\n")
    assert table(flat, "file_name,label\na.jpg,cat,,\nb.jpg,dog,\n")["b.jpg"] == "dog"


def test_csv_class_names_may_hold_line_breaks(flat: Path) -> None:
    found = table(flat, 'file_name,label\na.jpg,"tabby\ncat"\nb.jpg,"dog, ""big""\nor small"\n')
    assert (found["a.jpg"], found["b.jpg"]) == ("tabby\ncat", 'dog, "big"\nor small')


@row("csv-open-quote")
def test_csv_open_quote(flat: Path) -> None:
    with pytest.raises(DataError, match=r"a label over several lines in line 2\. Is a quote not closed"):
        table(flat, 'file_name,label\na.jpg,"cat\nb.jpg,dog\nc.jpg,dog\n')
    with pytest.raises(DataError, match=r"cannot be read from line 2 on: .*\. Is a quote not closed"):
        table(flat, 'file_name,label\na.jpg,"cat\n' + "b.jpg,dog\n" * 20_000)


@row("csv-columns")
def test_csv_columns(flat: Path) -> None:
    with pytest.raises(DataError, match=r"has the columns who, label\. Expected a first line with file_name and lab"):
        table(flat, "who,label\na.jpg,cat\n")
    with pytest.raises(DataError, match=r"the columns image, path, label, and image, path could all be meant"):
        table(flat, "image,path,label\na.jpg,b.jpg,cat\n")
    for twice in ("file_name,label,label\na.jpg,cat,dog\n", "file_name;Label;label\na.jpg;cat;dog\n"):
        with pytest.raises(DataError, match=r"the columns file_name, label, label, with label 2 times\. "):
            table(flat, twice)
    with pytest.raises(DataError, match=r"has the columns who, label\. .* separated by commas"):
        table(flat, "who;label\na.jpg;cat\n")
    with pytest.raises(DataError, match=r"has the columns a\.jpg, b\.jpg\. Expected"):
        table(flat, "a.jpg,b.jpg\n")
    with pytest.raises(DataError, match=r"no file name in line 2"):
        table(flat, "file_name,label\n,cat\n")


@row("csv-other-form")
def test_csv_other_form(flat: Path) -> None:
    read = table(flat, "image;class\n.\\A.JPG;cat\nphotos/b.jpg;dog\n")
    assert (read["a.jpg"], read["b.jpg"]) == ("cat", "dog")
    assert table(flat, "a.jpg,cat\nb.jpg,dog\n")["b.jpg"] == "dog"


@row("csv-empty")
@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", " , \n"])
def test_csv_empty(flat: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"labels.csv is empty\. Expected a first line"):
        table(flat, text)


@row("csv-encoding")
def test_csv_encoding(flat: Path) -> None:
    with pytest.raises(DataError, match=r"is not UTF-8: byte 0xe9 in line 3\. Save it as UTF-8"):
        table(flat, "file_name,label\na.jpg,cat\nb.jpg,café\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"is not UTF-8: byte 0xff in line 1"):
        table(flat, "file_name,label\na.jpg,cat\n".encode("utf-16"))


@row("csv-absent")
def test_csv_absent(flat: Path) -> None:
    with pytest.raises(DataError, match=r"other.csv cannot be read: No such file or directory"):
        list_folder(flat, flat / "other.csv")
    with pytest.raises(DataError, match=r"sub cannot be read: Is a directory"):
        list_folder(flat, flat / "sub")


@row("csv-escape")
@pytest.mark.parametrize(
    "name", ["../x.jpg", "sub/../../x.jpg", "{above}/x.jpg", "..\\x.jpg", '" ../x.jpg"', '" {above}/x.jpg"', "\\x.jpg"]
)
def test_csv_escape(flat: Path, name: str) -> None:
    (flat.parent / "x.jpg").touch()
    with pytest.raises(DataError, match=r"in line 2, which is outside of .*photos\. Expected a path below"):
        table(flat, f"file_name,label\n{name.format(above=flat.parent)},cat\nb.jpg,dog\n")


@row("csv-absolute")
@pytest.mark.parametrize("name", ["{root}/a.jpg", '" {root}/a.jpg"', "{root}/./a.jpg"])
def test_csv_absolute(flat: Path, name: str) -> None:
    found = table(flat, f"file_name,label\n{name.format(root=flat)},cat\nb.jpg,dog\n")
    assert (found["a.jpg"], found["b.jpg"]) == ("cat", "dog")


@row("csv-no-label")
def test_csv_no_label(flat: Path) -> None:
    found = table(flat, "file_name,label\na.jpg,cat\nb.jpg,dog\nc.jpg,\nsub/d.jpg,unlabeled\n")
    assert found == {"a.jpg": "cat", "b.jpg": "dog", "c.jpg": None, "sub/d.jpg": None}
    assert table(flat, "file_name,label\na.jpg,cat\nb.jpg,dog\nc.jpg\n") == found


@row("csv-blank-lines")
def test_csv_blank_lines(flat: Path) -> None:
    found = table(flat, "\nfile_name,label\n\na.jpg,cat\n  \n,\nb.jpg,dog\n\n\n")
    assert found == {"a.jpg": "cat", "b.jpg": "dog", "c.jpg": None, "sub/d.jpg": None}


@row("csv-accents")
@pytest.mark.parametrize(("on_disk", "in_table"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_csv_accents(flat: Path, on_disk: Any, in_table: Any) -> None:
    stored = unicodedata.normalize(on_disk, "été.jpg")
    (flat / stored).touch()
    found = table(flat, f"file_name,label\n{unicodedata.normalize(in_table, 'été.jpg')},chat\na.jpg,dog\n")
    assert found[stored] == "chat"
    assert len(found) == 5
