"""Predictions are read from every format alike, and whatever debiaspl writes; bad files are refused."""

import json
import struct
import sys
import zipfile

import numpy as np
import pytest

from debiaspl.deploy.tables import TABLES, Prediction
from debiaspl.predictions import PredictionsError, read as reading, read_predictions
from debiaspl.report.audit import audit
from tests.report.made import made, write_csv, write_npz
from tests.typed import debiaspl, refused

DATA = made(60, 4)
CLASSES = ("a,b", 'say "hi"', "鷺", "3")
FORMATS = ("csv", "jsonl", "parquet")


def wide(data, word="probability:", values=None):
    values = data.probabilities if values is None else values
    return {f"{word}{name}": values[:, place] for place, name in enumerate(data.classes)}


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_labels_alone(tmp_path):
    found = read_predictions(write_csv(tmp_path / "p.csv", {"label": ["b", "a", "b"]}))
    assert found.classes == ("a", "b")
    assert found.label.tolist() == [1, 0, 1]
    assert (found.confidence, found.truth, found.scores) == (None, None, None)
    assert found.name(1) == "row 2"
    columns = {"label": [10, 9, 2], "truth": ["2", "", "-1"]}
    found = read_predictions(write_csv(tmp_path / "p.csv", columns))
    assert (found.classes, found.truth.tolist()) == (("2", "9", "10"), [0, -1, -1])


def test_text_stays_text(tmp_path):
    (tmp_path / "p.csv").write_text('file_name,label\n007,NA\n"a, ""b""",null\n\'=1+1,1e3\n')
    found = read_predictions(tmp_path / "p.csv")
    assert found.classes == ("1e3", "NA", "null")
    assert found.file_names == ("007", 'a, "b"', "=1+1")


