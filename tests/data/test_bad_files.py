"""Odd and damaged files of a folder: read, skipped with a reason, or refused; as docs/bad-files.md says."""

import os
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from debiaspl.data import file_names
from debiaspl.data.decode import BadImage, decode
from debiaspl.data.listing import Listing, list_folder
from debiaspl.data.text import DataError
from tests.data.photos import close, encoded, photo, pixels, read_folder


def plain(*colour: int, size: tuple[int, int]) -> Tensor:
    return torch.tensor(colour, dtype=torch.uint8)[:, None, None].expand(3, *size)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes with one good photograph each."""
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "good.jpg").write_bytes(encoded(photo(number)))
    return tmp_path / "photos"


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


FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")


@pytest.mark.parametrize("format", FORMATS)
def test_the_content_says_what_it_is_and_half_of_it_is_skipped(root: Path, format: str) -> None:
    whole = encoded(photo(), format)
    (root / "cat/other.jpg").write_bytes(whole)
    images, reasons = read_folder(root, (427, 640))
    assert reasons == ()
    assert close(images.images[1], photo(), 8.0)
    (root / "cat/other.jpg").write_bytes(whole[: len(whole) // 2])
    assert skipped(root, "cat/other.jpg").startswith("cannot be decoded: ")


@pytest.mark.parametrize(
    "content",
    [
        *(b"<html>not found</html>", b"BM is how this begins", b"P5 and so on"),
        *(encoded(photo().resize((32, 32)), format) for format in ("ICO", "TGA", "PCX")),
    ],
    ids=range(6),
)
def test_text_and_other_formats(root: Path, content: bytes) -> None:
    (root / "cat/page.jpg").write_bytes(content)
    assert re.match("its content is not JPEG, PNG|cannot be decoded", skipped(root, "cat/page.jpg"))


def deep() -> Image.Image:
    """The photograph in grey with 16 bits; the low byte is noise."""
    grey = np.array(photo().convert("L")).astype(np.uint32)
    low = np.random.RandomState(0).randint(-128, 129, grey.shape)
    return Image.fromarray(np.clip(grey * 257 + low, 0, 65535).astype(np.uint16))


@pytest.mark.parametrize("format", ["PNG", "TIFF", "TIFF big-endian", "PPM"])
def test_grey_16(format: str) -> None:
    if format == "TIFF big-endian":
        data = encoded(Image.frombytes("I;16B", photo().size, np.array(deep()).astype(">u2").tobytes()), "TIFF")
    else:
        data = encoded(deep(), format)
    assert torch.equal(decode(data, None, channels=1), pixels(photo().convert("L")))
    assert torch.equal(decode(data, None), pixels(photo().convert("L")).expand(3, -1, -1))


@pytest.mark.parametrize("mode", ["F", "I"])
def test_float_tiff(root: Path, mode: str) -> None:
    (root / "cat/float.tif").write_bytes(encoded(photo().convert("L").convert(mode), "TIFF"))
    assert "no standard range" in skipped(root, "cat/float.tif")


@pytest.mark.parametrize("format", ["PNG", "GIF", "TIFF"])
def test_palette(format: str) -> None:
    few = photo().quantize(64)
    assert torch.equal(decode(encoded(few, format), None), pixels(few.convert("RGB")))


@pytest.mark.parametrize("transparency", [0, bytes([0, 128])])
def test_palette_transparent(transparency: int | bytes) -> None:
    image = Image.new("P", (3, 1))
    image.putpalette([200, 0, 0, 0, 200, 0, 0, 0, 200])
    image.putdata([0, 1, 2])
    half = [0, 200, 0] if transparency == 0 else [127, 227, 127]
    found = decode(encoded(image, "PNG", transparency=transparency), None)
    assert found[:, 0].T.tolist() == [[255, 255, 255], half, [0, 0, 200]]


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


@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP", "PPM"])
def test_one_bit_and_four_inks(format: str) -> None:
    scan = photo().convert("1")
    assert torch.equal(decode(encoded(scan, format), None, channels=1), pixels(scan.convert("L")))
    assert close(decode(encoded(photo().convert("CMYK")), (427, 640)), photo(), 6.0)


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


def test_exif_broken() -> None:
    for exif in (b"Exif\0\0 nonsense", b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\0" * 9):
        assert close(decode(encoded(photo(), exif=exif), None), photo(), 8.0)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF"])
def test_animated(format: str) -> None:
    data = encoded(photo(0), format, save_all=True, append_images=[photo(1)])
    assert close(decode(data, None), photo(0), 8.0)


def test_one_pixel() -> None:
    data = encoded(Image.new("RGB", (1, 1), (10, 20, 30)), "PNG")
    assert decode(data, None).flatten().tolist() == [10, 20, 30]
    assert torch.equal(decode(data, (32, 48)), plain(10, 20, 30, size=(32, 48)))


@pytest.mark.parametrize("height", [1, 20])
def test_wide(height: int) -> None:
    image = Image.new("RGB", (30_000, height), (0, 0, 0))
    image.paste((200, 100, 50), (14_000, 0, 16_000, height))
    for turned in (image, image.transpose(Image.Transpose.ROTATE_90)):
        found = decode(encoded(turned, "PNG"), (64, 64))
        assert torch.equal(found, plain(200, 100, 50, size=(64, 64)))
    if height == 20:  # of the JPEG, one row for twenty: 300 columns stand for the middle 6,000, from 12,000 on
        bright = decode(encoded(image), (1, 300))[0, 0] > 100
        assert bright.nonzero().flatten().tolist() == list(range(100, 200))


def test_bomb(root: Path) -> None:
    header = encoded(Image.new("RGB", (16, 16)))
    claimed = header.replace(struct.pack(">BHH", 8, 16, 16), struct.pack(">BHH", 8, 60_000, 60_000))
    (root / "cat/bomb.png").write_bytes(claimed)
    assert "pixels" in skipped(root, "cat/bomb.png")


def test_a_large_image_within_the_limit_is_decoded_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pillow's own limit, a tenth of this image, so that the test needs little memory; warnings are errors here.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200_000)
    for format in ("JPEG", "PNG", "GIF", "BMP", "PPM"):
        assert decode(encoded(photo(), format), (8, 8)).shape == (3, 8, 8)
    monkeypatch.setattr("debiaspl.data.decode.PIXEL_LIMIT", 1000)
    with pytest.raises(BadImage, match=r"640 x 427 pixels, more than the limit of 1,000"):
        decode(encoded(photo()), (8, 8))


def test_a_class_or_all_without_a_good_image(root: Path) -> None:
    (root / "dog/good.jpg").write_bytes(b"")
    (root / "unlabeled").mkdir()
    (root / "unlabeled/bad.jpg").write_text("bad")
    with pytest.raises(DataError, match=r"can be read: dog/good.jpg \(the file is empty \(zero bytes\)\)\. "):
        read_folder(root, (8, 8))
    shutil.rmtree(root / "unlabeled")
    (root / "cat/good.jpg").write_text("bad")
    with pytest.raises(DataError, match=r"none of 2 images can be read: cat/good.jpg \(its content is not"):
        read_folder(root, (8, 8))


def write_heic(root: Path) -> Path:
    file = root / "cat/a.heic"
    file.write_bytes(encoded(photo()))
    return file


def test_a_photo_of_an_iphone_is_read(root: Path) -> None:
    heif = pytest.importorskip("pillow_heif")
    heif.from_pillow(photo()).save(write_heic(root), quality=95)
    images, reasons = read_folder(root, (64, 64))
    assert (reasons, images.counts()) == ((), [2, 1])
    assert close(images.images[0], images.images[1], 12)


def test_without_the_extra_it_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_names, "find_spec", lambda name: None)
    file_names.reads_heic.cache_clear()
    try:
        file = write_heic(root)
        assert list_folder(root).skipped == (("cat/a.heic", file_names.NO_HEIC),)
        file.write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        with pytest.raises(BadImage, match=r"debiaspl\[heic\]"):
            decode(file, (8, 8))
    finally:
        file_names.reads_heic.cache_clear()


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


def test_undecodable_names_of_files_and_of_classes(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    name = os.fsdecode(b"caf\xe9")
    (root / "cat" / f"{name}.jpg").write_bytes(encoded(photo()))
    (root / "cat" / f"{name}.txt").touch()
    images, reasons = read_folder(root, (8, 8))
    assert images.ids == (f"cat/{name}.jpg", "cat/good.jpg", "dog/good.jpg")
    assert os.fsencode(images.ids[0]) == b"cat/caf\xe9.jpg"
    assert reasons == ((f"cat/{name}.txt", "not an image: .txt"),)
    assert caplog.text.encode("utf-8")
    (root / "cat").rename(root / os.fsdecode(b"caf\xe9"))
    with pytest.raises(DataError, match=r"'caf\\udce9'.*UTF-8"):
        list_folder(root)


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


def test_link_out(linked: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    images, reasons = read_folder(linked, (8, 8))
    list_folder(linked)
    (told,) = (line for line in caplog.messages if "left out" in line)
    assert "2 files left out: a link that leaves the folder; --follow-links" in told, "once, also where images stream"
    assert images.ids == ("cat/good.jpg", "dog/good.jpg")
    out = "a link that leaves the folder; --follow-links reads it"
    assert reasons == (("cat/link.jpg", out), ("dog/more", out))
    monkeypatch.setenv("DEBIASPL_FOLLOW_LINKS", "1")
    images, reasons = read_folder(linked, (8, 8))
    assert images.ids == ("cat/good.jpg", "cat/link.jpg", "dog/good.jpg", "dog/more/far.jpg")
    assert reasons == ()


def test_what_is_refused_because_links_lead_out_says_so(linked: Path, tmp_path: Path) -> None:
    (linked / "owl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"without an image: owl\. .* owl: a link that leaves the folder"):
        list_folder(linked)
    (linked / "labels.csv").write_text("file_name,label\ncat/good.jpg,cat\ndog/good.jpg,dog\ncat/link.jpg,cat\n")
    with pytest.raises(DataError, match=r"names 1 file not in .*: cat/link\.jpg"):
        list_folder(linked)
    for name in ("cat/good.jpg", "dog/good.jpg", "labels.csv"):
        (linked / name).unlink()
    with pytest.raises(DataError, match=r"contains no image.* 3 of them are links out of the folder: --follow-links"):
        list_folder(linked)


def test_link_loop(root: Path) -> None:
    (root / "cat/again").symlink_to(root)
    (root / "cat/self.jpg").symlink_to(root / "cat/self.jpg")
    (root / "dog/abc").symlink_to(root / "cat")
    listing = list_folder(root)
    assert listing.files == ("cat/good.jpg", "dog/good.jpg")
    assert [name for name, _ in listing.skipped] == ["cat/again", "cat/self.jpg", "dog/abc"]
    assert listing.skipped[2][1] == "the same folder as cat, which is already read"


def test_neither_a_dangling_link_nor_a_pipe_is_opened(root: Path) -> None:
    (root / "cat/gone.jpg").symlink_to(root / "nowhere.jpg")
    assert skipped(root, "cat/gone.jpg") == "a link to a file that is not there"
    (root / "cat/gone.jpg").unlink()
    os.mkfifo(root / "cat/pipe.jpg")
    assert skipped(root, "cat/pipe.jpg") == "neither a file nor a folder"


def test_hidden(root: Path) -> None:
    for name in (".git", "__MACOSX", "cat/.thumbnails"):
        (root / name).mkdir()
        (root / name / "a.jpg").write_bytes(encoded(photo()))
    for name in (".DS_Store", "cat/._good.jpg", "cat/Thumbs.db", "dog/desktop.ini", "dog/.hidden.jpg"):
        (root / name).touch()
    listing = list_folder(root)
    assert (listing.files, listing.skipped) == (("cat/good.jpg", "dog/good.jpg"), ())


def test_not_images(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("cat/notes.txt", "dog/raw.xyz", "README"):
        (root / name).touch()
    images, reasons = read_folder(root, (8, 8))
    assert len(images) == 2
    endings = {"README": "no extension", "cat/notes.txt": ".txt", "dog/raw.xyz": ".xyz"}
    assert dict(reasons) == {name: f"not an image: {ending}" for name, ending in endings.items()}
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("debiaspl", "WARNING")
    assert "read 2 images, skipped 3 files: README (not an image: no extension), cat/notes.txt" in record.getMessage()


def test_no_images(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "photos.zip").touch()
    for place, words in (
        ("cat", "contains no image and no other file"),
        (".", r"contains no image and 1 other file: photos.zip\. Images end in \.jpg "),
        ("nowhere", r"nowhere does not exist\. Expected a folder of images"),
        ("photos.zip", r"photos\.zip is a file .*unpack an archive"),
    ):
        with pytest.raises(DataError, match=words):
            list_folder(tmp_path / place)


def test_unlabeled(root: Path) -> None:
    (root / "unlabeled/deep").mkdir(parents=True)
    assert list_folder(root).classes == ("cat", "dog")
    (root / "unlabeled/deep/a.jpg").write_bytes(encoded(photo()))
    images, _ = read_folder(root, (8, 8))
    assert images.classes == ("cat", "dog")
    assert images.labels.tolist() == [0, 1, -1]
    shutil.rmtree(root / "dog")
    with pytest.raises(DataError, match=r"has labels of one class only: cat\. Expected two"):
        list_folder(root)


def test_parts(root: Path) -> None:
    for part in ("train", "Val"):
        for name in ("cat", "dog"):
            (root / part / name / "2024").mkdir(parents=True)
            (root / part / name / "2024" / "a.jpg").touch()
    shutil.rmtree(root / "cat")
    shutil.rmtree(root / "dog")
    with pytest.raises(DataError, match=rf"contains Val, train, named like parts .* Use {root}/train;"):
        list_folder(root)
    assert labels_of(list_folder(root / "train"))["dog/2024/a.jpg"] == "dog"
    (root / "unlabeled").mkdir()
    (root / "unlabeled/a.jpg").touch()
    # Of the test images one often gets the files alone; or there is one part only.
    shutil.rmtree(root / "Val" / "cat")
    (root / "Val" / "dog.jpg").touch()
    for _ in range(2):
        with pytest.raises(DataError, match=f"named like parts .* Use {root}/train after"):
            list_folder(root)
        shutil.rmtree(root / "Val", ignore_errors=True)


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


def test_loose(root: Path) -> None:
    (root / "sub").mkdir()
    for name in ("a.jpg", "b.jpg", "c.jpg", "sub/d.jpg"):
        (root / name).touch()
    with pytest.raises(DataError, match=r"3 images outside of class folders: a.jpg, b.jpg, c.jpg\. Move"):
        list_folder(root, classes=("cat", "dog", "sub"))
    for name in ("cat/good.jpg", "dog/good.jpg", "sub/d.jpg"):
        (root / name).unlink()
    assert labels_of(list_folder(root, classes=("x", "y"))) == dict.fromkeys(("a.jpg", "b.jpg", "c.jpg"))
    with pytest.raises(DataError, match=r"has a label yet.*debiaspl label .*debiaspl zeroshot .*--labels"):
        list_folder(root)
