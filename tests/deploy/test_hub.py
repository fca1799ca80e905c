"""A folder for the hub: it is a model, says what it knows, and comes back from there."""

import json
import shutil
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from debiaspl._measures import wilson
from debiaspl.deploy import hub
from debiaspl.deploy.hub import export_hub
from debiaspl.deploy.saved import load_model
from debiaspl.encoders import load_trained
from debiaspl.files import FileError
from debiaspl.models import scale
from debiaspl.training import RunError
from tests.forked import command

DAMAGED = {"labels": 3}, {"labels": [1]}, {"recall": ["x", "y"]}, {"accuracy": 1e400}


@pytest.fixture
def folder(run, tmp_path):
    export_hub(run, tmp_path / "hub")
    return tmp_path / "hub"


def test_the_folder_is_the_model_with_its_preprocessing(run, folder, photos):
    names = {path.name for path in folder.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", "preprocessor_config.json"}
    ours, theirs = load_model(run), load_model(folder)
    pictures = [photos / "china" / "0001.jpg", photos / "flower" / "0002.jpg"]
    assert torch.equal(ours.probabilities(pictures), theirs.probabilities(pictures))
    config = json.loads((folder / "config.json").read_text())
    assert config["id2label"] == {"0": "china", "1": "flower"}
    said = json.loads((folder / "preprocessor_config.json").read_text())
    assert (said["crop_size"], said["rescale_factor"]) == ({"height": 24, "width": 24}, 1 / 255)
    images = torch.randint(0, 256, (2, 3, 4, 4), dtype=torch.uint8)
    mean, std = (torch.tensor(said[f"image_{name}"]).reshape(3, 1, 1) for name in ("mean", "std"))
    assert torch.allclose((images * said["rescale_factor"] - mean) / std, scale(images), atol=1e-6)


def test_the_card_has_the_numbers_of_the_run(run, folder):
    results, card = json.loads((run / "results.json").read_text()), (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: debiaspl\n")
    assert 'load_model("user/name")' in card
    facts = replace(load_trained(run)[1], network={"name": "mine.py:build", "settings": {}})
    assert 'load_model("user/name", network=' in hub.model_card("run", facts, results)
    right = round(results["accuracy"] * results["test"])
    low, high = wilson(right, results["test"])
    assert f"{right} of {results['test']} right" in card
    assert f"{100 * low:.1f} % to {100 * high:.1f} %" in card
    for name, labels, recall in zip(("china", "flower"), results["labels"], results["recall"], strict=True):
        assert f"| {name} | {labels} | {100 * recall:.1f} % |" in card


@pytest.mark.parametrize("changed", [{"check": {"kind": "none"}}, {"check": {"kind": "teacher"}}, *DAMAGED])
def test_what_was_not_measured_is_not_known_and_damaged_results_are_told(run, tmp_path, changed):
    other = shutil.copytree(run, tmp_path / "run")
    (other / "results.json").write_text(json.dumps(json.loads((other / "results.json").read_text()) | changed))
    with nullcontext() if "check" in changed else pytest.raises(RunError, match="damaged"):
        export_hub(other, tmp_path / "hub")
        assert "| china | 4 | not known |" in (tmp_path / "hub" / "README.md").read_text()
    assert (tmp_path / "hub").exists() == ("check" in changed)


def test_nothing_is_overwritten_and_no_run_is_an_error(run, folder, tmp_path):
    with pytest.raises(FileError, match="overwrite"):
        export_hub(run, folder)
    export_hub(run, folder, overwrite=True)
    with pytest.raises(RunError):
        export_hub(tmp_path / "nothing", tmp_path / "other")
    with pytest.raises(RunError, match=r"results\.json"):
        export_hub(folder, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_an_export_over_another_leaves_no_card_beside_the_weights_of_the_old_one(run, folder, tmp_path, monkeypatch):
    own = shutil.copytree(run, tmp_path / "own")
    with pytest.raises(FileError, match="run itself"):
        export_hub(own, own, overwrite=True)
    assert (own / "config.json").read_bytes() == (run / "config.json").read_bytes()
    monkeypatch.setattr(hub, "write_bytes", Mock(side_effect=FileError("no space left")))
    with pytest.raises(FileError, match="space"):
        export_hub(run, folder, overwrite=True)
    with pytest.raises(RunError):
        load_model(folder)


def test_a_name_is_looked_up_on_the_hub_where_no_folder_has_it(folder, monkeypatch, tmp_path):
    asked = []

    def download(name, file):
        asked.append((name, file))
        if name != "user/name":
            raise OSError("404\nmore")
        return str(folder / file)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    monkeypatch.setattr("debiaspl.deploy.saved.require_hub", lambda name: None)
    monkeypatch.chdir(tmp_path)
    assert load_model("user/name").classes == ("china", "flower")
    with pytest.raises(RunError, match="404"):
        load_model("user/other")
    assert load_model("./hub").classes == load_model("hub").classes
    with pytest.raises(RunError, match="does not exist"):
        load_model(tmp_path / "user" / "name")
    assert asked == [("user/name", "model.safetensors"), ("user/other", "model.safetensors")]


@pytest.mark.slow
def test_the_command(run, tmp_path):
    assert command("export", str(run), "--hub", str(tmp_path / "hub")).returncode == 0
    assert load_model(tmp_path / "hub").classes
    assert "--hub" in command("export", str(run)).stderr
    useless = command("export", str(run), "--hub", str(tmp_path / "new"), "--shares", "even", "--check", str(tmp_path))
    assert "leave out --check and --shares" in useless.stderr
    assert not (tmp_path / "new").exists()
