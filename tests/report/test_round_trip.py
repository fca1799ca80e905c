"""Whatever debiaspl writes as predictions, its audit reads."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.deploy.tables import TABLES, Prediction, TableSettings
from debiaspl.predictions import Names, PredictionsError, read_predictions
from debiaspl.report.audit import audit
from tests.report.made import made

DATA = made(60, 4)
CLASSES = ("a,b", 'say "hi"', "鷺", "3")
ENDINGS = {"csv": "csv", "jsonl": "jsonl", "parquet": "parquet", "label-studio": "json"}


def written(folder, format_name: str, probabilities: bool):
    if format_name == "parquet":
        pytest.importorskip("pyarrow")
    path = folder / f"p.{ENDINGS[format_name]}"
    rows = [
        Prediction(name, CLASSES[label], float(sure), tuple(map(float, each)) if probabilities else None)
        for name, label, sure, each in zip(DATA.names, DATA.label, DATA.confidence, DATA.probabilities, strict=True)
    ]
    with path.open("wb") as file:
        TABLES[format_name](file, TableSettings(CLASSES, probabilities), [rows])
    return path


@pytest.mark.parametrize("format_name", TABLES)
@pytest.mark.parametrize("probabilities", [False, True], ids=["labels", "probabilities"])
def test_every_format_of_predict_is_read(tmp_path, format_name, probabilities):
    found = read_predictions(written(tmp_path, format_name, probabilities), classes=CLASSES)
    assert [found.classes[label] for label in found.label] == [CLASSES[label] for label in DATA.label]
    assert found.file_names == tuple(DATA.names)
    assert found.confidence == pytest.approx(DATA.confidence, abs=1e-6)
    assert (found.scores is not None) is (probabilities and format_name != "label-studio")
    if found.scores is not None:
        np.testing.assert_allclose(found.scores.values, DATA.probabilities, atol=1e-6)
        assert audit(found).change is not None


def test_classes_of_lines_come_from_the_names_in_them(tmp_path):
    assert read_predictions(written(tmp_path, "jsonl", True)).classes == CLASSES


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lines_of_other_programs(tmp_path):
    rows = [{"y": 1, "logits": [0.1, 2], "target": 1.0}, {"y": 0, "logits": [3, 0.5], "target": None}]
    found = read_predictions(lines(tmp_path / "p.ndjson", *rows), Names(label="y", truth="target"))
    assert found.label.tolist() == [1, 0]
    assert found.truth is not None
    assert found.truth.tolist() == [1, -1]
    assert found.scores is not None
    assert found.scores.are_logits
    rows = [{"logit:b": 1, "logit:a": 0, "emb": [1.0, 0.0]}, {"logit:a": 2, "logit:b": 1, "emb": [0.0, 1.0]}]
    found = read_predictions(lines(tmp_path / "p.jsonl", *rows), Names(embeddings="emb"))
    assert found.classes == ("b", "a")
    assert found.label.tolist() == [0, 1]
    assert found.embeddings is not None
    assert found.embeddings.tolist() == [[1, 0], [0, 1]]
    late = lines(tmp_path / "late.jsonl", {"label": "a"}, {"label": "b", "truth": "b"})
    assert read_predictions(late).truth.tolist() == [-1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "lesson"),
    [
        ("", "is empty, expected one prediction per line"),
        ("\n\n", "is empty"),
        ('{"label": "a"}\n{"lab', "line 2 of .* is not JSON"),
        ("[" * 200_000, "line 1 of .* is not JSON"),
        ("[1]\n", "line 1 of .* is not an object"),
        (
            '{"label": "a", "probabilities": {"a": 1, "b": 0}}\n{"label": "a"}\n',
            "row 2 lacks the probabilities",
        ),
        ('{"logits": [1, 2]}\n{"logits": [1, 2, 3]}\n', "row 2 lacks the logits that row 1 has, expected 2"),
        ('{"logits": [1, "x"]}\n', "row 1 has 'x' for '1' in its logits, expected a number"),
        ('{"label": "a", "scores": [1, 2]}\n', "a list in 'scores'.*--probabilities scores or --logits scores"),
        ('{"label": "a"}\n{"label": null}\n', "there is no label in row 2"),
    ],
)
def test_lines_that_are_refused(tmp_path, text, lesson):
    (tmp_path / "p.jsonl").write_text(text)
    with pytest.raises(PredictionsError, match=lesson):
        read_predictions(tmp_path / "p.jsonl")


def test_choices_of_people_are_the_truth_of_tasks(tmp_path):
    path = written(tmp_path, "label-studio", False)
    tasks = json.loads(path.read_text())
    tasks[0]["annotations"] = [{"result": [{"type": "choices", "value": {"choices": [CLASSES[2]]}}]}]
    path.write_text(json.dumps(tasks))
    found = read_predictions(path, classes=CLASSES)
    assert found.truth is not None
    assert found.truth.tolist() == [2] + [-1] * 59
    for text, lesson in (
        ("{", "cannot be read as JSON"),
        ("{}", "no Label Studio tasks"),
        ("[]", "has no tasks, expected one per image"),
        ("[" * 200_000, "cannot be read as JSON"),
        ('[{"data": {}, "predictions": [{"result": [{"value": null}]}]}]', "task 1 of .* no pred"),
        (
            '[{"data": {}, "predictions": [{"result": [{"value": []}, 3, null]}, {"result": 5}]}]',
            "task 1 of .* no pred",
        ),
        ('[{"data": {}}]', "task 1 of .* no pred"),
    ):
        path.write_text(text)
        with pytest.raises(PredictionsError, match=lesson):
            read_predictions(path)


def test_a_task_without_a_score_takes_the_confidence_alone(tmp_path):
    path = written(tmp_path, "label-studio", False)
    tasks = json.loads(path.read_text())
    assert read_predictions(path).confidence is not None
    del tasks[3]["predictions"][0]["score"]
    path.write_text(json.dumps(tasks))
    found = read_predictions(path)
    assert found.confidence is None
    assert len(found) == 60


def test_what_a_person_has_cancelled_is_no_truth(tmp_path):
    path = written(tmp_path, "label-studio", False)
    tasks = json.loads(path.read_text())
    chosen = [{"result": [{"type": "choices", "value": {"choices": [name]}}]} for name in CLASSES[:2]]
    tasks[0]["annotations"] = [chosen[0] | {"was_cancelled": True}]
    tasks[1]["annotations"] = [chosen[0] | {"was_cancelled": True}, chosen[1] | {"was_cancelled": False}]
    path.write_text(json.dumps(tasks))
    found = read_predictions(path, classes=CLASSES)
    assert found.truth is not None
    assert found.truth[:3].tolist() == [-1, 1, -1]


def test_what_the_audit_itself_prints_is_told_from_predictions(tmp_path):
    source = written(tmp_path, "csv", True)
    said = CliRunner().invoke(app, ["audit", str(source), "--json"])
    numbers = json.loads(said.stdout)
    assert [set(one) for one in numbers["findings"]] == [{"fact", "todo", "chance"}] * 3
    (tmp_path / "a.json").write_text(said.stdout)
    again = CliRunner().invoke(app, ["audit", str(tmp_path / "a.json")])
    assert again.exit_code == 1
    assert "contains the results of an audit" in again.stderr
    assert str(source) in again.stderr
