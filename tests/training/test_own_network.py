"""A network of a user's own code trains, resumes to the same bits, predicts and exports; a folder never executes it."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from debiaspl import load_model, train
from debiaspl.data import load
from debiaspl.models.own import OwnNetwork
from debiaspl.training import Run, RunError
from debiaspl.training.parts import settings_of
from tests.forked import command
from tests.training.tiny import EAGER, TINY, check_resume, outcome

MINE = '''
from pathlib import Path

import torch
from torch import nn

Path(__file__).with_name("executed").touch()


def build(num_classes, channels, width=8):
    """Dropout, batch norm, and a weight that is not trained.

    Args:
        width: of the convolution.
    """
    layers = nn.Conv2d(channels, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout(0.5)
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes, bias=False))
    module[0].bias.requires_grad_(False)
    return module


class Plain(nn.Module):
    def __init__(self, num_classes, image_size):
        super().__init__()
        self.head = nn.Linear(image_size[0] * image_size[1], num_classes)

    def embed(self, images):
        return images.flatten(1)

    def forward(self, images):
        return self.head(self.embed(images)) * 2  # not its classifier's output


def nothing(num_classes):
    return 3

other_name = lambda classes: nn.Linear(64, classes)
'''


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_it_trains_and_resumes_to_the_same_bits(mine):
    """With dropout, whose random numbers depend on the step."""
    check_resume(EAGER, mine, 6, network="mine.py:build")
    model = load_model(mine / "whole")
    digits = load("digits").test
    assert model.predict(digits.images[:5]) == load_model(mine / "run").predict(digits.images[:5])
    assert isinstance(model.network, OwnNetwork)
    assert "body.0.bias" in dict(model.network.named_buffers())
    assert settings_of("network", "mine.py:build") == {"width": 8}


def test_a_module_is_passed_in_python(tmp_path):
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    train(TINY, tmp_path / "one", network=module)
    train(TINY, tmp_path / "two", network=module)
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two"), "each begins with the module's weights"
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    model = load_model(tmp_path / "one", network=module)
    assert model.features(load("digits").test.images[:3]).shape == (3, 16)


@pytest.mark.parametrize("training", [True, False])
def test_it_computes_what_the_module_computes(training):
    module = nn.Sequential(nn.Flatten(), nn.Linear(12, 10), nn.ReLU(), nn.Linear(10, 10), nn.Identity())
    images = torch.rand(4, 3, 2, 2)
    expected = module.train(training)(images)
    own = OwnNetwork(module, 10, (3, 2, 2))
    assert own.num_features == 10
    assert own.body.training == training
    assert torch.allclose(own(images), expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:Plain", "linear layer"),
        ("mine.py:nothing", "Module"),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 1000)), "logits"),
        ("mine.py:absent", "function"),
        ("mine.py:other_name", "for classes. A run passes only channels, image_size, num_classes"),
        ("mine.py", "mine.py:build"),
        ("wrn", "PATH.py"),
    ],
)
def test_what_is_no_network_is_refused(mine, name, message):
    with pytest.raises(ValueError, match=message):
        train(TINY, mine / "run", network=name)
    assert not (mine / "run").exists()


def test_a_run_folder_executes_no_code(mine):
    train(TINY, mine / "run", network="mine.py:build")
    (mine / "theirs").mkdir()
    (mine / "theirs" / "mine.py").write_text(MINE)
    config = json.loads((mine / "run" / "config.json").read_text())
    assert config["recipe"]["network"]["name"] == "mine.py:build"
    elsewhere = mine / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text(MINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(elsewhere)
        with pytest.raises(RunError, match="own code"):
            load_model(mine / "run")
        assert Run(mine / "run").recipe().network.name == "mine.py:build"
        assert not (elsewhere / "executed").exists()
        assert load_model(mine / "run", network="mine.py:build").classes
        assert (elsewhere / "executed").exists()


@pytest.mark.slow
def test_the_commands_take_the_code(mine):
    small = ["--set", "steps=3", "--set", "labeled_batch=8", "--set", "unlabeled_batch=16"]
    typed = ["train", "--recipe", "digits-10", "--network", "mine.py:build", "--set", "width=4", "--out", "run", *small]
    ran = command(*typed)
    assert ran.returncode == 0, ran.stderr
    pytest.importorskip("onnxscript")
    refused = command("export", "run", "model.onnx")
    assert "--network mine.py:build" in refused.stderr
    assert command("export", "run", "model.onnx", "--network", "mine.py:build").returncode == 0
    assert (mine / "model.onnx").exists()
