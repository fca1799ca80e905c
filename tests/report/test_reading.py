"""Predictions are read from every format alike; what cannot be audited is refused with an error that teaches."""

import json
import struct
import sys
import zipfile

import numpy as np
import pytest

from debiaspl.predictions import Names, PredictionsError, read_predictions
from debiaspl.predictions import table as table_module
from tests.report.made import made, write_csv, write_npz

DATA = made(60, 4)


def wide(data, word="probability:", values=None):
    values = data.probabilities if values is None else values
    return {f"{word}{name}": values[:, place] for place, name in enumerate(data.classes)}


def test_labels_alone(tmp_path):
    found = read_predictions(write_csv(tmp_path / "p.csv", {"label": ["b", "a", "b"]}))
    assert found.classes == ("a", "b")
    assert found.label.tolist() == [1, 0, 1]
    assert found.confidence is None
    assert found.truth is None
    assert found.scores is None
    assert found.name(1) == "row 2"


def test_numbers_are_sorted_as_numbers_and_missing_truth_is_unknown(tmp_path):
    columns = {"label": [10, 9, 2], "truth": ["2", "", "-1"], "file_name": ["x", "y", "z"]}
    found = read_predictions(write_csv(tmp_path / "p.csv", columns))
    assert found.classes == ("2", "9", "10")
    assert found.truth is not None
    assert found.truth.tolist() == [0, -1, -1]
    assert found.file_names == ("x", "y", "z")


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
        assert found.truth is not None
        assert found.truth.tolist() == DATA.truth.tolist()
        assert found.file_names == tuple(DATA.names)
        np.testing.assert_allclose(found.confidence, DATA.confidence, rtol=1e-5)


def test_large_csv_is_read_by_pyarrow_to_the_same(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'debiaspl[parquet]'")
    columns = {
        "file_name": [f'"a, ""{n}"""' for n in DATA.names],
        **wide(DATA),
        "label": DATA.label,
        "truth": DATA.truth,
    }
    path = write_csv(tmp_path / "p.csv", columns)
    slow = table_module.read_csv(path, Names())
    monkeypatch.setattr(table_module, "LARGE_FILE", 0)
    monkeypatch.setattr(table_module, "read_small_csv", None)
    fast = table_module.read_csv(path, Names())
    assert slow.classes == fast.classes
    assert {k: v.tolist() for k, v in slow.fields.items()} == {k: v.tolist() for k, v in fast.fields.items()}
    np.testing.assert_array_equal(slow.matrices["probabilities"], fast.matrices["probabilities"])


def test_a_large_csv_that_pyarrow_refuses_is_explained_row_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "LARGE_FILE", 0)
    path = write_csv(tmp_path / "p.csv", {"logit:a": [1, "much"], "logit:b": [2, 2]})
    with pytest.raises(PredictionsError, match="row 2 has 'much' in column 'logit:a', expected a number"):
        read_predictions(path)


def test_columns_called_otherwise_can_be_named(tmp_path):
    columns = {"img": DATA.names, "y_hat": DATA.label, "y": DATA.truth, "sure": DATA.confidence}
    path = write_csv(tmp_path / "p.csv", columns)
    found = read_predictions(path, Names(label="y_hat", truth="y", confidence="sure", file_name="img"))
    assert found.truth is not None
    assert found.truth.tolist() == DATA.truth.tolist()
    np.testing.assert_allclose(found.confidence, DATA.confidence)
    np.savez(tmp_path / "p.npz", scores=DATA.logits)
    assert read_predictions(tmp_path / "p.npz", Names(logits="scores")).label.tolist() == DATA.label.tolist()


def test_embeddings_from_columns_and_from_a_file(tmp_path):
    columns = {"label": DATA.label} | {f"embedding_{place}": DATA.embeddings[:, place] for place in range(6)}
    path = write_csv(tmp_path / "p.csv", columns)
    np.testing.assert_allclose(read_predictions(path).embeddings, DATA.embeddings, rtol=1e-5)
    np.save(tmp_path / "e.npy", DATA.embeddings)
    path = write_csv(tmp_path / "q.csv", {"label": DATA.label})
    found = read_predictions(path, Names(embeddings=str(tmp_path / "e.npy")))
    np.testing.assert_array_equal(found.embeddings, DATA.embeddings)


