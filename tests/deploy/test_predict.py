"""``debiaspl predict`` on folders as users have them."""

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

from debiaspl.deploy import load_model, saved
from debiaspl.deploy.predict import listed, predict_folder
from tests.data.photos import jpeg, patch
from tests.typed import debiaspl, done, rows_of as rows


@pytest.fixture
def folder(tmp_path) -> Path:
    """Photos of several sizes and modes, in folders, with things that are none."""
    root = tmp_path / "wild"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "a.jpg").write_bytes(jpeg(patch(0, 1, side=24)))
    patch(1, 2, side=90).save(root / "deep" / "b, c.png")
    patch(1, 3, side=50).convert("L").save(root / "deep" / "er" / "grey.png")
    patch(0, 4, side=30).convert("RGBA").resize((30, 200)).save(root / "ü.webp", lossless=True)
    (root / "broken.jpg").write_bytes(b"nothing")
    (root / "notes.txt").write_text("not an image")
    return root


def test_labels_are_those_of_each_photo_read_as_in_training(run, folder, tmp_path):
    result = debiaspl("predict", run, folder, "--out", tmp_path / "labels.csv", "--skipped", tmp_path / "skipped.csv")
    assert result.exit_code == 0, result.output
    found = rows(tmp_path / "labels.csv")
    assert [row["file_name"] for row in found] == ["a.jpg", "deep/b, c.png", "deep/er/grey.png", "ü.webp"]
    model = load_model(run)
    for row in found:
        probabilities = model.probabilities(model.read(folder / row["file_name"])[None])[0]
        assert row["label"] == model.classes[int(probabilities.argmax())]
        assert abs(float(row["confidence"]) - float(probabilities.max())) < 2e-6
    assert "4 images: " in result.output
    assert "warning: 1 image could not be predicted:\n  broken.jpg: its content is not JPEG" in result.stderr
    assert [row["file_name"] for row in rows(tmp_path / "skipped.csv")] == ["broken.jpg", "notes.txt"]


def test_one_row_per_image_in_order_over_many_batches(model, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "MOST_IMAGES", 2)
    for number in range(5):
        (folder / f"bad{number}.jpg").write_bytes(b"x")
        (folder / f"c{number}.jpg").write_bytes(jpeg(patch(1, number)))
    done = []
    found = predict_folder(model, listed(folder), tmp_path / "x.csv", progress=lambda *numbers: done.append(numbers))
    names = [row["file_name"] for row in rows(tmp_path / "x.csv")]
    assert names == sorted(names)
    assert len(names) == sum(found.counts.values()) == 9
    assert sorted(found.bad) == [*(f"bad{number}.jpg" for number in range(5)), "broken.jpg"]
    assert done == [(number, 15) for number in (2, 4, 6, 8, 10, 12, 14, 15)]


def test_probabilities_of_every_class_can_be_audited(run, photos, tmp_path):
    out = tmp_path / "labels.csv"
    done("predict", run, photos, "--out", out, "--probabilities")
    for row in rows(out):
        shares = {name: float(row[f"probability:{name}"]) for name in ("china", "flower")}
        assert abs(sum(shares.values()) - 1) < 3e-6
        assert max(shares, key=shares.get) == row["label"]
    done("audit", out)


def test_the_same_bits_wherever_the_run_lies_and_whatever_else_the_folder_gained(run, photos, tmp_path):
    moved, changed = shutil.copytree(run, tmp_path / "moved"), shutil.copytree(photos, tmp_path / "photos")
    done("predict", run, photos, "--out", tmp_path / "1.csv")
    done("predict", moved, changed, "--out", tmp_path / "2.csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()
    (changed / "china" / "0003.jpg").unlink()
    (changed / "new").mkdir()
    Image.new("RGB", (5, 9)).save(changed / "new" / "one.png")
    done("predict", moved, changed, "--out", tmp_path / "3.csv")
    before, after = ({row["file_name"]: row["label"] for row in rows(tmp_path / f"{n}.csv")} for n in (1, 3))
    assert set(after) == set(before) - {"china/0003.jpg"} | {"new/one.png"}
    assert all(after[name] == before[name] for name in set(after) & set(before))


def test_nothing_half_written_stays(model, photos, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_folder(model, listed(photos), tmp_path / "labels.csv", progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_folder_without_a_readable_image(model, tmp_path, out):
    (tmp_path / "photos").mkdir()
    with pytest.raises(ValueError, match="contains no image and no other file"):
        predict_folder(model, listed(tmp_path / "photos"), tmp_path / out)
    (tmp_path / "photos" / "a.jpg").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"none of the 1 images in .* can be read: a.jpg \(its content"):
        predict_folder(model, listed(tmp_path / "photos"), tmp_path / out)
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_a_name_that_parquet_cannot_hold_is_named(model, folder, tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    try:
        (folder / name).write_bytes(jpeg(patch(0, 7)))
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    assert name in predict_folder(model, listed(folder), tmp_path / "x.parquet").bad
    assert sum(predict_folder(model, listed(folder), tmp_path / "x.csv").counts.values()) == 5
    assert name in [row["file_name"] for row in rows(tmp_path / "x.csv")]
