"""Recipes: frozen, written and read again, changed by key=value."""

import dataclasses
import io
import json
import os
import re

import pytest

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.recipes import RECIPES, recipe
from debiaspl.training import Choice, Recipe
from debiaspl.training.log import ProgressLine
from debiaspl.training.parts import PARTS
from tests.training.tiny import TINY, changed


def test_a_recipe_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TINY.steps = 3


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_that_was_written_and_read_is_equal(name):
    written = json.dumps(RECIPES[name].to_json())
    assert Recipe.from_json(json.loads(written)) == RECIPES[name]


def test_settings_reach_fields_and_parts():
    new = changed(TINY, "steps=7", "flip=true", "learning_rate=1e-2", "strength=0.25", "threshold=0.5")
    assert (new.steps, new.flip, new.learning_rate) == (7, True, 0.01)
    assert new.correction == Choice("debiaser", {"strength": 0.25})
    assert new.algorithm.settings["threshold"] == 0.5
    assert changed(TINY, "correction.momentum=0.9").correction.settings == {"momentum": 0.9}
    assert changed(TINY, "operations=rotate, shear_x").strong.settings == {"operations": ("rotate", "shear_x")}
    assert changed(TINY, "cutout=0,0").strong.settings == {"cutout": (0.0, 0.0)}


def test_a_new_part_keeps_the_settings_it_knows():
    new = TINY.changed(threshold=0.5, joint=True).changed(algorithm="pseudolabel")
    assert new.algorithm == Choice("pseudolabel", {"threshold": 0.5})
    assert changed(TINY, "correction=none").correction == Choice("none")


def test_a_new_part_has_its_own_defaults():
    """The paper's recipes spell FixMatch's settings out; a MixMatch must not inherit its weight."""
    paper = recipe("cifar10-40")
    assert paper.algorithm.settings["unlabeled_weight"] == 1.0
    assert changed(paper, "algorithm=pseudolabel").algorithm == Choice("pseudolabel")
    assert changed(paper, "unlabeled_weight=2", "algorithm=pseudolabel").algorithm.settings == {"unlabeled_weight": 2.0}
    assert changed(paper, "algorithm=fixmatch") == paper


def test_parts_are_changed_before_settings():
    assert TINY.changed(views=2, algorithm="fixmatch") == TINY.changed(algorithm="fixmatch", views=2)
    with pytest.raises(ValueError, match="strength"):
        TINY.changed(strength=1.0, correction="none")


def test_the_difference_of_two_recipes_makes_one_of_the_other():
    base = recipe("cifar10-40")
    for name, length, method in (
        ("cifar10-40", "minutes", None),
        ("cifar10-40", "start", "supervised"),
        ("cifar10-lt100-10pct", "start", "contrastmatch+margins"),
        ("digits-10", None, None),
    ):
        other = recipe(name, length, method)
        made = base.changed(**base.diff(other))
        assert made.diff(other) == {} == other.diff(made)
    assert base.diff(base.changed(strength=1.0, seed=2)) == {"correction.strength": 1.0, "seed": 2}
    assert base.diff(base.changed(margin_strength=None, name="other")) == {}, "the default, and a description"
    supervised = base.changed(algorithm="supervised")
    assert base.diff(supervised) == {"algorithm": "supervised"}
    assert base.diff(base.changed(algorithm="pseudolabel", threshold=0.7))["algorithm.threshold"] == 0.7


