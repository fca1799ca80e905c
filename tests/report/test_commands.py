"""``debiaspl audit``, ``report`` and ``train`` as a user types them."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.reference.shares import total_variation
from tests.report import slow
from tests.report.made import HOSTILE, made, write_csv, write_npz
from tests.typed import debiaspl, done, refused

DATA = made(200, 5)


def test_audit_prints_numbers_a_table_and_three_findings(tmp_path):
    said = done("audit", write_npz(tmp_path / "p.npz", DATA))
    counts = slow.counts(DATA.label.tolist(), 5)
    off = total_variation(counts, slow.counts(DATA.truth.tolist(), 5))
    assert f"200 predictions of 5 classes; {100 * float(off):.1f} % off the true shares" in said
    lines = said.splitlines()
    for number, count in enumerate(counts):
        row = next(line for line in lines if line.startswith(f"class {number} "))
        assert row.split()[2] == str(count)
    assert [line[0] for line in lines if line[:2] in ("1.", "2.", "3.")] == ["1", "2", "3"]


def test_classes_that_were_never_predicted_can_be_named(tmp_path):
    path = write_csv(tmp_path / "p.csv", {"label": ["a", "b", "a"]})
    numbers = json.loads(debiaspl("audit", path, "--classes", "a,b,c", "--json").stdout)
    assert not {"precision", "recall", "confusion"} & set(numbers)
    assert numbers["never_predicted"] == ["c"]
    assert numbers["counts"] == {"a": 2, "b": 1, "c": 0}
    assert numbers["imbalance_ratio"] is None
    assert (numbers["distance"], numbers["almost_none"]) == (pytest.approx(1 / 3), 1)


def test_many_classes_are_shortened_in_the_terminal(tmp_path):
    said = debiaspl("audit", write_npz(tmp_path / "p.npz", made(300, 40)))
    assert "(28 more)" in said.stdout
    assert len(said.stdout.splitlines()) < 40


def test_the_page_has_pictures_of_images_at_hand(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for row, name in enumerate(DATA.names[:150]):
        Image.new("RGB", (90, 60), (row, 40, 90)).save(photos / name)
    (photos / DATA.names[150]).write_text("no image")
    Image.new("RGB", (9, 9)).save(tmp_path / "outside.png")
    names = np.array(DATA.names)
    names[int(np.argmin(DATA.confidence))] = "../outside.png"
    path = write_npz(tmp_path / "p.npz", DATA, file_name=names)
    done("audit", path, "--images", photos, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    values = json.loads(page.partition('id="values">')[2].partition("</script>")[0])
    assert len(values["pictures"]) > 20
    assert set(values["pictures"]) <= set(DATA.names[:150])
    assert all(uri.startswith("data:image/webp;base64,") for uri in values["pictures"].values())
    assert "../outside.png" not in values["pictures"]
    wrong = refused("audit", path, "--images", tmp_path / "none", "--out", tmp_path / "other.html")
    assert "expected the folder" in wrong


def test_a_run_is_audited(runs, tmp_path):
    said = done("audit", runs / "fixmatch-seed0", "--out", tmp_path / "page.html")
    assert "500 predictions of 10 classes" in said
    page = (tmp_path / "page.html").read_text()
    values = json.loads(page.partition('id="values">')[2].partition("</script>")[0])
    results = json.loads((runs / "fixmatch-seed0" / "results.json").read_text())
    assert values["facts"]["accuracy"] == results["accuracy"]
    assert "cannot be computed from labels alone" in page


def test_report_of_a_run_of_runs_and_of_a_folder_of_runs(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two, every = [runs / "debiaspl-seed0"], [runs / "fixmatch-seed0"], [runs, "--out", "all.html"]
    for typed, page in ((one, one[0] / "report.html"), ([*two, *one], "report.html"), (every, "all.html")):
        assert debiaspl("report", *typed).stdout.strip() == f"The report is {page}"
        assert (tmp_path / page).exists()
    assert "is not a run of debiaspl and holds no runs" in refused("report", tmp_path)


def test_untrusted_names_stay_inside_the_values(tmp_path):
    data = made(60, 3)
    names = np.array([HOSTILE, "</script><script>alert(1)</script>", "<!--"])
    write_npz(tmp_path / "p.npz", data, classes=names, file_name=np.array(["</script><b>"] * 60))
    done("audit", tmp_path / "p.npz", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "onerror" in page
    assert "<img" not in page
    assert "<!--" not in page.partition("</title>")[2]


def test_bad_input_is_a_message_and_no_page(tmp_path):
    said = refused("audit", write_csv(tmp_path / "p.csv", {"label": []}), "--out", tmp_path / "page.html")
    assert said.startswith("error: ")
    assert [item.name for item in tmp_path.iterdir()] == ["p.csv"]
