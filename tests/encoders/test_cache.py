"""Features: computed once, found again by contents, and never by half."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from debiaspl.augment import CropColor
from debiaspl.data import ImageSet
from debiaspl.data.lazy import FolderFiles, LazyImages
from debiaspl.encoders import EncodedViews, Encoder, cached_features
from debiaspl.encoders import cache as cache_module
from debiaspl.encoders.cache import is_stored
from debiaspl.models import scale
from tests.data.photos import jpeg, patch

VIEWS = EncodedViews(weak=2, strong=1)


class Flat(Encoder):
    """Nine pixels as they are; counts what it was asked for."""

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
def small_chunks(monkeypatch):
    monkeypatch.setattr(cache_module, "CHUNK", 5)


@pytest.fixture
def images() -> ImageSet:
    pixels = torch.randint(0, 256, (12, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return ImageSet(pixels, torch.full((12,), -1), ("a", "b"))


def test_features_of_images_and_views(images, tmp_path):
    encoder = Flat()
    found = cached_features(encoder, images, tmp_path, VIEWS)
    assert found.plain.shape == (12, 27)
    assert found.weak.shape == (2, 12, 27)
    assert found.strong.shape == (1, 12, 27)
    assert torch.equal(found.plain, encoder.embed(scale(images.images)))
    assert not torch.equal(found.weak[0], found.weak[1])


def test_a_second_call_computes_nothing_and_gives_the_same_bits(images, tmp_path):
    first, again = Flat(), Flat()
    told = []
    one = cached_features(first, images, tmp_path, VIEWS)
    two = cached_features(again, images, tmp_path, VIEWS, lambda done, total: told.append((done, total)))
    assert first.seen == 12 * 4
    assert again.seen == 0
    assert told == [(5, 12), (10, 12), (12, 12)]
    for name in ("plain", "weak", "strong"):
        assert torch.equal(getattr(one, name), getattr(two, name))


def test_progress_is_told_within_a_chunk_which_is_stored_at_its_end(images, tmp_path, monkeypatch):
    monkeypatch.setitem(cache_module.BATCH, "cpu", 2)
    told = []

    def watch(done: int, total: int) -> None:
        told.append((done, is_stored(done, total), len(list(tmp_path.iterdir()))))

    cached_features(Flat(), images, tmp_path, VIEWS, watch)
    assert [done for done, _, _ in told] == [2, 4, 5, 7, 9, 10, 12]
    assert [(done, files) for done, stored, files in told if stored] == [(5, 1), (10, 2), (12, 3)]


def test_photos_are_kept_in_chunks_in_their_order(images, tmp_path):
    """As docs/own-photos.md says: what comes last costs its own chunk, and what comes first all of them."""
    cached_features(Flat(), images, tmp_path)
    more = torch.randint(0, 256, (1, 3, 8, 8), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    for pixels, seen in (((images.images, more), 3), ((more, images.images), 13)):
        encoder = Flat()
        cached_features(encoder, ImageSet(torch.cat(pixels), torch.full((13,), -1), ("a", "b")), tmp_path)
        assert encoder.seen == seen


@pytest.mark.parametrize("change", ["weights", "size", "views", "change", "pixels"])
def test_what_changed_is_computed_anew(change, images, tmp_path):
    cached_features(Flat(), images, tmp_path, VIEWS)
    encoder, views = Flat(), VIEWS
    if change == "weights":
        encoder.weight.data += 1
    elif change == "size":
        encoder.image_size = 2
        encoder.num_features = 12
    elif change == "views":
        views = EncodedViews(weak=1, strong=1)
    elif change == "change":
        views = replace(VIEWS, change=CropColor())
    else:
        images.images[7, 0, 0, 0] ^= 1
    found = cached_features(encoder, images, tmp_path, views)
    assert encoder.seen == (5 if change == "pixels" else 12) * (1 + views.weak + views.strong)
    assert torch.equal(found.plain, encoder.embed(scale(images.images)))


def test_names_do_not_matter(images, tmp_path):
    cached_features(Flat(), images, tmp_path, VIEWS)
    encoder = Flat()
    cached_features(encoder, replace(images, ids=tuple(f"{n}.jpg" for n in range(12))), tmp_path, VIEWS)
    assert encoder.seen == 0


def test_a_file_that_was_cut_short_is_computed_anew(images, tmp_path):
    one = cached_features(Flat(), images, tmp_path, VIEWS)
    victim = sorted(tmp_path.iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:100])
    encoder = Flat()
    two = cached_features(encoder, images, tmp_path, VIEWS)
    assert encoder.seen > 0
    assert torch.equal(one.weak, two.weak)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]


def test_files_and_a_file_that_cannot_be_read(tmp_path):
    names = tuple(f"{number}.jpg" for number in range(7))
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(jpeg(patch(0, number)))
    (tmp_path / "3.jpg").write_bytes(b"no photo")
    lazy = LazyImages(FolderFiles(tmp_path, names), torch.arange(7), (8, 8))
    photos = ImageSet(lazy, torch.full((7,), -1), ("a", "b"), names)
    found = cached_features(Flat(), photos, tmp_path / "kept")
    assert list(found.skipped) == [3]
    again = Flat()
    assert cached_features(again, photos, tmp_path / "kept").skipped == found.skipped
    assert again.seen == 0  # one bad photo must not have the others computed again by every run
    assert not found.plain[3].any()
    assert found.plain[[0, 1, 2, 4, 5, 6]].any(-1).all()
    (tmp_path / "3.jpg").write_bytes(jpeg(patch(0, 3)))
    mended = cached_features(Flat(), photos, tmp_path / "kept")
    assert not mended.skipped
    assert mended.plain[3].any()


def test_features_that_are_no_numbers_are_refused(images, tmp_path):
    encoder = Flat()
    encoder.weight.data[0] = torch.nan
    with pytest.raises(ValueError, match="the encoder flat returns features that are not finite numbers"):
        cached_features(encoder, images, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", [-3, -500, 200])
def test_a_file_with_a_flipped_bit_is_computed_anew(images, tmp_path, place):
    one = cached_features(Flat(), images, tmp_path, VIEWS)
    for victim in tmp_path.iterdir():
        content = bytearray(victim.read_bytes())
        content[place] ^= 1
        victim.write_bytes(bytes(content))
    encoder = Flat()
    two = cached_features(encoder, images, tmp_path, VIEWS)
    assert encoder.seen > 0
    assert torch.equal(one.plain, two.plain)
    assert torch.equal(one.strong, two.strong)


def test_features_of_an_earlier_version_are_computed_anew(images, tmp_path):
    """They have no digest; what is computed takes their place."""
    cached_features(Flat(), images, tmp_path, VIEWS)
    files = sorted(tmp_path.iterdir())
    for file in files:
        save_file(load_file(file), file, metadata={"skipped": "{}"})
    again, third = Flat(), Flat()
    cached_features(again, images, tmp_path, VIEWS)
    cached_features(third, images, tmp_path, VIEWS)
    assert again.seen > 0
    assert third.seen == 0
    assert sorted(tmp_path.iterdir()) == files