def test_a_setting_has_an_owner():
    keys = {
        "steps": "recipe",
        "correction": "recipe",
        "threshold": "algorithm",
        "strength": "correction",
        "correction.strength": "correction",
        "algorithm.strength": None,
        "stepps": None,
        "nothing.strength": None,
        "correction.": None,
        "": None,
    }
    assert {key: TINY.owner(key) for key in keys} == keys
    assert changed(TINY, "correction=none").owner("strength") is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("steps", "found 'steps', expected key=value"),
        ("stepps=3", "no setting 'stepps'. Did you mean steps? For a list: debiaspl list settings RECIPE."),
        ("steps=many", "steps is 'many', expected a whole number"),
        ("flip=maybe", "flip is 'maybe', expected true or false"),
        ("strength=strong", "strength is 'strong', expected a number"),
        (
            "algorithm=fixmach",
            "no algorithm named 'fixmach'. Did you mean fixmatch? For a list: debiaspl list algorithms.",
        ),
        (
            "algorithm=owl",
            f"no algorithm named 'owl'. There are {', '.join(sorted([*ALGORITHMS, *STARTS, *HINTED]))}. Your own is",
        ),
        ("correction=debiasr", "no correction named 'debiasr'. Did you mean debiaser?"),
        ("correction=debiasr+crest", "no correction named 'debiasr'. Did you mean debiaser?"),
        ("network=resnet51", f"'resnet51'. Did you mean resnet18? There are {', '.join(sorted(PARTS['network']))}."),
        ("memory=9", "'memory': it is a setting of algorithm="),
        ("network.strength=1", "no setting 'network.strength'"),
        ("nothing.strength=1", "no setting 'nothing.strength'"),
        ("steps=0", "steps is 0, expected at least 1"),
        ("teacher=mean", "teacher is 'mean', expected 'student', 'average' or 'auto'"),
    ],
)
def test_wrong_settings_teach(setting, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        changed(TINY, setting)


def test_a_setting_of_another_part_is_named_with_its_owner():
    with pytest.raises(
        ValueError, match=r"it is a setting of correction=debiaser, but here correction=none\. For a li"
    ):
        changed(changed(TINY, "correction=none"), "strength=0.3")
    with pytest.raises(ValueError, match=r"of algorithm=(\S+, ){3}\.\.\., but here algorithm=supervised\."):
        changed(changed(TINY, "algorithm=supervised"), "threshold=0.3")


def test_a_part_with_a_setting_it_does_not_have_is_refused_when_made():
    with pytest.raises(ValueError, match=r"correction 'none' has no setting strength\. It has none"):
        dataclasses.replace(TINY, correction=Choice("none", {"strength": 1}))


def test_a_recipe_of_another_version_is_refused():
    with pytest.raises(ValueError, match="a recipe has no wings"):
        Recipe.from_json({"name": "x", "wings": 2})


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"data": 5}, "data"),
        ({"start": 5}, "start"),
        ({"seed": True}, "seed"),
        ({"seed": "3"}, "seed"),
        ({"steps": 10.5}, "steps"),
        ({"flip": 1}, "flip"),
        ({"paper": "good"}, "paper"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"unlabeled_batch": 10**12}, "unlabeled_batch"),
        ({"image_size": 10**9}, "image_size"),
        ({"image_size": 10**30}, "image_size"),
        ({"network": 5}, "network"),
        ({"network": {"name": "wrn"}}, "network"),
        ({"network": {"name": "wrn", "settings": 5}}, "settings"),
        ({"network": {"name": 5, "settings": {}}}, "text"),
        ({"network": {"name": "wrn", "settings": {"width": "x"}}}, "width"),
        ({"network": {"name": "wrn", "settings": {"width": True}}}, "width"),
        ({"network": {"name": "resnet9", "settings": {"widths": [1, "x"]}}}, "widths"),
    ],
)
def test_values_of_another_type_or_out_of_range_are_refused(values, word):
    plain = TINY.to_json() | {"network": {"name": "wrn", "settings": {}}}
    with pytest.raises(ValueError, match=word):
        Recipe.from_json(plain | values)
    if "network" not in values:
        with pytest.raises(ValueError, match=word):
            TINY.changed(**values)


@pytest.mark.parametrize("values", [5, [], None, {}, {"steps": 4}])
def test_what_is_no_recipe_is_refused(values):
    with pytest.raises(ValueError, match="recipe"):
        Recipe.from_json(values)


def test_unknown_recipes_teach():
    with pytest.raises(ValueError, match=r"no recipe named 'cifar'.*For a list: debiaspl list recipes"):
        recipe("cifar")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


RECORD = {"losses": {"labeled": 0.5, "unlabeled": 0.25}, "kept": 0.4, "distance": 0.321}


ERASED = "\r\x1b[0K"


