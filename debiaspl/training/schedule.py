"""The learning rate."""

import math

FIXMATCH = 7 / 16


def cosine(step: int, steps: int, arc: float = FIXMATCH) -> float:
    """The factor at step k of K: cos(arc pi k / K). FixMatch's arc of 7/16 ends at 0.195, one of 1/2 at 0."""
    return math.cos(arc * math.pi * step / steps)
