"""The page of a run on photos: its numbers are those of the run, and it works in a browser."""

import json
import struct
from importlib.resources import files

import numpy as np
import pytest
from PIL import Image

from debiaspl._measures import wilson
from debiaspl.deploy.labeled import TEACHER
from debiaspl.report.runs import read_run, runs_page, write_report
from debiaspl.report.runs.photos import photo_values
from tests.report.chromium import needs_chromium
from tests.report.made import HOSTILE
from tests.report.test_fairness import made as ended
from tests.typed import done

CLASSES = ["daisy", "petunia", "rose"]
CONFUSION = [[18, 1, 1], [0, 9, 1], [2, 2, 6]]
LABELS_ONLY = [[15, 3, 2], [2, 7, 1], [4, 2, 4]]


def photos(folder):
    """Pictures of three colours."""
    folder.mkdir()
    for number in range(60):
        colour = ((255, 0, 0), (0, 160, 0), (30, 30, 255))[number % 3]
        Image.new("RGB", (120, 90), colour).save(folder / f"{number}.png")
    return folder


def photo_run(folder, used=1, **more):
    """A run on sixty photos, of which forty had a label; the first is the one that is least sure."""
    candidates = [
        {"name": name, "confusion": confusion, "chosen": number == used}
        for number, (name, confusion) in enumerate([("supervised", LABELS_ONLY), ("debiaspl", CONFUSION)])
    ]
    check = {"kind": "cross-check", "folds": 3, "labels": 40, "candidates": candidates, "mistakes": [["59.png", 2, 0]]}
    results = {
        "test": 40,
        "accuracy": 33 / 40,
        "confusion": CONFUSION,
        "recall": [0.9, 0.9, 0.6],
        "labels": [20, 10, 10],
        "learned_from": [f"{number}.png" for number in range(20, 60)],
        "check": check | more,
    }
    ended(folder, **results)
    header = json.dumps({"__metadata__": {"debiaspl": json.dumps({"classes": CLASSES})}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    random = np.random.default_rng(0)
    rows = [f"{n}.png,{CLASSES[n % 3]},{0.4 + 0.5 * (n > 0) * random.random():.6f}," for n in range(60)]
    (folder / "predictions.csv").write_text("\n".join(["file_name,label,confidence,truth", *rows]) + "\n")
    return folder


def test_numbers_of_the_page_are_those_of_the_run(tmp_path):
    run = photo_run(tmp_path / "flowers")
    values = photo_values(read_run(run), CLASSES)
    assert (values["name"], values["photos"], values["labels"]) == ("flowers", 60, 40)
    first, last = values["models"]
    assert (first["right"], last["right"], last["checked"]) == (26, 33, 40)
    assert last["interval"] == wilson(33, 40)
    assert (first["used"], last["used"]) == (False, True)
    assert values["recall"] == pytest.approx((18 / 20 + 9 / 10 + 6 / 10) / 3, rel=1e-5)
    rose = values["classes"][2]
    assert rose == {"name": "rose", "labels": 10, "right": 6, "checked": 10, "photos": 20, "taken_for": "daisy"}
    assert values["mistakes"] == [{"name": "59.png", "predicted": "daisy", "label": "rose"}]
    assert values["unsure"][0] == {"name": "0.png", "predicted": "daisy", "confidence": 0.4}
    assert {one["name"] for one in values["unsure"]} == {f"{number}.png" for number in range(20)}, "without a label"
    assert values["next"][0] == "rose"
    assert values["commands"]["label"].endswith(f"--run {run}")


def test_more_labels_are_asked_for_classes_with_mistakes_and_copies_come_before_other_doubts(tmp_path):
    run = photo_run(tmp_path / "run", candidates=None)
    results = json.loads((run / "results.json").read_text()) | {"confusion": [[20, 0, 0], [0, 10, 0], [1, 0, 9]]}
    (run / "results.json").write_text(json.dumps(results))
    assert photo_values(read_run(run), CLASSES)["next"] == ["rose"]
    copies = [["57.png", 0, 1], ["59.png", 2, 1]]
    values = photo_values(read_run(photo_run(tmp_path / "copies", copies=copies)), CLASSES)
    shown = [(one["name"], one["label"], one["predicted"], "copy" in one) for one in values["mistakes"]]
    assert shown == [("57.png", "daisy", "petunia", True), ("59.png", "rose", "petunia", True)]


@pytest.mark.parametrize("kind", ["none", "teacher"])
def test_labels_that_it_has_learned_from_say_nothing_of_other_photos(tmp_path, kind):
    run = photo_run(tmp_path / "run", kind=kind)
    values = photo_values(read_run(run), CLASSES)
    assert (values["checked"]["known"], values["next"], values["evaluated"]) == (False, [], {})
    results = json.loads((run / "results.json").read_text())
    for accuracy, found in ((0.75, {"right": 15, "checked": 20, "interval": wilson(15, 20)}), ("x", {}), (1e300, {})):
        methods = {"ConSE alone": {"accuracy": accuracy, "evaluated": 20}}
        zeroshot = {"handed out": "ConSE alone", "why": "it is so", "methods": methods}
        (run / "results.json").write_text(json.dumps(results | {"zeroshot": zeroshot}))
        values = photo_values(read_run(run), CLASSES)
        assert values["evaluated"] == found
        assert (values["models"][1]["name"], values["why"]) == ("ConSE alone", "Used because it is so.")


def test_further_labels_go_where_the_others_are(tmp_path):
    run = photo_run(tmp_path / "flowers")
    config = json.loads((run / "config.json").read_text())
    given = {"table": "my labels.csv", "file_column": "photo", "label_column": ""}
    config["recipe"]["protocol"] = {"name": "given", "settings": given}
    (run / "config.json").write_text(json.dumps(config))
    commands = photo_values(read_run(run), CLASSES)["commands"]
    assert commands["predict"].endswith(" PHOTOS --out predicted.csv"), "a folder needs a table"
    assert commands["label"].endswith(f"--run {run} --out 'my labels.csv' --column file=photo")
    config["recipe"]["protocol"]["settings"] = {"table": str(run / "labels.csv")}
    (run / "config.json").write_text(json.dumps(config))
    results = json.loads((run / "results.json").read_text())
    (run / "results.json").write_text(json.dumps({**results, "check": {**results["check"], "kind": TEACHER}}))
    assert photo_values(read_run(run), CLASSES)["commands"]["label"].endswith(f"--run {run}"), "a teacher's labels"


def test_the_model_in_use_is_named_with_its_reason(tmp_path):
    values = photo_values(read_run(photo_run(tmp_path / "run", used=0)), CLASSES)
    assert [model["used"] for model in values["models"]] == [True, False]
    assert "26 of 40" in values["why"]
    assert "many sets" not in photo_values(read_run(photo_run(tmp_path / "network")), CLASSES)["why"], "no encoder"
    assert values["classes"][2]["right"] == 4


def test_models_that_are_runs_of_their_own_are_found(tmp_path):
    run = photo_run(tmp_path / "run", candidates=None)
    ended(run / "supervised", "algorithm=supervised", confusion=LABELS_ONLY, recall=[0.7] * 3, check={"kind": "fold"})
    (run / "chosen.json").write_text('{"folder": "supervised"}')
    values = photo_values(read_run(run), CLASSES)
    assert [(model["right"], model["used"]) for model in values["models"]] == [(26, True), (33, False)]


def test_equally_many_labels_of_uneven_photos_are_noted(tmp_path):
    run = photo_run(tmp_path / "run")
    results = json.loads((run / "results.json").read_text()) | {"labels": [10, 10, 10]}
    (run / "results.json").write_text(json.dumps(results))
    assert photo_values(read_run(run), CLASSES)["checked"]["note"] == ""
    rows = ["file_name,label,confidence,truth", *(f"{n}.png,{CLASSES[n % 11 == 0]},0.9," for n in range(60))]
    (run / "predictions.csv").write_text("\n".join(rows))
    assert "other class shares" in photo_values(read_run(run), CLASSES)["checked"]["note"]
    results |= {"shares": {**SHARES, "estimate": [0.4, 0.3, 0.3]}}  # which are not those of the predictions
    (run / "results.json").write_text(json.dumps(results))
    assert photo_values(read_run(run), CLASSES)["checked"]["note"] == ""


SHARES = {"estimate": [0.7, 0.2, 0.1], "low": [0.6, 0.1, 0.05], "high": [0.8, 0.3, 0.15], "labels": [0.5, 0.25, 0.25]}


def with_shares(folder, shares):
    run = photo_run(folder)
    results = json.loads((run / "results.json").read_text()) | {"shares": shares, "unlabeled": 20}
    (run / "results.json").write_text(json.dumps(results))
    return photo_values(read_run(run), CLASSES)


def test_estimated_shares_are_shown_beside_those_of_the_labels(tmp_path):
    values = with_shares(tmp_path / "run", SHARES)
    assert values["classes"][0]["shares"] == {name: shares[0] for name, shares in SHARES.items()}
    assert "daisy is 50 % of your labels, but about 70 %" in values["unlike_labels"]
    assert "about 87 % of all photos are right" in values["checked"]["note"], "as the terminal says"
    alike = with_shares(tmp_path / "alike", SHARES | {"labels": SHARES["estimate"]})
    assert alike["unlike_labels"] == ""


@pytest.mark.parametrize("wrong", [None, [0.5, 0.5], [0.5, 0.5, "0"], [0.5, 0.5, -1], [0, 0, 0], [0.5, 0.5, None]])
def test_damaged_shares_are_left_out(tmp_path, wrong):
    values = with_shares(tmp_path / "run", SHARES | {"estimate": wrong})
    assert values["unlike_labels"] == ""
    assert "shares" not in values["classes"][0]


@pytest.mark.parametrize("text", ["", "file_name,label\nx,y\n", "file_name,label,confidence\nx,y,z\n", "a\n\x00"])
def test_damaged_predictions_are_left_out(tmp_path, text):
    run = photo_run(tmp_path / "run", mistakes=[["a", 99, 0], "b", ["c", "d", 1]], candidates=[{"confusion": [[1]]}])
    (run / "predictions.csv").write_text(text)
    values = photo_values(read_run(run), CLASSES)
    assert (values["unsure"], values["mistakes"]) == ([], [])
    assert len(values["models"]) == 1


def test_pictures_come_only_from_the_folder_that_is_named(tmp_path):
    run = photo_run(tmp_path / "run", mistakes=[["../secret.png", 2, 0], [HOSTILE, 0, 1]])
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    page = runs_page([read_run(run)])
    assert "data:image/webp" not in page
    page = write_report([run], tmp_path / "page.html", photos(tmp_path / "photos")).read_text()
    values = json.loads(page.partition('id="values">')[2].partition("</script>")[0])
    assert "0.png" in values["pictures"]
    assert "../secret.png" not in values["pictures"]
    assert page.count("<script") == 2
    assert "--images" in done("report", run), "a page without photos may replace that of the run, with them"
    assert "--images" not in done("report", run, "--images", tmp_path / "photos")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(chromium, tmp_path, width):
    run = photo_run(tmp_path / "flowers", mistakes=[[HOSTILE, 2, 0], ["59.png", 2, 0]])
    out = write_report([run], tmp_path / "page.html", photos(tmp_path / "photos"))
    page = chromium.page(out.as_uri(), width=width)
    text = page.evaluate("document.body.innerText")
    assert "33 of 40 checked labels" in text
    assert "82 %" in text, "not 83 %: 82.5 is rounded as on the terminal"
    numbers = [[100 * number / 80, digits] for number in range(-80, 81) for digits in range(3)]
    kit = files("debiaspl.report.pages").joinpath("kit.js").read_text()
    rounded = page.evaluate(f"(() => {{ {kit}\n return {numbers}.map((one) => fixed(...one)); }})()")
    assert rounded == [f"{value:.{digits}f}" for value, digits in numbers]
    assert page.evaluate("document.querySelectorAll('#unsure img').length") == 20
    assert page.evaluate("document.querySelector('#research details').open") is False
    for word in ("pseudo", "seed", "prior", "prediction rate"):
        assert word not in text, "of the researcher's part, which is folded"
    page.evaluate("document.querySelector('#research details').open = true")
    page.wait_for("document.body.innerText.includes('Settings, commands and versions')")
    assert "begun from Python" not in page.evaluate("document.body.innerText"), "of a run by a command"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.errors() == []
    page.close()