def test_a_run_folder_knows_classes_that_were_never_predicted(tmp_path):
    write_csv(tmp_path / "predictions.csv", {"label": ["a", "b"], "truth": ["a", "a"]})
    facts = {"__metadata__": {"debiaspl": json.dumps({"classes": ["c", "b", "a"]})}}
    header = json.dumps(facts).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert read_predictions(tmp_path).classes == ("c", "b", "a")
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    assert read_predictions(tmp_path).classes == ("a", "b")


def test_class_numbers_stand_for_places_where_no_class_is_called_so(tmp_path):
    path = write_csv(tmp_path / "p.csv", {"label": [0, 2, 1]})
    found = read_predictions(path, classes=["x", "y", "z"])
    assert found.label.tolist() == [0, 2, 1]


NAN = DATA.probabilities.copy()
NAN[4, 2] = np.nan

BAD_CSV = {
    "no rows": ({"label": []}, {}, "has no rows, expected one prediction per row"),
    "one class": ({"label": ["a", "a"]}, {}, r"has one class, 'a', expected two or more.*--classes"),
    "NaN": (wide(DATA, values=NAN), {}, "the probabilities contain NaN in row 5, expected finite numbers"),
    "not probabilities": (
        wide(DATA, values=2 * DATA.probabilities),
        {},
        r"do not sum to 1 in rows 1, 2, 3 and 57 more \(row 1 sums to 2\).*If they are logits.*--logits",
    ),
    "logits called probabilities": (wide(DATA, values=DATA.logits), {}, "contain negative numbers.*logit:CLASS"),
    "unknown truth": (
        wide(DATA) | {"truth": ["class 1", "tiger", "lion"] * 20},
        {},
        "truth names 2 classes that the predictions do not have: 'lion', 'tiger'. They have 4: 'class 0'",
    ),
    "truth of other names": ({"label": ["a", "b"], "truth": ["1", "2"]}, {}, "no class is in both.*--truth-column"),
    "label called otherwise": (
        {"y_pred": ["a", "b"]},
        {},
        r"has the columns 'y_pred', expected 'label'.*--label-column y_pred",
    ),
    "truth called otherwise": (
        {"label": ["a", "b"], "trueth": ["a", "b"]},
        {"truth": "truth"},
        "has no column 'truth' for the truth. Did you mean 'trueth'. It has 'label', 'trueth'",
    ),
    "no label in a row": (
        {"label": ["a", "", "b"], "file_name": ["x", "y", "z"]},
        {},
        "there is no label in row 2, expected a predicted class in every row",
    ),
    "percentages": ({"label": ["a", "b"], "confidence": [99, 50]}, {}, "is not from 0 to 1.*Divide percentages by 100"),
    "confidence in words": ({"label": ["a", "b"], "confidence": ["0.5", "low"]}, {}, "in row 2 is not a number.*'low'"),
    "no confidence in a row": (
        {"label": ["a", "b", "a"], "confidence": ["0.5", "", " "]},
        {},
        r"the confidence in rows 2, 3 is not a number \(the first is empty\), expected 0 to 1 in every row",
    ),
    "no label in a row, and other names": (
        {"label": ["", "", "b"], "truth": ["1", "2", "1"]},
        {},
        "there is no label in rows 1, 2, expected a predicted class in every row",
    ),
    "a single column of scores": ({"probability:a": [1, 0]}, {}, "has the columns 'probability:a', expected 'label'"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_tables_are_refused_with_a_lesson(tmp_path, case):
    columns, names, lesson = BAD_CSV[case]
    path = write_csv(tmp_path / "p.csv", columns)
    with pytest.raises(PredictionsError, match=lesson):
        read_predictions(path, Names(**names))


@pytest.mark.parametrize(
    ("text", "lesson"),
    [
        ("", "is empty, expected a header"),
        ("label,label\na,b\n", "columns of the same name \\('label'\\)"),
        ("label,truth\na,b\nb\n", "row 2 of .* has 1 cells, expected 2.*double quotes"),
        ("label;truth\na;b\n", "has one column, 'label;truth', expected.*commas.*seem to be separated by semicolons"),
        ("label;confidence\na;0,5\n", "semicolons"),
        ("label\ttruth\na\tb\n", "tabs"),
        ("logit:a,logit:b\n1,x\n", "row 1 has 'x' in column 'logit:b', expected a number"),
    ],
)
def test_broken_csv_is_refused_with_a_lesson(tmp_path, text, lesson):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(PredictionsError, match=lesson):
        read_predictions(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("arrays", "lesson"),
    [
        ({"label": np.array([], int)}, "has no rows"),
        ({"label": np.array([1, 1])}, "has one class, '1'"),
        ({"probabilities": np.ones((3, 1))}, "1 column, expected one for each of two or more classes"),
        ({"probabilities": np.full((3, 2), np.nan)}, "the probabilities contain NaN in rows 1, 2, 3, expected"),
        ({"logits": np.array([[np.inf, 0.0]])}, "the logits contain an infinite number in row 1"),
        ({"logits": np.zeros((3, 2), int)}, "expected floating-point numbers"),
        ({"scores": np.zeros((3, 2))}, "has a matrix 'scores'.*--probabilities scores or --logits scores"),
        ({"logits": np.zeros((3, 2)), "truth": np.array([0, 1])}, r"different lengths \(truth 2, logits 3\)"),
        ({"logits": np.zeros((3, 2)), "truth": np.array([0, 1, 2])}, "truth names 1 class that the predictions"),
        ({"logits": np.zeros((3, 2)), "classes": np.array(["a"])}, "1 class names and 2 columns of scores"),
        ({"logits": np.zeros((3, 2)), "classes": np.array(["a", "a"])}, "class names occur twice"),
        ({"logits": np.zeros((3, 2)), "probabilities": np.full((3, 2), 0.5)}, "expected one of them"),
        ({"label": np.array([0.2, 1.0, 0.7])}, r"label in rows 1, 3 is not a whole.*first is 0.2.*expected the number"),
        ({"label": np.array([0.0, np.inf])}, "label in row 2 is not a whole number"),
        ({"label": np.array([0, 1]), "truth": np.array([0.5, 1])}, "truth in row 1 is not a whole.*--truth-column"),
        ({"label": np.array([0, 1, -3])}, r"label in row 3 is negative \(the first is -3\), expected class numbers"),
        ({"label": np.array([0.0, -1.0])}, "label in row 2 is negative"),
        (
            {"label": np.array([0, 1]), "truth": np.array([-2, -1])},
            "truth in row 1 is negative.*or -1 if it is not known",
        ),
        ({"label": np.array([0.0, np.nan, 1.0])}, "there is no label in row 2"),
        ({"label": np.array([{"a": 1}], object)}, "'label' contains Python objects. Write"),
        ({"label": np.array([{"a": 1}], object)}, "cannot be read as .npz.*not of objects"),
        ({"label": np.array([0, 1]), "embeddings": np.array([[np.nan], [1.0]])}, "embeddings have shape"),
    ],
)
def test_bad_arrays_are_refused_with_a_lesson(tmp_path, arrays, lesson):
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(PredictionsError, match=lesson):
        read_predictions(tmp_path / "p.npz")


def test_what_is_no_file_of_predictions(tmp_path):
    with pytest.raises(PredictionsError, match=r"does not exist, expected a .csv, .jsonl, .npz or .parquet file"):
        read_predictions(tmp_path / "none.csv")
    (tmp_path / "p.txt").write_text("x")
    with pytest.raises(PredictionsError, match=r"ends in '.txt', expected a .csv, .jsonl, .npz or .parquet file"):
        read_predictions(tmp_path / "p.txt")
    with pytest.raises(PredictionsError, match="is not a run of debiaspl"):
        read_predictions(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PredictionsError, match="debiaspl report"):
        read_predictions(tmp_path)


def test_a_run_that_has_ended_without_its_predictions(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(PredictionsError, match=r"has ended, but its predictions.csv is missing.*debiaspl report"):
        read_predictions(tmp_path)


def test_garbage_is_refused_without_advice_to_run_it(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(tmp_path / "whole.npz", label=np.arange(100))
    np.save(tmp_path / "single.npy", np.arange(3))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "no array")
    whole = (tmp_path / "whole.npz").read_bytes()
    garbage = {
        b"": "not an archive of arrays",
        b"x" * 500: "not an archive of arrays",
        whole[:-40]: "or it is truncated",
        whole.replace(b"'descr'", b"'wrong'"): "Bad CRC-32|label",
        (tmp_path / "single.npy").read_bytes(): "not an archive of arrays",
        (tmp_path / "other.zip").read_bytes(): "'notes.txt' is not an array",
    }
    for content, lesson in garbage.items():
        path.write_bytes(content)
        with pytest.raises(PredictionsError, match=rf"cannot be read as .npz: .*({lesson})") as raised:
            read_predictions(path)
        assert "pickle" not in str(raised.value)
        assert ".." not in str(raised.value).replace("=...", "")
    (tmp_path / "e.npy").write_bytes(b"x" * 500)
    csv = write_csv(tmp_path / "p.csv", {"label": ["a", "b"]})
    with pytest.raises(
        PredictionsError, match=r"e\.npy cannot be read: it is not a complete \.npy file of numbers"
    ) as raised:
        read_predictions(csv, Names(embeddings=str(tmp_path / "e.npy")))
    assert "pickle" not in str(raised.value)


def test_negative_numbers_are_classes_where_these_are_named(tmp_path):
    np.savez(tmp_path / "p.npz", label=np.array([-1, 1, -1]))
    assert read_predictions(tmp_path / "p.npz", classes=["-1", "1"]).label.tolist() == [0, 1, 0]
    np.savez(tmp_path / "q.npz", label=np.array([0.0, 2.0]), truth=np.array([np.nan, -1.0]))
    found = read_predictions(tmp_path / "q.npz")
    assert (found.classes, found.truth) == (("0", "2"), None)


def test_bad_parquet_and_no_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "p.parquet").write_text("x")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'debiaspl[parquet]'")
    with pytest.raises(PredictionsError, match="cannot be read as Parquet"):
        read_predictions(tmp_path / "p.parquet")
    monkeypatch.setattr("debiaspl.predictions.parquet.find_spec", lambda name: None)
    with pytest.raises(PredictionsError, match=r"pip install 'debiaspl\[parquet\]'"):
        read_predictions(tmp_path / "p.parquet")


def test_bad_lists_in_parquet(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'debiaspl[parquet]'")
    import pyarrow as pa

    pq.write_table(pa.table({"scores": [[0.5, 0.5], [1.0, 0.0]]}), tmp_path / "p.parquet")
    with pytest.raises(PredictionsError, match=r"contain lists, expected 'probabilities'.*--logits scores"):
        read_predictions(tmp_path / "p.parquet")
    pq.write_table(pa.table({"probabilities": [[0.5, 0.5], [1.0]]}), tmp_path / "p.parquet")
    with pytest.raises(PredictionsError, match="different lengths or are missing"):
        read_predictions(tmp_path / "p.parquet")


@pytest.mark.slow
def test_labels_alone_need_no_torch(tmp_path):
    import subprocess

    path = write_csv(tmp_path / "p.csv", {"label": ["a", "b"]})
    program = "import sys; from pathlib import Path; from debiaspl.report.audit import audit; "
    program += "from debiaspl.predictions import read_predictions; "
    program += f"audit(read_predictions(Path({str(path)!r}))); print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize("matrix", ["probabilities", "logits", "embeddings"])
def test_scores_that_are_asked_for_by_a_wrong_name_are_not_passed_over(matrix, tmp_path):
    path = tmp_path / "found.csv"
    path.write_text("file_name,label,p_a,p_b\n1.jpg,a,0.7,0.3\n")
    with pytest.raises(PredictionsError, match=f"no {matrix} named 'x_', expected an array, or two or more columns"):
        read_predictions(path, Names(**{matrix: "x_"}))


def test_a_folder_of_runs_is_told_from_a_run(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "predictions.csv").touch()
    (tmp_path / "results.json").write_text("{}")  # of a demo, or a matrix
    with pytest.raises(PredictionsError, match=f"contains runs, expected one of them: debiaspl audit {tmp_path}/one"):
        read_predictions(tmp_path)
