"""``debiaspl train PHOTOS --method moco``: features without labels, of folders of every kind."""

from debiaspl.training import Run
from tests.photos.digits import write_digits
from tests.photos.starts import SHORT, pretrain, same
from tests.training.tiny import stop_at
from tests.typed import debiaspl, done, results_of

MOCO = "--method", "moco", "--device", "cpu", *SHORT


def test_a_flat_folder_without_labels(flat, start):
    out, said = start
    assert said[:2] == ["60 images without labels.", "A small network, at 8 x 8 pixels, moco, 8 steps of 30 images."]
    assert said[-2:] == [
        f"  debiaspl label {flat} --classes 'NAME,OTHER NAME'",
        f"  debiaspl train {flat} --device cpu --set start={out}",
    ]
    measured = results_of(out)
    assert (measured["labels"], measured["unlabeled"], measured["test"]) == ([], 60, 0)
    assert "accuracy" not in measured
    assert not (out / "predictions.csv").exists()


def test_sub_folders_need_not_be_classes(tmp_path):
    photos = write_digits(tmp_path / "photos", 30)
    write_digits(photos / "2019" / "june", 20)
    (photos / "2020").mkdir()  # empty: no class could have this name
    assert pretrain(photos, tmp_path / "start")[0] == "50 images without labels."


def test_labels_only_measure_the_features(tmp_path):
    """Without them, the features are the same bits."""
    photos = write_digits(tmp_path / "photos", labeled=20, folders="unlabeled")
    said = pretrain(photos, tmp_path / "start")
    assert said[0].startswith("60 images, 20 labels, 2 classes; ")
    assert "--folders ignore" in said[1]
    measured = results_of(tmp_path / "start")
    assert measured["unlabeled"] == 60  # labeled ones are learned from too, without their labels
    assert sum(measured["labels"]) + measured["test"] == 20
    assert any(f"{100 * measured['accuracy']:.1f} % of {measured['test']} held-out labels" in line for line in said)
    assert said[-1] == f"  debiaspl train {photos} --device cpu --set start={tmp_path / 'start'}"
    assert pretrain(photos, tmp_path / "plain", "--folders", "ignore")[0] == "60 images without labels."
    assert "accuracy" not in results_of(tmp_path / "plain")
    assert same(tmp_path / "start", tmp_path / "plain")


def test_a_table_may_have_one_label_of_each_class_or_none(tmp_path):
    photos = write_digits(tmp_path / "photos", labeled=12)
    (photos / "labels.csv").write_text("file_name,label\n000.png,even\n001.png,odd\n")
    assert any("cannot be measured" in line for line in pretrain(photos, tmp_path / "single"))
    for number, rows in enumerate(("", "000.png,\n", "000.png,even\n")):
        (photos / "labels.csv").write_text(f"file_name,label\n{rows}")
        assert pretrain(photos, tmp_path / f"none{number}")[0] == "60 images without labels."
    (photos / "labels.csv").write_text("file_name,label\ngone.png,even\n")
    assert "gone.png" in debiaspl("train", photos, *MOCO, "--out", tmp_path / "bad").output
    assert not (tmp_path / "bad").exists()


def test_photos_that_cannot_be_read_are_left_out(tmp_path):
    photos = write_digits(tmp_path / "photos", 30)
    (photos / "007.png").write_bytes(b"damaged")
    pretrain(photos, tmp_path / "start")
    assert results_of(tmp_path / "start")["unlabeled"] == 29
    pretrain(photos, tmp_path / "streamed", "--set", "stream=true", "--workers", 0)
    assert results_of(tmp_path / "streamed")["skipped"] == ["007.png"]


def test_a_stopped_start_is_resumed_to_the_same_bits_also_where_photos_were_labeled_meanwhile(
    start, tmp_path, monkeypatch
):
    photos = write_digits(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    stop_at(monkeypatch, 5)
    assert "stopped for the test" in debiaspl("train", photos, *MOCO).output
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (photos / "labels.csv").write_text("file_name,label\n000.png,even\n001.png,odd\n")
    run = tmp_path / "runs" / "photos-pretrain"
    said = pretrain(photos, run, "--resume")
    assert said[:2] == ["60 images without labels.", f"Resuming {run}."]
    assert same(run, start[0])
    losses = [[record["losses"] for record in Run(folder).log()] for folder in (run, start[0])]
    assert losses[0] == losses[1]
    weights = (run / "model.safetensors").stat().st_mtime_ns
    pretrain(photos, run, "--resume")  # has ended
    assert (run / "model.safetensors").stat().st_mtime_ns == weights


def test_another_method_learns_features_too(flat, tmp_path):
    assert "simclr" in done("train", flat, "--method", "simclr", "--device", "cpu", *SHORT, "--out", tmp_path / "run")
