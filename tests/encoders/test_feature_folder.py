"""Features of images: each is computed once, found again, and never taken from a damaged or another encoder's file."""

import json
import os
import shutil
from dataclasses import replace

import pytest
import torch

from debiaspl.data import ImageSet, manifest
from debiaspl.data.lazy import left_in_files
from debiaspl.data.listing import list_images
from debiaspl.encoders import Encoder, encoding, features_of
from debiaspl.models import scale
from tests.data.photos import jpeg, patch


class Flat(Encoder):
    """Nine pixels as they are; counts the images that it has encoded."""

    def __init__(self) -> None:
        super().__init__("flat", 27, 3, (0.5,) * 3, (0.5,) * 3)
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.seen = 0

    @property
    def architecture(self):
        return {"kind": "flat", "image_size": self.image_size}

    def features(self, images):
        self.seen += len(images)
        return images.flatten(1) * self.weight


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Files of 5 images, and batches of one, so that an encoder counts what it was asked for."""
    monkeypatch.setattr(manifest, "ROWS", 5)
    monkeypatch.setattr(encoding, "BATCH", {"cpu": 1})


@pytest.fixture
def photos(tmp_path):
    return filled(tmp_path / "photos", 12)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "features"


def filled(root, count):
    for number in range(count):
        add(root, f"{number:02d}.jpg", number)
    return root


def add(root, name, number):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(jpeg(patch(number % 3, number)))


def opened(root) -> ImageSet:
    return left_in_files(replace(list_images(root), classes=("a", "b")), 8)


def files(folder) -> list[str]:
    return sorted(path.name for path in folder.glob("*/*") if path.name not in (".lock", "about.json"))


def encode(root, folder, watch=lambda done, total: None):
    """Features by name, and how many photos were encoded for them."""
    encoder, images = Flat(), opened(root)
    found = features_of(images, encoder, folder, watch)
    expected = encoder.embed(scale(torch.stack([images.images.picture(n) for n in range(len(images))])))
    assert torch.equal(found.values, expected)
    assert not found.skipped
    return encoder.seen - len(images)


def stopped(root, folder, last, before=lambda: None):
    """Stop after this many photos."""

    def stop(done: int, total: int) -> None:
        if done == last:
            before()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(root, folder, stop)


def test_the_second_time_no_photo_is_opened(photos, folder, monkeypatch):
    progress = []
    assert encode(photos, folder, lambda done, total: progress.append((done, total))) == 12
    assert progress == [(done, 12) for done in range(13)]
    assert files(folder) == ["00000.safetensors", "00001.safetensors", "00002.safetensors", "manifest.jsonl"]
    encoder, images = Flat(), opened(photos)
    monkeypatch.setattr("debiaspl.data.lazy.FolderFiles.read", None)
    features_of(images, encoder, folder)
    assert encoder.seen == 0


def test_only_what_is_new_or_changed_is_encoded(photos, folder):
    encode(photos, folder)
    add(photos, "00a.jpg", 20)  # before others, in the order of names
    assert encode(photos, folder) == 1
    add(photos, "03.jpg", 21)
    assert encode(photos, folder) == 1
    (photos / "07.jpg").unlink()
    assert encode(photos, folder) == 0
    assert len(files(folder)) == 6


def test_photos_that_were_moved_copied_or_touched_are_hashed_and_not_encoded(photos, folder, tmp_path):
    encode(photos, folder)
    (photos / "cats").mkdir()
    (photos / "02.jpg").rename(photos / "cats" / "2.jpg")
    (photos / "03.jpg").rename(photos / "other.jpg")
    (photos / "04.jpg").rename(photos / "03.jpg")
    (photos / "other.jpg").rename(photos / "04.jpg")
    os.utime(photos / "05.jpg")
    assert encode(photos, folder) == 0
    shutil.copytree(photos, tmp_path / "copy")
    assert encode(tmp_path / "copy", folder) == 0


def test_a_photo_with_an_old_time_and_the_same_size_is_read_again(photos, folder):
    """As if it were unpacked from another archive."""
    for number, value in ((30, 0), (31, 255)):
        name = photos / "00.ppm"
        name.write_bytes(b"P6 8 8 255\n" + bytes([value]) * 192)
        os.utime(name, (1, 1))
        assert encode(photos, folder) == (13 if number == 30 else 1)


def test_images_in_memory(folder):
    pixels = torch.randint(0, 256, (7, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images = ImageSet(pixels, torch.full((7,), -1), ("a", "b"))
    encoder, again, changed = Flat(), Flat(), Flat()
    values = features_of(images, encoder, folder).values
    assert torch.equal(values, encoder.embed(scale(pixels)))
    assert torch.equal(features_of(images, again, folder).values, values)
    pixels[3, 0, 0, 0] ^= 1
    assert torch.equal(features_of(images, changed, folder).values, changed.embed(scale(pixels)))
    assert (again.seen, changed.seen) == (0, 1 + 7)


@pytest.mark.parametrize("change", ["weights", "size"])
def test_another_encoder_has_its_own_files(change, photos, folder):
    encode(photos, folder)
    encoder = Flat()
    if change == "weights":
        encoder.weight.data += 1
    images = opened(photos) if change == "weights" else left_in_files(list_images(photos), 16)
    features_of(images, encoder, folder)
    assert encoder.seen == 12


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("last", [1, 3, 5, 9, 12])
def test_a_stop_keeps_what_is_done(seconds, last, photos, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "SECONDS", seconds)
    stopped(photos, folder, last)
    assert encode(photos, folder) == 12 - last
    encode(photos, tmp_path / "in one")
    assert files(folder) == files(tmp_path / "in one")
    for one, other in zip(sorted(folder.glob("*/*")), sorted((tmp_path / "in one").glob("*/*")), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_after_a_kill_parts_of_a_file_are_used(photos, folder, monkeypatch):
    """A kill leaves what was written until then; photos removed since do not matter."""
    monkeypatch.setattr(encoding, "SECONDS", 0.0)

    def keep(done: int, total: int) -> None:
        if done == 8:
            shutil.copytree(folder, folder.with_name("killed"))

    encode(photos, folder, keep)
    killed = folder.with_name("killed")
    assert files(killed) == ["00000.safetensors", "00001.safetensors", "manifest.jsonl"]
    (photos / "09.jpg").unlink()
    assert encode(photos, killed) == 3
    assert len(files(killed)) == 4
    add(photos, "09.jpg", 9)
    assert encode(photos, killed) == 1


def test_a_slower_process_that_is_stopped_takes_nothing_from_a_complete_file(photos, folder, tmp_path):
    """Both began with the same photos; one had all features when the other was stopped after two."""
    encode(photos, tmp_path / "complete")
    stopped(photos, folder, 2, lambda: shutil.copytree(tmp_path / "complete", folder, dirs_exist_ok=True))
    assert encode(photos, folder) == 0


def test_a_stop_keeps_what_replaces_a_damaged_file(photos, folder):
    encode(photos, folder)
    path = next(folder.glob("*/00000.safetensors"))
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    stopped(photos, folder, 9)
    assert encode(photos, folder) == 3


def test_a_file_of_features_keeps_nothing_else_in_memory(photos, folder, monkeypatch):
    """Features may be a part of all that a network returns, or of another file, for copies of photos."""
    kept: list[int] = []
    write = encoding.FeatureFolder.write

    def watched(self, number, names, rows):
        kept.extend(row.features.untyped_storage().nbytes() for row in rows)
        write(self, number, names, rows)

    monkeypatch.setattr(encoding.FeatureFolder, "write", watched)
    monkeypatch.setattr(Flat, "features", lambda self, images: torch.stack([images.flatten(1)] * 9, 1)[:, 0])
    features_of(opened(photos), Flat(), folder)
    shutil.copytree(photos, photos / "below")
    features_of(opened(photos), Flat(), folder)
    assert kept == [27 * 4] * 24


def test_a_photo_that_cannot_be_decoded_is_skipped_until_it_changes(photos, folder):
    (photos / "03.jpg").write_bytes(b"no photo")
    for seen in (11, 0):
        encoder = Flat()
        found = features_of(opened(photos), encoder, folder)
        assert list(found.skipped) == [3]
        assert not found.values[3].any()
        assert encoder.seen == seen
    add(photos, "03.jpg", 3)
    assert encode(photos, folder) == 1


def test_a_photo_that_cannot_be_opened_is_tried_again(photos, folder):
    images = opened(photos)
    add(photos, "03.jpg", 3)
    (photos / "03.jpg").rename(photos.parent / "away.jpg")
    for _ in range(3):
        encoder = Flat()
        found = features_of(images, encoder, folder)
        assert list(found.skipped) == [3]
    assert len(files(folder)) == 4
    (photos.parent / "away.jpg").rename(photos / "03.jpg")
    assert encode(photos, folder) == 1


def test_features_that_are_not_numbers_and_equal_names_are_refused(photos, folder):
    with pytest.raises(ValueError, match="names"):
        features_of(replace(opened(photos), ids=("x",) * 12), Flat(), folder)
    encoder = Flat()
    encoder.weight.data[0] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        features_of(opened(photos), encoder, folder)
    assert files(folder) == ["manifest.jsonl"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "linked", "piped", "swapped"])
def test_damaged_and_untrusted_files_are_computed_again(damage, photos, folder):
    encode(photos, folder)
    before = {path.name: path.read_bytes() for path in folder.glob("*/*")}
    path, other = (next(folder.glob(f"*/0000{number}.safetensors")) for number in (0, 1))
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[:100])
    elif damage == "flipped":
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    elif damage == "linked":
        path.with_suffix(".moved").write_bytes(content)
        path.symlink_to(path.with_suffix(".moved"))
    elif damage == "piped":
        os.mkfifo(path)
    else:
        other.rename(path)
        other.write_bytes(content)
    assert encode(photos, folder) == (10 if damage == "swapped" else 5)
    assert {path.name: path.read_bytes() for path in folder.glob("*/*") if path.suffix != ".moved"} == before
    assert encode(photos, folder) == 0


@pytest.mark.parametrize("line", [b"{", b"[]", b'"x"', json.dumps(["x"] * 6).encode(), b"[" * 100_000, b"\xff"])
def test_a_damaged_manifest_is_written_again(line, photos, folder):
    encode(photos, folder)
    manifest = next(folder.glob("*/manifest.jsonl"))
    first, *rest = manifest.read_bytes().splitlines()
    manifest.write_bytes(b"\n".join([first, line, *rest]))
    assert encode(photos, folder) <= 7
    assert encode(photos, folder) == 0
