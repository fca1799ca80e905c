"""Algorithms and corrections from a user's own file: found, trained with, resumed, and never executed by reading."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl.data import DataError
from debiaspl.encoders import NetworkFacts
from debiaspl.training import Choice, Recipe, RunError, train
from debiaspl.training.parts import build, settings_of
from debiaspl.training.run import Run
from debiaspl.training.settings import parse_settings
from tests.forked import command, program
from tests.training.tiny import EAGER, TINY, outcome

MINE = """
from dataclasses import dataclass

from debiaspl.algorithms import FixMatch
from debiaspl.debias import Correction


@dataclass
class Helper:  # dataclasses look their module up, by name
    value: "int" = 1


class Mine(FixMatch):
    def __init__(self, scale=1.0, **others):
        super().__init__(**others)
        self.scale = scale

    def losses(self, models, batch):
        losses = super().losses(models, batch)
        losses["unlabeled"] = self.scale * losses["unlabeled"]
        return losses


class Untouched(Correction):
    def __init__(self, num_classes, momentum=0.5):
        super().__init__()
        self.num_classes, self.momentum = num_classes, momentum


class Other:
    pass
"""

FIXMATCH = "from debiaspl.algorithms import FixMatch\nclass Mine(FixMatch):\n    def __init__("
ABSTRACT = "from debiaspl.algorithms import Algorithm\nclass Mine(Algorithm):\n    pass"

EVIL = """
from pathlib import Path
Path(__file__).with_name("executed").touch()
from debiaspl.algorithms import Supervised
class Evil(Supervised):
    needs_average = True
"""


def typed(*settings: str) -> Recipe:
    return parse_settings(TINY, settings, load_files=True)


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    """A folder with mine.py, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_a_class_of_a_file_is_a_part_like_any_other(mine):
    recipe = typed("algorithm=mine.py:Mine", "scale=0.5", "correction=mine.py:Untouched", "momentum=0.25")
    assert recipe.algorithm == Choice("mine.py:Mine", {"joint": False, "scale": 0.5})
    assert recipe.correction == Choice("mine.py:Untouched", {"momentum": 0.25})
    correction = recipe.correction.build("correction", num_classes=10)
    algorithm = recipe.algorithm.build("algorithm", correction=correction, num_classes=10)
    assert set(settings_of("algorithm", "mine.py:Mine")) == {"scale", *settings_of("algorithm", "fixmatch")}
    assert (type(algorithm).__name__, algorithm.scale, algorithm.joint) == ("Mine", 0.5, False)
    assert algorithm.correction is correction, "what **others hands on to the parent, a run supplies too"
    assert (correction.num_classes, correction.momentum) == (10, 0.25)
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


def test_the_file_is_executed_once(mine):
    (mine / "mine.py").write_text(MINE + "with open('count', 'a') as count: count.write('x')\n")
    first = build("algorithm", "mine.py:Mine", {})
    assert type(build("algorithm", f"{mine}/mine.py:Mine", {})) is type(first)
    assert (mine / "count").read_text() == "x"


def test_an_algorithm_of_a_file_trains_to_the_same_bits_as_the_one_it_copies(mine):
    train(EAGER, mine / "theirs")
    own = replace(EAGER, algorithm=Choice("mine.py:Mine", EAGER.algorithm.settings))
    train(own, mine / "own")
    theirs, mine_ = outcome(mine / "theirs"), outcome(mine / "own")
    assert theirs[0] == mine_[0]
    assert theirs[2:] == mine_[2:]
    train(replace(own, algorithm=Choice("mine.py:Mine", {**own.algorithm.settings, "scale": 0.0})), mine / "scaled")
    assert outcome(mine / "scaled")[0] != theirs[0]


@pytest.mark.slow
def test_a_stopped_run_resumes_in_the_same_directory(mine):
    """In processes of their own, as a user would: the second knows nothing of what the first has loaded."""
    code = """
import sys
import debiaspl.training.loop as loop
from tests.training.tiny import EAGER
recipe = EAGER.changed(load_files=True, algorithm="mine.py:Mine", scale=2.0, log_every=10)
if sys.argv[2] == "stop":
    loop._record = lambda *arguments: sys.exit(3)
loop.train(recipe, sys.argv[1], resume=True)
"""
    assert program(code, "run", "stop").returncode == 3
    assert not (mine / "run" / "results.json").exists()
    assert list((mine / "run" / "checkpoint").iterdir())
    for name in ("run", "whole"):
        ran = program(code, name, "resume")
        assert ran.returncode == 0, ran.stderr
    assert outcome(mine / "run") == outcome(mine / "whole")


