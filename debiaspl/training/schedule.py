"""The learning rate."""

import math


def cosine(step: int, steps: int) -> float:
    """FixMatch's factor at step k of K: cos(7 pi k / 16 K), from 1 down to 0.195."""
    return math.cos(7 * math.pi * step / (16 * steps))