def terminal(columns, monkeypatch):
    """One that tells how wide it is."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda descriptor: os.terminal_size((columns, 24)))
    return Terminal()


def test_the_progress_line_says_what_a_person_wants_to_know(monkeypatch):
    stream = terminal(200, monkeypatch)
    with ProgressLine("digits-10", 0, 600, stream) as line:
        line.show(300, RECORD)
    assert re.search(
        r"digits-10 step 300/600  labeled 0.500  unlabeled 0.250  kept 40%  off shares 32%  0:00 left",
        stream.getvalue(),
    )
    assert stream.getvalue().endswith(ERASED)


def test_the_progress_line_says_of_what_the_time_is_left(monkeypatch):
    stream = terminal(200, monkeypatch)
    with ProgressLine("birds", 0, 600, stream, unit="image", part="run 2 of 8 (DebiasPL)") as line:
        line.show(300, {"losses": {}})
    assert stream.getvalue() == f"{ERASED}birds image 300/600  0:00 left of run 2 of 8 (DebiasPL){ERASED}"


HEALTH = {"rank": 53.4, "spread": 0.5}


def test_the_progress_line_keeps_the_latest_measurement_of_the_features(monkeypatch):
    stream = terminal(200, monkeypatch)
    with ProgressLine("digits-10", 0, 600, stream) as line:
        line.show(300, {"losses": {"contrast": 2.0}, "health": HEALTH})
        line.show(310, {"losses": {"contrast": 1.5}})
        line.show(320, {"losses": {}, "health": HEALTH | {"rank": 20.0}})
    first, second, third = stream.getvalue().split(ERASED)[1:4]
    assert first.startswith("digits-10 step 300/600  contrast 2.000  rank 53  spread 0.50  ")
    assert second.startswith("digits-10 step 310/600  contrast 1.500  rank 53  spread 0.50  ")
    assert third.startswith("digits-10 step 320/600  rank 20  spread 0.50  0:0")


def test_a_warning_stays_on_a_terminal_and_elsewhere(monkeypatch):
    record = {"losses": {}, "warning": {"kind": "collapsed", "fact": "All is alike.", "todo": "Try again."}}
    stream, file = terminal(200, monkeypatch), io.StringIO()
    for place in (stream, file):
        with ProgressLine("digits-10", 0, 6000, place) as line:
            line.show(1200, {"losses": {}})
            line.show(1300, record)
            line.show(1400, {"losses": {}})
    said = "warning: digits-10, step 1,300: All is alike. Try again.\n"
    assert file.getvalue() == said
    before, after = stream.getvalue().split(said)
    assert before.endswith(ERASED)  # in the place of the moving line, which goes on below
    assert "step 1,300/6,000" in after
    assert "warning" not in after


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (
            200,
            "digits-10 step 300/600  labeled 0.500  unlabeled 0.250  kept 40%  off shares 32%  0:00 left of run 2 of 8",
        ),
        (97, "digits-10 step 300/600  labeled 0.500  unlabeled 0.250  kept 40%  0:00 left of run 2 of 8"),
        (60, "digits-10 step 300/600  0:00 left of run 2 of 8"),
        (48, "0:00 left of run 2 of 8"),
        (10, "0:00 left "),
        (0, "digits-10 step 300/600  labeled 0.500  0:00 left of run 2 of 8"),
    ],
)
def test_the_progress_line_stays_on_one_line(columns, line, monkeypatch):
    """One that went over the edge would not be overwritten by the next. Where no width is told, it is the usual one.
    Three columns stay free, for the ``^C`` of a stop."""
    stream = terminal(columns, monkeypatch)
    ProgressLine("digits-10", 0, 600, stream, part="run 2 of 8").show(300, RECORD)
    assert stream.getvalue() == ERASED + line


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (35, "鳥の写真 step 300/600  0:00 left"),
        (34, "0:00 left"),
    ],
)
def test_the_progress_line_counts_cells_and_not_letters(columns, line, monkeypatch):
    stream = terminal(columns, monkeypatch)
    ProgressLine("鳥の写真", 0, 600, stream).show(300, RECORD)
    assert stream.getvalue() == ERASED + line


def test_the_progress_line_shows_names_as_they_are(monkeypatch):
    """No markup, no colours."""
    stream = terminal(200, monkeypatch)
    ProgressLine("[red]birds[/] :owl: 'x'", 0, 600, stream).say("[red]birds[/] :owl: 'x' 3", "0:00 left")
    assert stream.getvalue() == ERASED + "[red]birds[/] :owl: 'x' 3  0:00 left"


def test_the_progress_line_is_gone_after_an_interrupt(monkeypatch):
    stream = terminal(200, monkeypatch)

    def interrupted() -> None:
        with ProgressLine("digits-10", 0, 600, stream) as line:
            line.show(300, RECORD)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().endswith(ERASED)
    assert "\x1b[?25l" not in stream.getvalue(), "the cursor stays"


@pytest.mark.parametrize("force_color", ["", "1"])
def test_the_progress_line_is_silent_elsewhere(force_color, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", force_color)
    stream = io.StringIO()
    with ProgressLine("digits-10", 0, 600, stream) as line:
        line.show(300, RECORD)
    assert stream.getvalue() == ""


def test_the_progress_line_is_silent_on_a_terminal_that_cannot_overwrite(monkeypatch):
    stream = terminal(200, monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with ProgressLine("digits-10", 0, 600, stream) as line:
        line.show(300, RECORD)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("part", "name", "settings"),
    [
        ("network", "small", {"width": "x"}),
        ("network", "small", {"width": True}),
        ("network", "resnet9", {"widths": 8}),
        ("algorithm", "fixmatch", {"joint": 1}),
        ("correction", "debiaser+tau-norm", {"tau": [0.5]}),
    ],
)
def test_a_setting_of_another_type_is_refused(part, name, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        dataclasses.replace(TINY, **{part: Choice(name, settings)})
