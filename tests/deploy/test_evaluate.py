"""``debiaspl evaluate``: numbers against plain counting."""

import csv
import json
import shutil

import numpy as np
import pytest

from debiaspl._measures import Cells
from debiaspl.deploy.labeled import trained_with
from debiaspl.deploy.tables import Prediction
from debiaspl.report import evaluation
from debiaspl.report.photo_pages import sheet_page
from debiaspl.training import Choice, Recipe, Run
from tests.report.chromium import Chromium, needs_chromium
from tests.typed import done, refused, rows_of


@pytest.fixture
def truth(photos, tmp_path):
    """Three of china, one of them labelled wrongly, and one of flower; and a file that is gone."""
    table = tmp_path / "truth.csv"
    rows = [("china/0000.jpg", "china"), ("china/0001.jpg", "china"), ("china/0002.jpg", "flower")]
    rows += [("flower/0003.jpg", "flower"), ("gone.jpg", "china")]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("file_name", "label"), *rows])
    return table


def test_numbers_are_those_of_plain_counting(run, model, photos, truth, tmp_path):
    out = tmp_path / "numbers.json"
    ran = done("evaluate", run, photos, "--labels", truth, "--out", out)
    true = {row["file_name"]: row["label"] for row in rows_of(truth) if row["file_name"] != "gone.jpg"}
    found = dict(zip(true, model.predict([photos / name for name in true]), strict=True))
    right = sum(found[name] == true[name] for name in true)
    recall = {one: [found[name] == one for name in true if true[name] == one] for one in model.classes}
    shares = {one: sum(hits) / len(hits) for one, hits in recall.items()}
    told = json.loads(out.read_text())
    assert (told["images"], told["right"], told["absent"], told["without_label"]) == (4, right, 1, 20)
    assert told["accuracy"] == right / 4
    assert told["macro_recall"] == pytest.approx(sum(shares.values()) / 2)
    assert told["worst_class"] == min(shares, key=shares.__getitem__)
    assert {name: one["recall"] for name, one in told["classes"].items()} == shares
    wrong = sum(one["images"] for one in told["mistakes"])
    assert wrong == 4 - right
    said = ran.splitlines()
    assert said[0].split()[:4] == ["class", "right", "of", "recall"]
    assert f"accuracy {25 * right:.1f} % ({right} of 4; 95 % interval " in ran
    assert "1 photos of the table do not exist." in ran
    assert told["trained_with_left_out"] is None  # this run has recorded no names
    assert "warning: it is not known which photos the run was trained with." in ran
    assert f"All numbers are in {out}" in ran


def test_class_folders_are_truth_and_what_was_trained_with_is_left_out(run, model, photos, monkeypatch):
    found = evaluation.evaluate_folder(model, run, photos)
    assert (found.cells.images, found.trained_with, found.without_label) == (24, None, 0)
    monkeypatch.setattr(evaluation, "trained_with", lambda run, photos, files: {"china/0000.jpg", "flower/0001.jpg"})
    fewer = evaluation.evaluate_folder(model, run, photos)
    assert (fewer.cells.images, fewer.trained_with) == (22, 2)
    assert evaluation.evaluate_folder(model, run, photos, every=True).cells.images == 24
    every = {path.relative_to(photos).as_posix() for path in photos.rglob("*.jpg")}
    monkeypatch.setattr(evaluation, "trained_with", lambda run, photos, files: every)
    with pytest.raises(ValueError, match=r"all 24 photos .*--every"):
        evaluation.evaluate_folder(model, run, photos)


def test_what_a_run_has_learned_from_is_what_it_recorded(run, photos, tmp_path):
    own = shutil.copytree(photos, tmp_path / "photos")
    files = sorted(path.relative_to(own).as_posix() for path in own.rglob("*.jpg"))
    table = tmp_path / "labels.csv"
    table.write_text("file_name,label\nchina/0000.jpg,china\nflower/0000.jpg,flower\nchina/0005.jpg,china\n")
    ended = tmp_path / "run"
    with Run(ended).begin(Recipe(name="own", data=str(own), protocol=Choice("given", {"table": str(table)}))):
        pass
    assert trained_with(ended, own, files) is None
    results, names = json.loads((run / "results.json").read_text()), {"china/0000.jpg", "flower/0000.jpg"}

    def recorded(learned_from):
        (ended / "results.json").write_text(json.dumps({**results, "learned_from": learned_from}))
        return trained_with(ended, own, files)

    for damaged in ("china/0000.jpg", [1], {"a": "b"}):
        assert recorded(damaged) is None
    assert recorded(sorted(names)) == names  # though the table has more today
    table.unlink()
    assert trained_with(ended, own, files) == names
    copy = tmp_path / "copy"
    copy.mkdir()
    for number, name in enumerate([*files[:3], "flower/0000.jpg"]):
        shutil.copy(own / name, copy / f"{number}.jpg")
    assert trained_with(ended, copy, [f"{number}.jpg" for number in range(4)]) == {"0.jpg", "3.jpg"}
    assert recorded(["../labels.csv"]) == set()
    assert trained_with(ended, copy, ["0.jpg"]) is None
    recorded(sorted(names))
    moved = own.rename(tmp_path / "moved")
    assert trained_with(ended, moved, files) == names
    assert trained_with(ended, copy, ["0.jpg"]) is None


