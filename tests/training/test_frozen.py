"""A frozen encoder is a run like any other: every setting acts or is refused, it goes on after a stop, bit for bit, and
every algorithm that needs no pictures learns from its vectors."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from debiaspl.algorithms import ALGORITHMS, STARTS
from debiaspl.data import DataError, Task, load
from debiaspl.debias import CORRECTIONS, ranks
from debiaspl.encoders import load_encoder, load_trained
from debiaspl.files import digest_of_file
from debiaspl.models import scale
from debiaspl.recipes.frozen import frozen
from debiaspl.training import Choice, Interrupted, Recipe, RunError, loop, train
from debiaspl.training.evaluate import evaluate
from debiaspl.training.frozen import encoded
from debiaspl.training.group import ALONE
from debiaspl.training.loop import fit
from debiaspl.training.settings import parse_settings, settings
from debiaspl.training.step import Step
from debiaspl.training.tasks import task_of
from tests import forked
from tests.data.photos import jpeg, patch
from tests.ranks import on_ranks
from tests.training.tiny import outcome

pytest.importorskip("transformers")
CPU, SIDE = torch.device("cpu"), 24
pytestmark = pytest.mark.slow  # transformers alone takes seconds to import


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Recipe:
    """Thirty photos, ten labels, and a tiny encoder."""
    from tests.encoders.tiny import save

    root = tmp_path_factory.mktemp("frozen")
    (root / "photos").mkdir()
    rows = ["file_name,label"]
    for number in range(30):
        (root / "photos" / f"{number:02d}.jpg").write_bytes(jpeg(patch(number % 2, number, SIDE)))
        rows += [f"{number:02d}.jpg,{('temple', 'flower')[number % 2]}"] * (number < 10)
    (root / "labels.csv").write_text("\n".join(rows) + "\n")
    (root / "other.csv").write_text("\n".join(rows[:-2]) + "\n")
    save("resnet", root / "encoder")
    save("vit", root / "vit")
    recipe = Recipe(
        "frozen",
        data=str(root / "photos"),
        image_size=SIDE,
        protocol=Choice("given", {"table": str(root / "labels.csv")}),
        algorithm=Choice("fixmatch", {"joint": False, "threshold": 0.4}),
        labeled_batch=4,
        unlabeled_batch=8,
    )
    source = str(root / "encoder")
    made = frozen(recipe, 30, source, load_encoder(source).architecture)
    return replace(made, steps=12, log_every=5, checkpoint_every=4)


@pytest.fixture
def run(base, tmp_path):
    """Train with changed settings; features are shared by all runs of a test."""

    def trained(name: str, *changes: str, recipe: Recipe | None = None) -> Path:
        train(parse_settings(recipe or base, changes), tmp_path / name, workers=0)
        return tmp_path / name

    return trained


WORDS = {"name", "about", "cost", "paper"}
"""For people: they change nothing."""
CHANGES = {
    "image_size": "16",
    "stream": "true",
    "validation": "0.4",
    "algorithm": "uda",
    "correction": "none",
    "strong": "cropcolor",
    "flip": "false",
    "first_classifier": "graph",
    "seed": "1",
    "steps": "13",
    "labeled_batch": "5",
    "unlabeled_batch": "9",
    "learning_rate": "0.2",
    "arc": "0.1",
    "warm_up": "0.5",
    "sgd_momentum": "0",
    "weight_decay": "0.1",
    "average_decay": "0.1",
    "teacher": "average",
    "accumulate": "2",
    "log_every": "1",
    "evaluate_every": "6",
    "checkpoint_every": "12",
    "folds": "2",
    "labeled_also_unlabeled": "true",
    "threshold": "0.99",
    "unlabeled_weight": "3",
    "views": "2",
    "cld_weight": "5",
    "strong_share": "0.5",
    "strength": "2",
    "momentum": "0.5",
    "labeled_strength": "1",
    "margin_strength": "0",
    "operations": "rotate",
    "draws": "1",
    "probability": "1",
    "levels": "2",
    "cutout": "0,0",
}
REFUSED = {
    "data": ("nowhere/", "nowhere does not exist"),
    "protocol": ("few-labels", "has a label yet"),
    "network": ("linear", "network is linear, which is for vectors, but these are images"),
    "start": ("runs/start", "a frozen encoder keeps its own weights"),
    "average_statistics": ("true", "average_statistics is true, but it is about batch norm"),
    "health_every": ("6", "health_every is 6, but the features of a frozen encoder do not change"),
    "synchronise_norm": ("true", "synchronise_norm is true, but it is about batch norm"),
    "joint": ("true", "joint is true, but it is about batch norm"),
    "view_labels": ("paired", "view_labels is paired, which needs 2 views, but views is 1"),
    "fold": ("1", "fold is 1 and folds is 0"),
    "file_column": ("nowhere", "nowhere"),
    "label_column": ("nowhere", "nowhere"),
}
OTHERWISE = {"table", "source", "architecture", "frozen", "folders"}
"""Tried by themselves, below; folders, which needs class folders beside a table, in tests/photos/test_refused.py."""


@pytest.mark.slow(seconds=30)
def test_every_setting_acts_or_is_refused(base, run, tmp_path):
    """``debiaspl train photos --encoder`` gave the same weights, bit for bit, with nine of them and without."""
    names = {setting.name.rpartition(".")[2] for setting in settings(base)}
    assert names == WORDS | set(CHANGES) | set(REFUSED) | OTHERWISE  # none is forgotten
    plain = outcome(run("plain"))
    for name, value in CHANGES.items():
        changed = outcome(run(name, f"{name}={value}"))
        if name == "stream":  # decides what is in memory at a time, and nothing else
            assert changed[0] == plain[0], name
        elif name in ("log_every", "evaluate_every"):
            assert changed[0] == plain[0], name
            assert changed[2] != plain[2], name
        elif name == "checkpoint_every":
            kept = [len(list((tmp_path / one / "checkpoint").iterdir())) for one in ("plain", name)]
            assert kept == [2, 1]
        else:
            assert changed[0] != plain[0], name
    for name, (value, message) in REFUSED.items():
        with pytest.raises((ValueError, RunError), match=message):
            run(f"refused-{name}", f"{name}={value}")
        assert not (tmp_path / f"refused-{name}").exists(), name
    root = Path(base.data).parent
    table = replace(base, protocol=Choice("given", {"table": str(root / "other.csv")}))
    other = str(root / "vit")
    network = {"source": other, "architecture": load_encoder(other).architecture, "frozen": True}
    for name, recipe in {"table": table, "source": replace(base, network=Choice("encoder", network))}.items():
        assert outcome(run(name, recipe=recipe))[0] != plain[0]
    assert outcome(run("frozen", "frozen=false", "learning_rate=0.001"))[0] != plain[0]


def test_views_made_of_vectors_have_settings_of_their_own(run):
    hidden = "strong=hide", "flip=false"
    plain = outcome(run("hide", *hidden))
    for change in ("hidden=0.5", "noise=1"):
        assert outcome(run(change, *hidden, change))[0] != plain[0]


@pytest.fixture(scope="module")
def vectors(base, tmp_path_factory) -> Task:
    return encoded(base, task_of(base), CPU, tmp_path_factory.mktemp("kept"), ALONE, "").task


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_with_every_correction_learns_from_vectors_or_says_why_not(name, base, vectors):
    more = {"remixmatch": ["rotation_weight=0"], "crest": ["generations=2"], "crest+": ["generations=2"]}
    learned, refused = set(), {}
    for correction in CORRECTIONS:
        chosen = [f"algorithm={name}", f"correction={correction}", "steps=4", *more.get(name, [])]
        try:
            head = fit(parse_settings(base, chosen), vectors, CPU).finished().head
        except ValueError as error:
            refused[correction] = str(error)
            continue
        learned.add(correction)
        assert bool(head.weight.isfinite().all())
        assert bool(head.weight.any())
    if name in ("contrastmatch", "paws"):  # train features
        assert not learned
    elif name in ("supervised", "crest+"):  # make no pseudo-labels; have a correction of their own
        assert learned
    else:
        assert {"none", "debiaser"} <= learned
    assert learned | set(refused) == set(CORRECTIONS)
    for reason in refused.values():  # what to do is said
        assert "Use " in reason or "frozen=false" in reason or "expected" in reason, reason


def test_what_needs_pictures_is_refused_by_what_it_asks_for(run, tmp_path):
    for name in STARTS:
        with pytest.raises(ValueError, match=f"{name} cannot learn from the vectors .* it trains the features"):
            run(name, f"algorithm={name}", "correction=none")
    with pytest.raises(ValueError, match=r"remixmatch cannot learn from the vectors .* It can with rotation_weight=0"):
        run("remixmatch", "algorithm=remixmatch")
    assert not list(tmp_path.iterdir())


def test_a_run_with_a_frozen_encoder_teaches_a_network_of_pictures(run, base):
    teacher, images = run("teacher"), task_of(base).unlabeled.images
    network = Choice("small", {"width": 4})
    student = replace(base, network=network, algorithm=Choice("distill", {"teacher_run": str(teacher)}))
    assert outcome(run("student", recipe=student))[1]["teacher"] == digest_of_file(teacher / "model.safetensors")
    step = Step(student, task_of(student), CPU)
    pictures = scale(images[torch.arange(4)])
    assert torch.equal(step.algorithm.finished(pictures), load_trained(teacher)[0](pictures))


def test_a_run_that_was_stopped_in_the_middle_ends_with_the_same_bits(run, base, tmp_path, monkeypatch):
    whole, taken = outcome(run("whole", "algorithm=flexmatch")), []
    own = loop.Step.__call__

    def stopped(step, number):
        own(step, number)
        taken.append(number)
        if len(taken) == 6:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(loop.Step, "__call__", stopped)
    with pytest.raises(Interrupted, match="Stopped and saved at step 6 of 12"):
        run("stopped", "algorithm=flexmatch")
    monkeypatch.undo()
    train(base.changed(algorithm="flexmatch"), tmp_path / "stopped", resume=True, workers=0)
    assert outcome(tmp_path / "stopped") == whole


def stepped(recipe: Recipe, folder: Path) -> list[bytes]:
    """The weights after all steps, on one rank or on several; the folder keeps the features of each by itself."""
    found = encoded(recipe, task_of(recipe), CPU, folder / str(ranks.own()), ALONE, "")
    step = fit(recipe, found.task, CPU)
    return [value.numpy().tobytes() for value in step.finished().state_dict().values()]


def test_two_ranks_are_one_process(base, tmp_path):
    for number, changes in enumerate(([], ["strong=hide", "flip=false", "noise=0.5"])):
        recipe = parse_settings(base, changes)
        first, second = on_ranks(2, stepped, recipe, tmp_path / f"two{number}")
        assert first == second
        alone = stepped(recipe, tmp_path / f"one{number}")
        for one, other in zip(first, alone, strict=True):
            pair = (torch.frombuffer(bytearray(part), dtype=torch.float32) for part in (one, other))
            torch.testing.assert_close(*pair, rtol=1e-4, atol=1e-6)


def test_encoding_leaves_the_encoder_as_it_was_and_views_of_what_is_tested_are_not_made(base, tmp_path):
    task = task_of(base)
    other = replace(task.test, images=255 - task.test.images, ids=tuple(f"{name}-" for name in task.test.ids))
    found = encoded(base, replace(task, test=other), CPU, tmp_path / "kept", ALONE, "")
    assert found.task.labeled.images.shape[1] == 5
    assert found.task.test.images.shape[1] == 1
    found.network.encoder.requires_grad_(True)  # no tensor of inference mode


def test_a_part_that_cannot_be_read_is_named(base, tmp_path):
    (tmp_path / "photos").mkdir()
    for number, name in enumerate(("a.jpg", "b.jpg")):
        (tmp_path / "photos" / name).write_bytes(jpeg(patch(number, number, SIDE)))
    (tmp_path / "photos" / "c.jpg").write_bytes(b"")
    (tmp_path / "labels.csv").write_text("file_name,label\na.jpg,x\nb.jpg,y\n")
    protocol = Choice("given", {"table": str(tmp_path / "labels.csv")})
    recipe = replace(base, data=str(tmp_path / "photos"), protocol=protocol, stream=True)
    with pytest.raises(DataError, match=r"none of 1 images of a part of the task can be read, such as c\.jpg"):
        train(recipe, tmp_path / "run")


@pytest.mark.slow(seconds=20)
def test_torchrun_trains_it_too(base, tmp_path):
    """Two processes share the features; what they write is one run."""
    (tmp_path / "own.py").write_text(
        "import json, sys\nfrom debiaspl import Recipe, train\n"
        "train(Recipe.from_json(json.loads(sys.argv[1])), sys.argv[2], workers=0)\n"
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, "own.py", json.dumps(base.to_json()), "run"]
    done = forked.torchrun(command, tmp_path, {**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    together, alone = outcome(tmp_path / "run"), train(base, tmp_path / "alone", workers=0)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["timing"]["processes"] == 2
    assert together[1]["confusion"] == alone["confusion"]


def test_a_known_set_with_a_test_set_of_its_own_whose_names_are_the_same(base, tmp_path):
    """The images of digits are called by their numbers, those of the test set too."""
    recipe = replace(
        base, data="digits", image_size=0, protocol=Choice("few-labels", {"per_class": 2}), strong=Choice("hide")
    ).changed(flip=False, threshold=0.5)
    results = train(recipe, tmp_path / "run")
    whole = load("digits")
    assert results["test"] == len(whole.test)
    from debiaspl.deploy import load_model

    model = load_model(tmp_path / "run")
    found = evaluate(model.network, whole.test)
    assert found.accuracy == pytest.approx(results["accuracy"], abs=0.005)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["mode"] == "frozen encoder"
