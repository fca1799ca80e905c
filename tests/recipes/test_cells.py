"""Recipes are a cell, a length and a method: what they compute is noted down, and each is built when asked for."""

import hashlib
import json
from pathlib import Path

import pytest

from debiaspl import recipes
from debiaspl.recipes import RECIPES, recipe
from debiaspl.recipes.cells import CELLS
from debiaspl.training import Recipe
from debiaspl.training.method import method_of

DIGESTS = Path(__file__).with_name("digests.json")
METHODS = {
    "paper": ("debiaspl", "fixmatch", "supervised"),
    "fast": ("debiaspl",),
    "minutes": ("contrastmatch+debiaser", "contrastmatch", "supervised"),
    "start": ("contrastmatch+debiaser", "contrastmatch", "contrastmatch+margins", "supervised"),
}


def digest(made: Recipe) -> str:
    """Of what a recipe computes: fields that are not at their default."""
    values = made.to_json()
    plain = Recipe("").to_json()
    kept = {key: values[key] for key in sorted(values) if values[key] != plain[key]}
    for description in ("name", "about", "cost", "paper"):
        kept.pop(description, None)
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def digests() -> dict[str, dict[str, str]]:
    """Of every cell: each length with its methods, and its start."""
    found: dict[str, dict[str, str]] = {}
    for name, cell in CELLS.items():
        own = {f"{length} {method}": (length, method) for length in cell.lengths for method in METHODS[length]}
        if cell.data == "digits":
            own = {"minutes debiaspl": ("minutes", None)}
        if cell.data == "imagenet":
            own |= {f"paper {method}": ("paper", method) for method in ("multiview", "scripts")}
        own |= {"moco": (None, "moco")} if cell.start else {}
        found[name] = {key: digest(recipe(name, *chosen)) for key, chosen in own.items()}
    return found


def test_recipes_compute_what_they_did():
    """At 583f46c every one of its 185 recipes was compared with the one here, field by field."""
    assert digests() == json.loads(DIGESTS.read_text()), "if it is meant: python -m tests.recipes.test_cells"


def test_there_are_few_names_and_a_recipe_is_built_when_it_is_asked_for(monkeypatch):
    assert len(RECIPES) == len(CELLS) <= 40
    built = []
    original = Recipe.__post_init__
    monkeypatch.setattr(Recipe, "__post_init__", lambda self: (built.append(self.name), original(self)))
    assert "cifar10-40" in RECIPES
    recipes.recipe("cifar10-40", length="start", method="contrastmatch")
    assert 0 < len(built) < 15


@pytest.mark.parametrize(
    ("chosen", "name", "method", "paper"),
    [
        (("cifar10-40",), "cifar10-40", "debiaspl", 94.6),
        (("cifar10-40", "paper", "fixmatch"), "cifar10-40-fixmatch", "fixmatch", 86.1),
        (("cifar10-40", "paper", "fixmatch+debiaser"), "cifar10-40", "debiaspl", 94.6),
        (("cifar10-40", "start"), "cifar10-40-start", "contrastmatch+debiaser", None),
        (("cifar10-40", "minutes", "contrastmatch"), "cifar10-40-minutes-contrastmatch", "contrastmatch", None),
        (("cifar10-40", None, "remixmatch+debiaser"), "cifar10-40-remixmatch+debiaser", "remixmatch+debiaser", None),
        (("cifar10-lt100-10pct", "start", "margins"), "cifar10-lt100-10pct-start-margins", "margins", None),
        (("cifar10-lt100-10pct", None, "moco"), "cifar10-lt100-10pct-pretrain", "moco", None),
        (("cifar10-80", "start", "simclr"), "cifar10-pretrain-simclr", "simclr", None),
    ],
)
def test_a_recipe_is_named_after_its_choices(chosen, name, method, paper):
    made = recipe(*chosen)
    assert (made.name, method_of(made), made.paper, method in made.about) == (name, method, paper, False)
    assert RECIPES.origin(made)[0].diff(made) == {}


def test_a_cell_a_length_and_a_method_may_have_settings_of_their_own():
    plain, debiased = (recipe("cifar10-40", "start", f"contrastmatch{more}") for more in ("", "+debiaser"))
    assert plain.diff(debiased) == {"correction": "debiaser", "correction.strength": 1.0}
    assert (debiased.learning_rate, recipe("cifar10-80", "start").learning_rate) == (0.0075, 0.015)
    tail = recipe("cifar10-lt100-10pct", "start", "contrastmatch")
    assert (tail.steps, tail.algorithm.settings["threshold"]) == (6_000, 0.98)
    assert tail.start == "runs/cifar10-lt100-10pct-pretrain"
    supervised = recipe("eurosat-40", "start", "supervised")
    assert (supervised.first_classifier, supervised.image_size) == ("random", 32)


@pytest.mark.parametrize(
    ("chosen", "word"),
    [
        (("digit-10",), "digits-10"),
        (("cifar10-40-fixmatch",), "list recipes"),
        (("cifar10-40", "days"), "minutes"),
        (("imagenet-1pct", "minutes"), "paper"),
        (("cifar10-40", None, "fixmatsch"), "fixmatch"),
        (("cifar10-40", None, "mine.py:Mine"), "load_files"),
        (("imagenet-1pct", None, "moco"), "start"),
    ],
)
def test_mistakes_say_what_there_is(chosen, word):
    with pytest.raises(ValueError, match=word):
        recipe(*chosen)


def test_the_options_of_a_run_give_its_recipe_again():
    made = recipe("cifar10-lt100-10pct", "start", "contrastmatch")
    run = Recipe.from_json({**made.to_json(), "name": f"{made.name}-seed3", "seed": 3})
    base, options = RECIPES.origin(run)
    assert options == ["--recipe", "cifar10-lt100-10pct", "--length", "start", "--method", "contrastmatch"]
    assert base.diff(run) == {"seed": 3}
    assert RECIPES.origin(Recipe("mine")) is None


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(own)}" for name, own in digests().items()]
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
