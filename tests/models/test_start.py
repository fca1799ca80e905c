"""First weights from checkpoints of many shapes: the right ones are found, and everything else is refused in words."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from debiaspl.models import MODELS
from debiaspl.models.start import first_weights, start_digest, trained_network
from tests.models.moco import moco, projection, trained, under, write

OWN = {
    "conv1.weight": torch.zeros(4, 3, 7, 7),
    "bn1.weight": torch.zeros(4),
    "bn1.running_var": torch.zeros(4),
    "bn1.num_batches_tracked": torch.zeros((), dtype=torch.int64),
    "layer1.0.conv1.weight": torch.zeros(4, 4, 1, 1),
    "layer1.0.downsample.0.weight": torch.zeros(8, 4, 1, 1),
    "head.weight": torch.zeros(5, 8),
    "head.bias": torch.zeros(5),
}
"""As small as a network can be that is recognised as a ResNet."""
BODY = trained(OWN)
CLASSIFIER = {"fc.weight": torch.ones(5, 8), "fc.bias": torch.ones(5)}
OTHER = trained(OWN, seed=9)


def same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> bool:
    return found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("prefix", ["", "module.", "encoder.", "main.", "module.main.", "encoder_q.", "backbone."])
@pytest.mark.parametrize("nested", ["", "state_dict", "model"])
def test_the_body_is_found_wherever_it_lies(tmp_path, prefix, nested):
    state = under(prefix, BODY)
    path = write(tmp_path / "start.pth", {"epoch": 3, nested: state} if nested else state)
    assert same(first_weights(str(path), OWN), BODY)


@pytest.mark.parametrize("old_format", [False, True])
def test_of_moco_the_trained_encoder_is_taken_and_nothing_else(tmp_path, old_format):
    path = write(tmp_path / "moco.pth.tar", moco(OWN), old_format)
    assert same(first_weights(str(path), OWN), BODY)


def test_of_eman_the_student_is_taken_with_its_classifier_if_that_fits(tmp_path):
    body, head = under("module.main.backbone.", BODY), under("module.main.", CLASSIFIER)
    teacher = under("module.ema.backbone.", OTHER) | under("module.ema.", {"fc.weight": torch.zeros(5, 8)})
    path = write(tmp_path / "eman.pth.tar", {"state_dict": teacher | body | head})
    expected = BODY | {"head.weight": CLASSIFIER["fc.weight"], "head.bias": CLASSIFIER["fc.bias"]}
    assert same(first_weights(str(path), OWN), expected)
    other_classes = {**OWN, "head.weight": torch.zeros(6, 8), "head.bias": torch.zeros(6)}
    assert same(first_weights(str(path), other_classes), BODY)


STATES = {
    "an average": under("ema.", BODY),
    "a projection head": BODY | projection(8),
    "a head of one layer": BODY | {"fc.weight": torch.zeros(128, 8), "fc.bias": torch.zeros(128)},
    "MoCo v1, with a head of the classifier's shape": {"state_dict": under("module.encoder_q.", BODY | CLASSIFIER)},
}


@pytest.mark.parametrize("content", STATES.values(), ids=STATES)
def test_heads_that_are_no_classifier_are_left_out(tmp_path, content):
    assert same(first_weights(str(write(tmp_path / "start.pth", content)), OWN), BODY)


def test_safetensors_are_read_too_with_a_classifier_that_fits(tmp_path):
    save_file(BODY | CLASSIFIER, tmp_path / "start.safetensors")
    found = first_weights(str(tmp_path / "start.safetensors"), OWN)
    assert found["head.bias"].tolist() == [1.0] * 5


def test_counters_of_batch_norm_may_be_missing(tmp_path):
    body = {name: value for name, value in BODY.items() if "num_batches" not in name}
    assert same(first_weights(str(write(tmp_path / "start.pth", body)), OWN), body)


def without(name: str) -> dict[str, torch.Tensor]:
    return {key: value for key, value in BODY.items() if key != name}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (without("bn1.running_var"), r"1 missing: bn1\.running_var\."),
        (BODY | {"layer1.1.conv1.weight": torch.zeros(1)}, r"1 not expected: layer1\.1\.conv1\.weight\."),
        (BODY | {"bn1.weight": torch.zeros(9)}, r"1 of another shape: bn1\.weight \(9,\) instead of \(4,\)\."),
        ({"features.0.weight": torch.zeros(3)}, r"contains no ResNet: .* found 1, such as features\.0\.weight"),
        ({"epoch": 3}, "found 0, such as no tensor at all"),
        ([1, 2], "found 0"),
        (under("student.", BODY) | under("other.", BODY), r"2 networks, expected one: other\., student\."),
    ],
)
def test_what_does_not_fit_is_listed(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        first_weights(str(write(tmp_path / "start.pth", content)), OWN)


def test_a_network_of_another_depth_is_told_in_a_short_message(tmp_path):
    shallow, deep = (MODELS["resnet"](5, depth=depth).state_dict() for depth in (18, 50))
    small = {name: value for name, value in shallow.items() if "head" not in name}
    with pytest.raises(ValueError, match="depth") as caught:
        first_weights(str(write(tmp_path / "start.pth", small)), deep)
    assert len(str(caught.value)) < 700


class Hostile:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_code_in_a_file_is_not_executed(tmp_path):
    path = write(tmp_path / "start.pth", {"state_dict": BODY, "hyper": Hostile(tmp_path / "ran")})
    with pytest.raises(ValueError, match=r"more than tensors and plain values\. It was not loaded"):
        first_weights(str(path), OWN)
    assert not (tmp_path / "ran").exists()
    torch.load(path, weights_only=False)
    assert (tmp_path / "ran").exists()


def damaged(folder: Path, name: str) -> Path:
    whole = write(folder / "whole.pth", BODY).read_bytes()
    contents = {"cut.pth": whole[: len(whole) // 2], "empty.pth": b"", "text.pt": b"hello " * 99}
    contents |= {"text.safetensors": b"hello " * 99, "empty.safetensors": b""}
    (folder / name).write_bytes(contents[name])
    return folder / name


@pytest.mark.parametrize("name", ["cut.pth", "empty.pth", "text.pt", "text.safetensors", "empty.safetensors"])
def test_what_cannot_be_read_is_told(tmp_path, name):
    with pytest.raises(ValueError, match=rf"{name} (cannot be read as a checkpoint|is not a torch checkpoint)"):
        first_weights(str(damaged(tmp_path, name)), OWN)


def test_a_file_that_is_not_there_and_a_folder_teach(tmp_path):
    with pytest.raises(ValueError, match=r"was not found: looked for a file at .*start=PATH"):
        first_weights(str(tmp_path / "none.pth"), OWN)
    with pytest.raises(ValueError, match="is a folder without a run: looked for a file"):
        first_weights(str(tmp_path), OWN)


def test_a_name_is_looked_for_in_the_data_folder(tmp_path, monkeypatch):
    write(tmp_path / "start.pth", BODY)
    monkeypatch.setenv("DEBIASPL_DATA", str(tmp_path))
    assert same(first_weights("start.pth", OWN), BODY)


def test_the_digest_is_of_the_content(tmp_path):
    path = tmp_path / "start.pth"
    assert start_digest(str(path)) == ""
    path.write_bytes(b"one")
    first = start_digest(str(path))
    path.write_bytes(b"two")
    assert "" != first != start_digest(str(path)) != ""


@pytest.mark.parametrize("facts", [{"size": [10**30, 1]}, {"size": [-8, 8]}, {"channels": 7}])
def test_a_run_with_impossible_images_is_damaged(tmp_path, facts):
    about = {"network": {"name": "small", "settings": {}}, "channels": 1, "size": [8, 8], **facts}
    save_file({"head.weight": torch.zeros(1)}, tmp_path / "model.safetensors", {"debiaspl": json.dumps(about)})
    with pytest.raises(ValueError, match="damaged"):
        trained_network(str(tmp_path))


def test_a_published_start_fits_the_resnet(tmp_path):
    own = MODELS["resnet"](5, depth=18).state_dict()
    path = write(tmp_path / "moco.pth.tar", moco(own, seed=4))
    assert same(first_weights(str(path), own), trained(own, seed=4))
