"""The paper's experiments and ours, by name."""

import difflib

from debiaspl.recipes import cifar10, digits, eurosat, imagenet, long_tail, start
from debiaspl.training import Recipe

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for module in (digits, cifar10, long_tail, eurosat, imagenet, start)
    for recipe in module.RECIPES
}


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in RECIPES:
        if name and any(known.startswith(f"{name}-") for known in RECIPES):  # a set, or part of a name
            raise ValueError(
                f"there is no recipe named {name!r}. For those that begin so: debiaspl list recipes {name}."
            )
        close = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ValueError(f"there is no recipe named {name!r}.{hint} For a list: debiaspl list recipes.")
    return RECIPES[name]


__all__ = ["RECIPES", "recipe"]