def test_one_photo(run, model, photos, tmp_path):
    photo = photos / "china" / "0000.jpg"
    label = model.predict([photo])[0]
    assert done("predict", run, photo).startswith(f"{photo}: {label} ")
    done("predict", run, photo, "--out", tmp_path / "one.csv")
    assert (tmp_path / "one.csv").read_text().splitlines()[1].startswith(f"0000.jpg,{label},")
    said = refused("predict", run, photos)
    assert "is not a single photo. Say where to write the predictions: --out predicted.csv." in said
    said = refused("predict", run, photos / "none.jpg", "--out", tmp_path / "two.csv")
    assert "none.jpg does not exist" in said


def test_options_that_would_do_nothing_and_two_outputs_with_one_name_are_refused(run, photos, tmp_path):
    photo, page = photos / "china" / "0000.jpg", tmp_path / "p.html"
    ran = refused("predict", run, photo, "--page", page, "--probabilities")
    assert "leave out --page and --probabilities" in ran
    assert not page.exists()
    (tmp_path / "sub").mkdir()
    same = tmp_path / "sub" / ".." / "new.csv"
    ran = refused("predict", run, photos, "--out", tmp_path / "new.csv", "--skipped", same)
    assert "--out and --skipped are the same file" in ran
    assert not (tmp_path / "new.csv").exists()


def test_predict_takes_files(model, photos, tmp_path):
    files = [str(photos / "china" / "0000.jpg"), photos / "flower" / "0000.jpg"]
    singly = [model.classes[int(model.probabilities(model.read(file)[None]).argmax())] for file in files]
    assert model.predict(files) == model.predict(np.array(list(map(str, files)))) == model.predict(np.array(files))
    assert model.predict(files) == singly
    (tmp_path / "bad.jpg").write_bytes(b"no photo")
    with pytest.raises(ValueError, match=r"bad\.jpg \(its content is not JPEG.*\. Leave these"):
        model.predict([*files, tmp_path / "bad.jpg"])
    with pytest.raises(ValueError, match=r"images is the path a\.jpg, expected a list of files"):
        model.predict("a.jpg")


def test_the_sheet_has_pictures_of_every_class(run, photos, tmp_path):
    page = tmp_path / "sheet.html"
    ran = done("predict", run, photos, "--out", tmp_path / "labels.csv", "--page", page)
    assert f"The page is {page}" in ran
    assert page.read_text().count("data:image/webp;base64,") == 24
    never = sheet_page([Prediction("china/0000.jpg", "china", 0.9)], ("china", "owl"), run, photos)
    assert '{"name":"owl","count":0,"confidence":null,"shown":[]}' in never
    again = refused("predict", run, photos, "--out", tmp_path / "2.csv", "--page", page)
    assert "exists already. Use --overwrite to replace it" in again


@pytest.mark.slow
@needs_chromium
def test_the_sheet_in_a_browser(run, photos, tmp_path):
    odd = shutil.copytree(photos, tmp_path / "<b>&photos")
    page_at = tmp_path / "sheet.html"
    done("predict", run, odd, "--out", tmp_path / "labels.csv", "--page", page_at)
    with Chromium() as browser:
        page = browser.page(page_at.as_uri())
        assert page.evaluate("[...document.images].filter(one => one.complete && one.naturalWidth == 96).length") == 24
        assert page.evaluate("document.querySelector('h1').textContent") == "24 predictions"
        assert page.evaluate("document.querySelector('header code').textContent") == str(odd)
        assert page.errors() == []
        assert set(page.requests()) <= {page_at.as_uri()}


def test_of_a_thousand_classes_the_worst_are_shown():
    names = tuple(f"c{number}" for number in range(1000))
    truth = np.repeat(np.arange(1000), 10)
    right = np.arange(10_000) % 10 < np.arange(10_000) // 10 % 11  # 0 to 10 of each class
    cells = Cells.of(truth, np.where(right, truth, 0), 1000)
    rows = evaluation.FolderEvaluation(names, cells, 0, 0, 0, {}).rows()
    assert [row[1] for row in rows] == ["0"] * 20
