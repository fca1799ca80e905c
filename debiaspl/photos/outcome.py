"""What training on photos has measured: the run itself, and the models that it is compared with."""

from dataclasses import dataclass
from typing import Any

from debiaspl.features.crosscheck import GRAPH, SUPERVISED, Candidate
from debiaspl.photos.check import Check
from debiaspl.training import Recipe
from debiaspl.training.method import method_of, with_method


@dataclass(frozen=True)
class Outcome:
    """What was measured."""

    candidates: tuple[Candidate, ...]
    """The models to compare with, and, last, the run itself."""
    check: Check
    chosen: Candidate
    """The one that is used."""
    results: dict[str, Any]
    """Of the run itself."""

    @property
    def baseline(self) -> Candidate | None:
        """The supervised model; None where the run itself is supervised."""
        return self.candidates[0] if len(self.candidates) > 1 else None

    @property
    def frozen(self) -> bool:
        """Whether the features are those of a frozen encoder, which is what was measured on many folders."""
        return any(one.name == GRAPH for one in self.candidates)


def methods_to_compare(recipe: Recipe, frozen: bool) -> dict[str, Recipe]:
    """What is trained, by the names of methods: models to compare with, and, last, the recipe itself."""
    recipes: dict[str, Recipe] = {}
    if recipe.algorithm.name != SUPERVISED:
        recipes[SUPERVISED] = with_method(recipe, SUPERVISED)
        if frozen and recipe.algorithm.name != GRAPH:
            recipes[GRAPH] = with_method(recipe, GRAPH).changed(first_classifier="graph")
    return {**recipes, method_of(recipe): recipe}