def evil_run(folder: Path, part: str, settings: dict[str, object] | None = None) -> Path:
    """A run folder that somebody sent, whose config.json names a file."""
    folder.mkdir()
    (folder / "evil.py").write_text(EVIL)
    values = TINY.to_json()
    values[part] = {"name": f"{folder}/evil.py:Evil", "settings": settings or {}}
    values["teacher"] = "student"
    (folder / "config.json").write_text(json.dumps({"debiaspl": "0", "recipe": values}))
    return folder


@pytest.mark.parametrize("part", ["algorithm", "correction", "network"])
def test_reading_a_run_folder_executes_nothing(tmp_path, part):
    folder = evil_run(tmp_path / "sent", part, {"bait": 1})
    recipe = Run(folder).recipe()
    assert recipe == Recipe.from_json(json.loads(json.dumps(recipe.to_json())))
    assert recipe.changed(steps=7, seed=3).steps == 7
    assert recipe.owner("bait") is None
    with pytest.raises(ValueError, match="name it too"):
        recipe.changed(bait=1)
    for resume in (True, False):
        with pytest.raises(RunError, match="contains a run"):
            Run.at(folder, TINY, resume=resume)
    other = {"correction": "none", "algorithm": "pseudolabel", "network": "small"}[part]
    assert getattr(parse_settings(recipe, [f"{part}={other}"]), part).name == other
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "evil.py"]


@pytest.mark.parametrize("part", ["algorithm", "network"])
@pytest.mark.parametrize("path", ["~nobody-of-that-name/evil.py", "a\0b/evil.py", "x" * 5000 + "/evil.py"])
def test_whatever_a_name_in_a_folder_is_it_can_be_read(tmp_path, part, path):
    values = TINY.to_json() | {part: {"name": f"{path}:Evil", "settings": {}}, "teacher": "student"}
    (tmp_path / "config.json").write_text(json.dumps({"debiaspl": "0", "recipe": values}))
    assert getattr(Run(tmp_path).recipe(), part).name == f"{path}:Evil"
    facts = {"network": {"name": f"{path}:Evil", "settings": {}}, "classes": ["a", "b"], "channels": 3, "size": [8, 8]}
    with pytest.raises(DataError, match="own code"):
        NetworkFacts.of(json.dumps(facts), "sent").build("sent")


def test_naming_the_file_executes_it_and_checks_what_was_put_off(tmp_path):
    """The same folder, once its user names the file: the test above would see an execution."""
    folder = evil_run(tmp_path / "sent", "algorithm")
    with pytest.raises(ValueError, match="load_files"):  # of a config.json: nobody has typed it
        parse_settings(TINY, [f" algorithm = {folder}/evil.py:Evil"])
    assert not (folder / "executed").exists()
    with pytest.raises(ValueError, match="averaged teacher"):
        Run(folder).recipe().changed(load_files=True, algorithm=f"{folder}/evil.py:Evil")
    assert (folder / "executed").exists()


@pytest.mark.slow
def test_a_report_of_a_folder_executes_nothing(mine):
    """A finished run that somebody sends, with the file that it was trained with beside it."""
    run = mine / "sent"
    train(replace(TINY, name="digits-10", steps=3, algorithm=Choice("mine.py:Mine")), run)
    (run / "evil.py").write_text(EVIL)
    for path in (run / "config.json", run / "results.json"):
        assert "mine.py:Mine" in path.read_text()
        path.write_text(path.read_text().replace("mine.py:Mine", f"{run}/evil.py:Evil"))
    said = command("report", "sent")
    assert said.returncode == 0, said.stderr
    assert not (run / "executed").exists()


@pytest.mark.parametrize("part", ["protocol", "strong"])
def test_other_parts_come_from_no_file(tmp_path, part):
    folder = evil_run(tmp_path / "sent", part)
    with pytest.raises(RunError, match=part):
        Run(folder).recipe()
    assert not (folder / "executed").exists()


def test_settings_of_a_file_that_was_not_loaded_are_checked_when_it_is_built(mine):
    recipe = replace(TINY, algorithm=Choice("mine.py:Mine", {"scales": 2}))
    with pytest.raises(ValueError, match="scales"):
        train(recipe, mine / "run")
    assert not (mine / "run").exists()


