"""HEIC, the format of iPhones, is read with pillow-heif; without it, the message names the extra."""

import pytest

from debiaspl.data import DataError, file_names
from debiaspl.data.decode import BadImage, decode
from debiaspl.data.listing import list_folder
from tests.data.photos import jpeg, patch, read_folder


def write(root):
    for name, ending in (("cat", "heic"), ("dog", "jpg")):
        (root / name).mkdir()
        (root / name / f"a.{ending}").write_bytes(jpeg(patch(0, 1)))
    return root / "cat" / "a.heic"


def test_a_photo_of_an_iphone_is_read(tmp_path):
    heif = pytest.importorskip("pillow_heif")
    file = write(tmp_path)
    heif.from_pillow(patch(0, 1, 64)).save(file, quality=95)
    images, skipped = read_folder(tmp_path, (64, 64))
    assert skipped == ()
    assert images.counts() == [1, 1]
    expected = decode(jpeg(patch(0, 1, 64)), (64, 64)).float()
    assert (images.images[0].float() - expected).abs().mean() < 12


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(file_names, "find_spec", lambda name: None)
    file_names.reads_heic.cache_clear()
    try:
        file = write(tmp_path)
        with pytest.raises(DataError, match="cat"):
            list_folder(tmp_path)
        (tmp_path / "cat" / "b.jpg").write_bytes(jpeg(patch(0, 1)))
        assert list_folder(tmp_path).skipped == (("cat/a.heic", file_names.NO_HEIC),)
        file.write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        with pytest.raises(BadImage, match=r"debiaspl\[heic\]"):
            decode(file, (8, 8))
    finally:
        file_names.reads_heic.cache_clear()
