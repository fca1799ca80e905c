"""Exported files say what the model says, of photos of any size, and are there whole or not at all."""

import io
import json
import os
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from debiaspl.deploy import export, load_model
from debiaspl.deploy.export import check
from debiaspl.training import RunError
from tests.data.photos import jpeg, patch, photographs
from tests.typed import debiaspl

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def graphs():
    """Seconds are spent on a graph once for each model, not for every test."""
    made = {}
    export_graph = export.exported

    def exported(model):
        if model.size not in made:
            made[model.size] = export_graph(model)
        return made[model.size]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(export, "exported", exported)
        yield


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory) -> dict[str, Path]:
    """Both runs as ONNX, made by the command."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "photos").mkdir()
    (folder / "photos" / "one.jpg").write_bytes(jpeg(patch(0, 5, side=70)))
    Image.fromarray(photographs()[1]).save(folder / "photos" / "large.jpg", quality=95)
    for name, run in runs.items():
        result = debiaspl("export", run, folder / f"{name}.onnx", "--check", folder / "photos")
        assert result.exit_code == 0, result.output
        assert "probabilities differ from PyTorch's by at most" in result.output
        assert "on 2 photos" in result.output
        assert result.stderr == ""
    return {name: folder / f"{name}.onnx" for name in runs}


def real_photos() -> list[np.ndarray]:
    """Patches and whole photographs, wide and tall, and EuroSAT where it is at hand."""
    found = [np.asarray(patch(number % 2, number, side)) for number, side in enumerate((24, 16, 70, 200, 9))]
    found += [photographs()[0], np.ascontiguousarray(photographs()[1].transpose(1, 0, 2))]
    root = Path(os.environ.get("DEBIASPL_DATA", "~/.cache/debiaspl")).expanduser() / "EuroSAT" / "2750"
    found += [np.asarray(Image.open(path)) for path in sorted(root.glob("*/*_1.jpg"))]
    return found


@pytest.mark.parametrize("name", ["small", "wide"])
def test_onnx_and_pytorch_agree_on_real_photos_of_many_sizes(files, runs, name):
    session, model = onnxruntime.InferenceSession(files[name]), load_model(runs[name])
    for pixels in real_photos():
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, "PNG")
        expected = model.probabilities(model.read(content.getvalue())[None])
        found, logits = session.run(None, {"images": pixels[None]})
        assert np.abs(found - expected.numpy()).max() < 1e-4
        assert np.abs(torch.from_numpy(logits).softmax(-1).numpy() - found).max() < 1e-6


def test_the_file_says_what_it_takes_and_what_the_classes_are(files):
    session = onnxruntime.InferenceSession(files["small"])
    (taken,) = session.get_inputs()
    assert (taken.name, taken.type, taken.shape) == ("images", "tensor(uint8)", ["batch", "height", "width", 3])
    outputs = [(out.name, out.shape) for out in session.get_outputs()]
    assert outputs == [("probabilities", ["batch", 2]), ("logits", ["batch", 2])]
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == ["china", "flower"]
    assert json.loads(about["trained_at"]) == {"height": 24, "width": 24, "channels": 3}
    assert about["made_by"].startswith("debiaspl ")


def test_the_documented_use_of_the_file_runs(files, tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "onnxruntime" in block)
    (tmp_path / "model.onnx").write_bytes(files["small"].read_bytes())
    patch(1, 3, side=50).save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out.split()[0] in ("china", "flower")


def test_a_file_that_differs_is_not_written(model, tmp_path, monkeypatch):
    def other(model, said, photos=()):
        return check(model, lambda pictures: said(pictures) + 2e-4, photos)

    monkeypatch.setattr(export, "check", other)
    with pytest.raises(RunError, match=r"differ by 0\.0002"):
        export.export_file(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("several", [1, 5])
def test_a_file_that_says_nan_is_not_written(model, several):
    """Of any picture, or of several at a time alone."""

    def said(pictures):
        right = export._expected(model, pictures).numpy()
        return right * np.nan if len(pictures) >= several else right

    with pytest.raises(RunError, match="differ by nan"):
        check(model, said)


def test_a_network_that_cannot_be_exported_and_a_missing_extra_are_told(model, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "exported", Mock(side_effect=AssertionError("first line\nand pages more")))
    with pytest.raises(RunError, match="this network cannot be exported: first line Nothing was written"):
        export.export_file(model, tmp_path / "model.onnx")
    monkeypatch.setattr("debiaspl._checks.import_module", Mock(side_effect=ModuleNotFoundError("onnx")))
    with pytest.raises(ImportError, match=r"ONNX files need onnxruntime: pip install 'debiaspl\[export\]'"):
        export.export_file(model, tmp_path / "x.onnx")