@pytest.mark.parametrize(
    ("text", "name", "noun"),
    [
        ("", "gone.py:Mine", "no file"),
        ("", "mine.py", "mine.py:ClassName"),
        (MINE, "mine.py:Mime", "it has Mine"),
        *((MINE, f"mine.py:{name}", "extends debiaspl.algorithms.Algorithm") for name in ("Other", "Untouched")),
        *((MINE, name, "cannot be combined") for name in ("uda+mine.py:Mine", "mine.py:Mine+debiaser")),
        ("\nx = 1 / 0", "mine.py:Mine", "line 2: ZeroDivisionError"),
        ("class Mine(:", "mine.py:Mine", "SyntaxError"),
        ("import sys\nsys.exit(2)", "mine.py:Mine", "line 2: SystemExit"),
        (ABSTRACT, "mine.py:Mine", "losses(), as debiaspl/algorithms/fixmatch.py"),
        (f"{FIXMATCH}self): pass", "mine.py:Mine", "correction"),
        (f"{FIXMATCH}self, a, **rest): pass", "mine.py:Mine", "default for a"),
    ],
)
def test_mistakes_are_named_and_can_be_mended(mine, text, name, noun):
    (mine / "mine.py").write_text(text)
    before = set(sys.modules)
    with pytest.raises(ValueError, match=re.escape(noun)):
        typed(f"algorithm={name}")
    if "Error" in noun or "Exit" in noun:
        assert set(sys.modules) == before, "a file that failed leaves nothing behind"
        (mine / "mine.py").write_text(MINE)
        assert typed("algorithm=mine.py:Mine").algorithm.name == "mine.py:Mine"


def in_file(folder: Path, base: str, method: str, body: str) -> str:
    """A class of a file whose method returns ``body``; the method begins on line 7."""
    (folder / "own.py").write_text(
        "import torch\nfrom debiaspl.algorithms import Algorithm, CReST, Supervised\nfrom debiaspl.debias import "
        f"Correction\n\n\nclass Own({base}):\n    def {method}:\n        return {body}\n"
    )
    return "own.py:Own"


LOSSES, ADOPT = ("Supervised", "losses(self, models, batch)"), ("CReST", "adopt(self, probabilities, generation)")
LABELED_MARGIN = "labeled_margin(self, logits, labels=None)"


@pytest.mark.parametrize(
    ("base", "method", "body", "noun"),
    [
        (*LOSSES, "None", "nothing"),
        (*LOSSES, "{'one': 1.5}", "float"),
        (*LOSSES, "{'one': models.student(batch.labeled).mean(1)}", "shape"),
        (*LOSSES, "{'one': models.student(batch.labeled).mean().detach()}", "gradient"),
        ("Correction", "probabilities(self, weak_logits)", "weak_logits.softmax(-1).mean(0)", "shape"),
        ("Correction", "probabilities(self, weak_logits)", "(weak_logits - 9).log()", "finite"),
        ("Correction", LABELED_MARGIN, "logits.argmax(-1)", "int64"),
        ("Correction", LABELED_MARGIN, "logits.long()", "int64"),
        ("Correction", "classifier(self, head, mean_features)", "head.weight", "Linear"),
        (*ADOPT, "None", "nothing"),
        (*ADOPT, "probabilities.argmax(-1)[1:]", "shape"),
    ],
)
def test_what_a_method_returns_wrongly_names_the_file_and_the_line(mine, base, method, body, noun):
    own = in_file(mine, base, method, body)
    if base == "Correction":
        recipe = replace(TINY, correction=Choice(own))
    else:
        settings = {"generations": 2} if base == "CReST" else {}
        recipe = replace(TINY, algorithm=Choice(own, settings), correction=Choice("none"))
    with pytest.raises(RunError, match=rf"own.py, line 7: Own.{method.partition('(')[0]}\(\) returned .*{noun}"):
        train(recipe, mine / "run")


KEEPS = """
from debiaspl.debias import Correction
class Keeps(Correction):
    def margin(self, logits, labels=None):
        self.latest = logits  # cannot be copied: it has a gradient
        return logits
    def classifier(self, head, mean_features):
        return head
"""


def test_a_correction_that_keeps_what_it_was_given_is_not_copied_at_the_end(mine):
    (mine / "mine.py").write_text(KEEPS)
    assert train(typed("correction=mine.py:Keeps", "steps=1"), mine / "run")["test"]


BROKEN = """
from debiaspl.algorithms import Supervised
class Broken(Supervised):
    def losses(self, models, batch):
        one, two = [1]
"""


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["train --recipe digits-10", "compare --methods mine.py:Broken"])
def test_an_error_inside_the_file_shows_its_author_where(mine, verb):
    """Unpacking is a ValueError, and of those a command shows the message alone, if they are its own."""
    (mine / "mine.py").write_text(BROKEN)
    train_parts = ["--set", "algorithm=mine.py:Broken", "--set", "correction=none"]
    parts = train_parts if verb.startswith("train") else ["--seeds", "1"]
    said = command(*verb.split(), *parts, "--set", "steps=3", "--out", "run")
    assert said.returncode == 1
    assert f'File "{mine}/mine.py", line 5, in losses' in said.stderr
