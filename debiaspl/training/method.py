"""Names of methods: ``debiaspl``, ``fixmatch``, ``supervised``, ``margins``, ALGORITHM, ALGORITHM+CORRECTION.

An algorithm alone is that of its paper, with the correction that belongs to it (``remixmatch`` has distribution
alignment); ``remixmatch+none`` leaves that out. Both may be classes in files: ``mine.py:Mine+debiaser``.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from debiaspl._checks import did_you_mean
from debiaspl.training.parts import PARTS, find, is_importable, names_file
from debiaspl.training.recipe import Choice, Recipe, with_defaults

DEBIASPL = "debiaspl"
"""FixMatch with the Debiaser, the default."""
MARGINS = "margins"
"""The Debiaser's margins in the losses, while labels are not debiased but aligned with the shares of the labels. Not
the paper's method; for unlabeled images that are distributed as the labels. It is FixMatch's, or ALGORITHM+margins."""
_MARGINS = Choice("alignment+debiaser", {"strength": 0.0, "margin_strength": 1.5, "labeled_strength": 1.0})
_OTHER_NAMES = {DEBIASPL: ("fixmatch", "debiaser"), MARGINS: ("fixmatch", MARGINS)}


def with_method(recipe: Recipe, method: str, load_files: bool = False) -> Recipe:
    """The recipe with this method. Settings that the new parts have too are kept; ``load_files`` as in
    ``Recipe.changed``."""
    algorithm, correction = _split(method)
    known = algorithm in PARTS["algorithm"] or names_file(algorithm)
    if not known and (meant := did_you_mean(method, _OTHER_NAMES)):
        raise ValueError(f"there is no method named {method!r}.{meant}")
    changed = recipe.changed(load_files, algorithm=algorithm)
    made = find("algorithm", algorithm)
    if correction == MARGINS:
        changed = replace(changed, correction=recipe.correction if _is_margins(recipe.correction) else _MARGINS)
    else:
        if _is_margins(recipe.correction):
            changed = replace(changed, correction=Choice("none"))  # keeps none of its settings
        changed = changed.changed(load_files, correction=made.own_correction if correction is None else correction)
        if correction is None:
            changed = changed.changed(**made.own_settings)
    if not made.makes_pseudo_labels and recipe.first_classifier == "graph":
        changed = replace(changed, first_classifier="random")  # the graph has used the unlabeled images
    return changed


def method_of(recipe: Recipe) -> str:
    algorithm, correction = recipe.algorithm.name, recipe.correction.name
    if _is_margins(recipe.correction):
        correction = MARGINS
    elif correction == "debiaser" and recipe.correction.settings.get("strength") == 0:
        correction = "none"  # a Debiaser that does nothing
    name = next((name for name, parts in _OTHER_NAMES.items() if parts == (algorithm, correction)), None)
    if name is not None:
        return name
    own, settings = "none", {}
    if is_importable("algorithm", algorithm):
        made = find("algorithm", algorithm)
        own, settings = made.own_correction, made.own_settings
    given = with_defaults("correction", recipe.correction) | with_defaults("algorithm", recipe.algorithm)
    as_in_paper = correction == own and all(given.get(key) == value for key, value in settings.items())
    return algorithm if as_in_paper else f"{algorithm}+{correction}"


def _split(method: str) -> tuple[str, str | None]:
    """Algorithm and correction; None for that of the algorithm's paper."""
    if method in _OTHER_NAMES:
        return _OTHER_NAMES[method]
    known = [name for name in PARTS["algorithm"] if method == name or method.startswith(f"{name}+")]
    in_file = re.match(r".*?\.py:\w+(?=\+|$)", method)
    # In fixmatch+mine.py:Mine the correction alone is in a file.
    algorithm = max(known, key=len, default=in_file[0] if in_file else method.partition("+")[0])
    correction = method[len(algorithm) :]
    return algorithm, correction.removeprefix("+") if correction else None


def _is_margins(correction: Choice) -> bool:
    """Whether it is the Debiaser with margins, but without debiased labels."""
    settings: Mapping[str, Any] = correction.settings
    margins = settings.get("margin_strength") or settings.get("labeled_strength")
    return "debiaser" in correction.name.split("+") and settings.get("strength") == 0 and bool(margins)
