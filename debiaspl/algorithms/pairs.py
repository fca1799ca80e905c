"""Checks that an algorithm and a correction make sense together, from their class attributes."""

from typing import TYPE_CHECKING

from debiaspl.debias import Correction

if TYPE_CHECKING:
    from debiaspl.algorithms.algorithm import Algorithm


def check_pair(algorithm: "Algorithm") -> None:
    """Raise if the correction, or a part of it, would have no effect or makes no sense with this algorithm."""
    name = type(algorithm).__name__
    for part in algorithm.correction.each():
        other = type(part).__name__
        if not algorithm.learns_labels and type(part) is not Correction:
            raise ValueError(
                f"{name} learns without labels, so there is nothing for {other} to correct. Use correction=none."
            )
        if part.corrects_pseudo_labels_alone and not algorithm.makes_pseudo_labels:
            raise ValueError(
                f"{name} makes no pseudo-labels, and {other} corrects nothing else, so it would have no effect. "
                "Use correction=none, or a correction of the labeled loss or of the classifier."
            )
        if part.needs_hard_labels and not algorithm.hard_labels:
            raise ValueError(
                f"{name} learns from soft or mixed targets, but {other} needs one class per image for its margin. "
                f"Use {other} with an algorithm that has hard labels, such as fixmatch."
            )
