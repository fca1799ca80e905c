"""What a recipe's method is called in tables: the name that papers use, where there is one."""

from collections.abc import Mapping
from typing import Any

from debiaspl.training import Choice, Recipe

DEBIASPL, FIXMATCH = "DebiasPL", "FixMatch"
MARGINS = "DebiasPL's margins"
"""The Debiaser whose labels are not debiased: with strength 0, but margins."""
ALIGNED_MARGINS = f"{MARGINS} + alignment"
MARGINS_WORDS = (
    f"{MARGINS}: the Debiaser widens the margins of the losses, and no label is debiased. That is not the paper's "
    "method. + alignment: labels are aligned with the shares of the labeled images"
)
"""For readers of a table with such rows."""
ALGORITHMS = {"fixmatch": FIXMATCH, "abc": "ABC", "acr": "ACR", "crest": "CReST", "crest+": "CReST+"}
CORRECTIONS = {"debiaser": DEBIASPL, "simpro": "SimPro", "cdmad": "CDMAD"}
"""The names of FixMatch with these corrections."""


def correction_name(correction: Choice) -> str:
    """Nothing, where predictions and losses stay as they are; otherwise the name of what corrects them."""
    parts = correction.name.split("+")
    names = [] if correction.name == "none" else [CORRECTIONS.get(part, part) for part in parts if part != "debiaser"]
    if "debiaser" not in parts:
        return "+".join(names)
    labels, margin, labeled = _strengths(correction.settings)
    own = [DEBIASPL] if labels else [MARGINS] if margin or labeled else []
    return " + ".join([*own, *names])


def _strengths(settings: Mapping[str, Any]) -> tuple[float, float, float]:
    """Of the Debiaser, with its defaults: on labels, on the unlabeled loss and on the labeled loss."""
    strength = settings.get("strength", 0.5)
    margin = settings.get("margin_strength")
    return strength, strength if margin is None else margin, settings.get("labeled_strength", 0.0)


def method_name(recipe: Recipe) -> str:
    """Of algorithm and correction. In our short recipes FixMatch is contrastmatch, FixMatch with a contrast."""
    algorithm, correction = recipe.algorithm.name, correction_name(recipe.correction)
    if algorithm == "contrastmatch" and any(kind in recipe.name for kind in ("-minutes", "-start")):
        algorithm = "fixmatch"
    first = ALGORITHMS.get(algorithm, algorithm)
    if not correction:
        return first
    stands_alone = correction.startswith(DEBIASPL) or correction in CORRECTIONS.values()
    return correction if algorithm == "fixmatch" and stands_alone else f"{first} + {correction}"
