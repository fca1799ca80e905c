"""The ImageNet recipes: their settings, and a rehearsal on small sets of the same layout, through the command line."""

import signal
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.data.formats import IMAGENET, read_imagenet
from debiaspl.data.known import SETS
from debiaspl.models import MODELS
from debiaspl.recipes import recipe
from debiaspl.training import Run
from debiaspl.training.step import Step
from tests.benchmarks.test_scaling_model import PAGE
from tests.data.photos import jpeg, patch, write_shards
from tests.models.moco import moco, write
from tests.training.tiny import outcome

METHODS = "debiaspl", "fixmatch", "multiview", "scripts"
NAMES = [(cell, method) for cell in ("imagenet-1pct", "imagenet-0.2pct") for method in METHODS]
CLASSES = 30
SMALL = (
    "depth=18",
    "image_size=32",
    "steps=6",
    "labeled_batch=2",
    "unlabeled_batch=4",
    "log_every=1",
    "start=moco.pth",
)


def test_there_is_a_recipe_for_each_of_the_papers_rows():
    papers = [recipe(cell, method=method).paper for cell, method in NAMES]
    assert papers == [63.1, 60.9, 65.3, 65.3, 47.9, 43.6, 51.6, 51.6]
    with pytest.raises(ValueError, match="multiview"):
        recipe("cifar10-40", method="multiview")


@pytest.mark.parametrize(("cell", "method"), NAMES)
def test_steps_are_those_that_the_cost_model_counts(cell, method):
    assert f"| 50 | {recipe(cell, method=method).steps:,} |" in PAGE


@cache
def picture(number: int) -> bytes:
    return jpeg(patch(number, number, side=40))


def write_imagenet(root: Path) -> Path:
    """The layout of ImageNet, with few classes and few images of each."""
    for part, count in (("train", 3), ("val", 1)):
        for label in range(CLASSES):
            folder = root / part / f"n{label:08d}"
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number}.JPEG").write_bytes(picture((label + number) % 20))
    return root


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def typed(out: str, *settings: str) -> list[str]:
    options = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    return ["train", "--recipe", "imagenet-1pct", "--device", "cpu", "--out", out, *options]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder to work in, with ImageNet where it is looked for and a start as MoCo writes it."""
    root = tmp_path_factory.mktemp("rehearsal")
    write_imagenet(root / "imagenet")
    write(root / "moco.pth", moco(MODELS["resnet"](CLASSES, depth=18).state_dict()))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(root)
        patched.setitem(SETS, "imagenet", replace(IMAGENET, read=partial(read_imagenet, classes=CLASSES)))
        patched.setenv("DEBIASPL_DATA", str(root))
        yield root


@pytest.fixture(scope="module")
def whole(place) -> Path:
    said = command(*typed("whole"), "--workers", 0)
    assert f"on {CLASSES} test images, imagenet-1pct" in said
    return place / "whole"


def stopped(patched: pytest.MonkeyPatch) -> None:
    """Begin the run and stop it at its fourth step with SIGINT, as Ctrl-C does."""
    original = Step.__call__

    def interrupted(self: Step, number: int) -> None:
        original(self, number)
        if number == 3:
            signal.raise_signal(signal.SIGINT)

    patched.setattr(Step, "__call__", interrupted)
    result = CliRunner().invoke(app, [*typed("run"), "--workers", "0"])
    patched.setattr(Step, "__call__", original)
    assert result.exit_code == 128 + signal.SIGINT
    assert "Stopped and saved at step 4 of 6" in result.output


@pytest.mark.slow
def test_the_recipe_is_rehearsed_stopped_and_gone_on_with_to_the_same_bits(place, whole, monkeypatch):
    stopped(monkeypatch)
    kept = (place / "moco.pth").read_bytes()

    (place / "moco.pth").write_bytes(b"another")
    refused = CliRunner().invoke(app, [*typed("run"), "--resume"])
    assert refused.exit_code == 1
    assert "error: the start with which run was started has changed" in refused.output

    (place / "moco.pth").unlink()  # its weights are in the run
    try:
        command(*typed("run"), "--workers", 0, "--resume")
    finally:
        (place / "moco.pth").write_bytes(kept)
    assert outcome(place / "run") == outcome(whole)
    results = Run(whole).results()
    assert (results["labels"], results["unlabeled"]) == ([1] * CLASSES, 2 * CLASSES)  # one of each class is labeled


@pytest.mark.slow
def test_tar_shards_go_through_multi_view_and_cld(place):
    shards = write_shards(place / "shards")
    sizes = [part for item in (*SMALL, "steps=2", f"data={shards}") for part in ("--set", item)]
    options = ["--recipe", "imagenet-0.2pct", "--method", "multiview", "--device", "cpu", "--workers", "0"]
    said = command("train", *options, *sizes, "--out", "shards-run")
    assert "on 4 test images" in said
    assert set(Run(place / "shards-run").log()[-1]["losses"]) == {"labeled", "unlabeled", "cld"}