def test_all_formats_give_the_same(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'debiaspl[parquet]'")
    import pyarrow as pa

    truth = [DATA.classes[number] for number in DATA.truth]
    columns = {"file_name": DATA.names, **wide(DATA), "truth": truth}
    csv = read_predictions(write_csv(tmp_path / "p.csv", columns))
    npz = read_predictions(write_npz(tmp_path / "p.npz", DATA, logits=None, probabilities=DATA.probabilities))
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    lists = {"probabilities": list(DATA.probabilities), "truth": DATA.truth, "file_name": DATA.names}
    pq.write_table(pa.table(lists), tmp_path / "lists.parquet")
    parquet = read_predictions(tmp_path / "wide.parquet")
    listed = read_predictions(tmp_path / "lists.parquet", classes=DATA.classes)
    for found in (csv, npz, parquet, listed):
        assert list(found.classes) == DATA.classes
        assert found.label.tolist() == DATA.label.tolist()
        assert found.truth.tolist() == DATA.truth.tolist()
        assert found.file_names == tuple(DATA.names)
        np.testing.assert_allclose(found.confidence, DATA.confidence, rtol=1e-5)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("probabilities", [False, True], ids=["labels", "probabilities"])
def test_every_format_of_predict_is_read(tmp_path, format_name, probabilities):
    found = read_predictions(written(tmp_path, format_name, probabilities), classes=CLASSES)
    assert [found.classes[label] for label in found.label] == [CLASSES[label] for label in DATA.label]
    assert found.file_names == tuple(DATA.names)
    assert found.confidence == pytest.approx(DATA.confidence, abs=1e-6)
    assert (found.scores is not None) is probabilities
    if found.scores is not None:
        np.testing.assert_allclose(found.scores.values, DATA.probabilities, atol=1e-6)
        assert audit(found).change is not None


def written(folder, format_name: str, probabilities: bool):
    if format_name == "parquet":
        pytest.importorskip("pyarrow")
    path = folder / f"p.{format_name}"
    rows = [
        Prediction(name, CLASSES[label], float(sure), tuple(map(float, each)) if probabilities else ())
        for name, label, sure, each in zip(DATA.names, DATA.label, DATA.confidence, DATA.probabilities, strict=True)
    ]
    with path.open("wb") as file:
        TABLES[path.suffix](file, CLASSES if probabilities else (), rows)
    return path


def test_lines_of_other_programs(tmp_path, monkeypatch):
    rows = [{"y": 1, "logits": [0.1, 2], "target": 1.0}, {"y": 0, "logits": [3, 0.5], "target": None}]
    found = read_predictions(lines(tmp_path / "p.ndjson", *rows), {"label": "y"})
    assert found.label.tolist() == [1, 0]
    assert found.truth.tolist() == [1, -1]
    assert found.scores.are_logits
    rows = [{"logit:b": 1, "logit:a": 0}, {"logit:a": 2, "logit:b": 1}]
    for most in (reading.PART_NUMBERS, 1):  # in one part, and in a part for each line
        monkeypatch.setattr(reading, "PART_NUMBERS", most)
        found = read_predictions(lines(tmp_path / "p.jsonl", *rows))
        assert found.classes == ("b", "a")
        assert found.label.tolist() == [0, 1]
        late = lines(tmp_path / "late.jsonl", {"label": "a"}, {"label": "b", "truth": "b"})
        assert read_predictions(late).truth.tolist() == [-1, 1]


def test_columns_called_otherwise_can_be_named(tmp_path):
    columns = {"img": DATA.names, "y_hat": DATA.label, "y": DATA.truth, "sure": DATA.confidence}
    path = write_csv(tmp_path / "p.csv", columns)
    found = read_predictions(path, {"label": "y_hat", "truth": "y", "confidence": "sure", "file": "img"})
    assert found.truth.tolist() == DATA.truth.tolist()
    np.testing.assert_allclose(found.confidence, DATA.confidence)
    usual = {"Image": DATA.names, "y_pred": DATA.label, "y_true": DATA.truth, "score": DATA.confidence}
    found = read_predictions(write_csv(tmp_path / "q.csv", usual))
    assert (found.truth.tolist(), found.file_names) == (DATA.truth.tolist(), tuple(DATA.names))
    np.savez(tmp_path / "p.npz", scores=DATA.logits)
    assert read_predictions(tmp_path / "p.npz", {"logits": "scores"}).label.tolist() == DATA.label.tolist()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_columns_that_sum_to_one_are_probabilities_of_the_classes(form, tmp_path):
    names = ["cat", "dog", "fox", "owl"]
    columns = {"path": DATA.names} | dict(zip(names, DATA.probabilities.T.tolist(), strict=True))
    if form == "csv":
        path = write_csv(tmp_path / "p.csv", columns)
    else:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        path = lines(tmp_path / "p.jsonl", *rows)
    found = read_predictions(path)
    assert found.classes == tuple(names)
    np.testing.assert_allclose(found.scores.values, DATA.probabilities, rtol=1e-6)
    labeled = {**columns, "label": ["cow"] * 60}  # a label that is none of these names: other numbers
    assert read_predictions(write_csv(tmp_path / "q.csv", labeled), classes=["cow", "ox"]).scores is None


def test_a_run_folder_knows_classes_that_were_never_predicted(tmp_path):
    write_csv(tmp_path / "predictions.csv", {"label": ["a", "b"], "truth": ["a", "a"]})
    facts = {"__metadata__": {"debiaspl": json.dumps({"classes": ["c", "b", "a"]})}}
    header = json.dumps(facts).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert read_predictions(tmp_path).classes == ("c", "b", "a")
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    assert read_predictions(tmp_path).classes == ("a", "b")


def test_class_numbers_stand_for_places_where_no_class_is_called_so(tmp_path):
    found = read_predictions(write_csv(tmp_path / "p.csv", {"label": [0, 2, 1]}), classes=["x", "y", "z"])
    assert found.label.tolist() == [0, 2, 1]
    np.savez(tmp_path / "p.npz", label=np.array([-1, 1, -1]))
    assert read_predictions(tmp_path / "p.npz", classes=["-1", "1"]).label.tolist() == [0, 1, 0]
    np.savez(tmp_path / "q.npz", label=np.array([0.0, 2.0]), truth=np.array([np.nan, -1.0]))
    found = read_predictions(tmp_path / "q.npz")
    assert (found.classes, found.truth) == (("0", "2"), None)


NAN = DATA.probabilities.copy()
NAN[4, 2] = np.nan

BAD_CSV = {
    "no rows": ({"label": []}, {}, "no rows"),
    "one class": ({"label": ["a", "a"]}, {}, "one class.*--classes"),
    "NaN": (wide(DATA, values=NAN), {}, "probabilities in row 5"),
    "not probabilities": (wide(DATA, values=2 * DATA.probabilities), {}, "in rows 1, 2, 3 and 57 more.*the sum 2"),
    "logits called probabilities": (wide(DATA, values=DATA.logits), {}, "numbers from 0 on.*logit:CLASS"),
    "truth of other names": ({"label": ["a", "b"], "truth": ["1", "2"]}, {}, "no class is in both"),
    "no label": ({"y_hat": ["a", "b"]}, {}, "'y_hat'.*--column label=NAME"),
    "truth called otherwise": ({"label": ["a", "b"], "trueth": ["a", "b"]}, {"truth": "truth"}, "trueth"),
    "no label in a row": ({"label": ["a", "", "b"], "file_name": ["x", "y", "z"]}, {}, "no label in row 2"),
    "confidence in words": ({"label": ["a", "b"], "confidence": ["0.5", "low"]}, {}, "row 2.*'low'"),
    "no confidence in a row": ({"label": ["a", "b", "a"], "confidence": ["0.5", "", " "]}, {}, "rows 2, 3.*''.*Fill"),
    "a single column of scores": ({"probability:a": [1, 0]}, {}, "probability:a"),
    "no such scores": ({"label": ["a", "b"], "p_a": [1, 0], "p_b": [0, 1]}, {"logits": "x_"}, "no logits named 'x_'"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_tables_are_refused(tmp_path, case):
    columns, names, noun = BAD_CSV[case]
    path = write_csv(tmp_path / "p.csv", columns)
    with pytest.raises(PredictionsError, match=noun):
        read_predictions(path, names)


@pytest.mark.parametrize(
    ("name", "text", "noun"),
    [
        ("p.csv", "", "is empty"),
        ("p.csv", "label,label\na,b\n", "same name"),
        ("p.csv", "label,truth\na,b\nb\n", "row 2 of .* has 1 cells, expected 2"),
        ("p.csv", "label,truth\na,b\na,b,c\n", "row 2 of .* has 3 cells, expected 2"),
        ("p.csv", "label;confidence\na;0,5\n", "label;confidence"),
        ("p.csv", "label;file\na;x\n", "label;file.*separate columns by commas"),
        ("p.csv", "logit:a,logit:b\n1,2\n1,x\n", "row 2 has 'x' in column 'logit:b'"),
        ("p.csv", "logit:a,logit:b\n1,2\n1,\n", "row 2 has '' in column 'logit:b'"),
        ("p.jsonl", '{"label": "a"}\n{"lab', "line 2 of .* JSON"),
        ("p.jsonl", "[1]\n", "line 1 of .* object"),
        ("p.jsonl", '{"label": "a", "probabilities": {"a": 1, "b": 0}}\n{"label": "a"}\n', "row 2 lacks"),
        ("p.jsonl", '{"logits": [1, 2]}\n{"logits": [1, 2, 3]}\n', "row 2 lacks"),
        ("p.jsonl", '{"logits": [1, [2, 3]]}\n{"logits": [1, [2]]}\n', "logits contain"),
        ("p.jsonl", '{"logit:a": 1, "logit:b": true}\n', "row 1 has True in column 'logit:b'"),
        ("p.jsonl", '{"label": "a", "scores": [1, 2]}\n', "--column logits=scores"),
        ("p.jsonl", '{"label": "a"}\n{"label": null}\n', "no label in row 2"),
        ("p.parquet", "x", "Parquet"),
        ("p.txt", "x", "ends in '.txt'"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, text, noun):
    (tmp_path / name).write_text(text)
    with pytest.raises(PredictionsError, match=noun):
        read_predictions(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "noun"),
    [
        ({"label": np.array([], int)}, "no rows"),
        ({"probabilities": np.ones((3, 1))}, "1 column"),
        ({"logits": np.array([[np.inf, 0.0]])}, "logits in row 1 .* finite.*leave them out"),
        ({"logits": np.zeros((3, 2), int)}, "floating-point"),
        ({"scores": np.zeros((3, 2))}, "--column probabilities=scores"),
        ({"logits": np.zeros((3, 2)), "truth": np.array([0, 1])}, r"truth 2, logits 3"),
        ({"logits": np.zeros((3, 2)), "classes": np.array(["a"])}, "1 class names and 2 columns"),
        ({"logits": np.zeros((3, 2)), "probabilities": np.full((3, 2), 0.5)}, "one of them"),
        ({"label": np.array([0.2, 1.0, 0.7])}, "rows 1, 3"),
        ({"label": np.array([0, 1]), "truth": np.array([0.5, 1])}, "--column truth="),
        ({"label": np.array([0, 1]), "truth": np.array([-2, -1])}, "truth in row 1 is no class number"),
        ({"label": np.array([0.0, np.nan, 1.0])}, "no label in row 2"),
        ({"label": np.array([{"a": 1}], object)}, "Python objects"),
    ],
)
def test_bad_arrays_are_refused(tmp_path, arrays, noun):
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(PredictionsError, match=noun):
        read_predictions(tmp_path / "p.npz")


def test_garbage_is_refused_without_advice_to_run_it(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(tmp_path / "whole.npz", label=np.arange(100))
    np.save(tmp_path / "single.npy", np.arange(3))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "no array")
    whole = (tmp_path / "whole.npz").read_bytes()
    garbage = (
        *(b"", b"x" * 500, whole[:-40], whole.replace(b"'descr'", b"'wrong'")),
        *((tmp_path / "single.npy").read_bytes(), (tmp_path / "other.zip").read_bytes()),
    )
    for content in garbage:
        path.write_bytes(content)
        with pytest.raises(PredictionsError, match="npz") as raised:
            read_predictions(path)
        assert "pickle" not in str(raised.value)


def test_an_extra_that_is_missing_is_named(tmp_path, monkeypatch):
    for missing, extra in (("pyarrow", "parquet"), ("pandas", "audit")):
        monkeypatch.setitem(sys.modules, missing, None)
        (tmp_path / "p.parquet").write_text("x")
        with pytest.raises(ImportError, match=rf"pip install 'debiaspl\[{extra}\]'"):
            read_predictions(tmp_path / "p.parquet")


def test_folders_without_predictions(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_predictions(tmp_path / "none.csv")
    with pytest.raises(PredictionsError, match="not a run"):
        read_predictions(tmp_path)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "predictions.csv").touch()
    with pytest.raises(PredictionsError, match=f"debiaspl audit {tmp_path}/one"):
        read_predictions(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PredictionsError, match=r"not ended.*debiaspl report"):
        read_predictions(tmp_path)
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(PredictionsError, match=r"has ended.*debiaspl report"):
        read_predictions(tmp_path)


def test_the_output_of_an_audit_is_no_predictions(tmp_path):
    source = written(tmp_path, "csv", True)
    result = debiaspl("audit", source, "--json")
    assert [set(one) for one in json.loads(result.stdout)["findings"]] == [{"fact", "todo", "chance"}] * 3
    (tmp_path / "a.json").write_text(result.stdout)
    refused("audit", tmp_path / "a.json")


@pytest.mark.slow
def test_labels_alone_need_no_torch(tmp_path):
    import subprocess

    path = write_csv(tmp_path / "p.csv", {"label": ["a", "b"]})
    program = "import sys; from pathlib import Path; from debiaspl.report.audit import audit; "
    program += "from debiaspl.predictions import read_predictions; "
    program += f"audit(read_predictions(Path({str(path)!r}))); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
