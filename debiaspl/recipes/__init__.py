"""The paper's experiments and ours: a cell, a length and a method."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from debiaspl._checks import did_you_mean
from debiaspl.recipes.cells import CELLS, VARIANTS, settings_for
from debiaspl.recipes.start import start_of_cell
from debiaspl.training import Recipe
from debiaspl.training.method import method_of, with_method
from debiaspl.training.parts import PARTS, find


def recipe(name: str, length: str | None = None, method: str | None = None, load_files: bool = False) -> Recipe:
    """The recipe of a cell.

    Args:
        name: the cell, such as ``cifar10-40``; ``RECIPES`` has all of them.
        length: ``paper``, ``fast``, ``minutes`` or ``start``; by default the first that the cell has.
        method: such as ``fixmatch`` or ``remixmatch+debiaser``; by default that of the length. Features without labels
            (``moco``, ``simclr``, ``swav``) have one length.
        load_files: whether the method may be a class in a file, ``mine.py:Mine``, which is then executed.
    """
    if name not in CELLS:
        hint = did_you_mean(name, CELLS)
        raise ValueError(f"there is no recipe named {name!r}.{hint} For a list: debiaspl list recipes.")
    cell = CELLS[name]
    if method is not None and not _learns_labels(method):
        return start_of_cell(cell, method)
    first = next(iter(cell.lengths))
    length = length or first
    base = cell.base(length)
    default = method_of(base)
    method = method or default
    if method in VARIANTS and not settings_for(cell, length, method):
        raise ValueError(f"{name} has no method {method!r}, which is one of ImageNet.")
    # A method of another name may be the same: fixmatch+debiaser is debiaspl.
    made = base if method == default else with_method(base, VARIANTS.get(method, method), load_files)
    method = method if method in VARIANTS else method_of(made)
    made = made.changed(**settings_for(cell, length, method))
    parts = [name, *([length] if length != first else []), *([method] if method != default else [])]
    return replace(
        made,
        name="-".join(re.sub(r"[^\w.+-]+", "-", part) for part in parts),
        about=f"{cell.about}{'' if length == first else f', {length}'}",
        paper=cell.papers.get(method) if length == "paper" else None,
    )


def _learns_labels(method: str) -> bool:
    return method not in PARTS["algorithm"] or find("algorithm", method).learns_labels


class _Recipes(Mapping[str, Recipe]):
    """The recipe of every cell, with its first length and the method of that; built when it is asked for."""

    def __getitem__(self, name: str) -> Recipe:
        if name not in CELLS:
            raise KeyError(name)
        return recipe(name)

    def __contains__(self, name: object) -> bool:
        return name in CELLS

    def __iter__(self) -> Iterator[str]:
        return iter(CELLS)

    def __len__(self) -> int:
        return len(CELLS)

    def origin(self, run: Recipe) -> tuple[Recipe, list[str]] | None:
        """The recipe that a run began with, by its name and method, and the options of ``debiaspl train`` for it."""
        method = method_of(run)
        if _learns_labels(method):
            names = [one for one in CELLS if run.name == one or run.name.startswith(f"{one}-")]
        else:
            names = [one.name for one in CELLS.values() if one.start and run.name.startswith(one.start)]
        if not names:
            return None
        cell = CELLS[max(names, key=len)]
        rest, lengths = run.name.removeprefix(cell.name), list(cell.lengths)
        length = next((one for one in lengths if rest == f"-{one}" or rest.startswith(f"-{one}-")), lengths[0])
        method = next((one for one in VARIANTS if rest.startswith(f"-{one}")), method)
        try:
            base = recipe(cell.name, length, method)
        except ValueError:  # such as a method in a file, which is not executed
            return None
        options = ["--recipe", cell.name, *(["--length", length] if length != lengths[0] else [])]
        return base, options + (["--method", method] if base != recipe(cell.name, length) else [])


RECIPES = _Recipes()

__all__ = ["RECIPES", "recipe"]
