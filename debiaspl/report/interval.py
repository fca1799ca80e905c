"""How sure a share is."""

import math

Z_95 = 1.959963984540054


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: unlike the normal one it stays within 0 to 1, and is no point at 0 or 1."""
    if total == 0:
        return 0.0, 1.0
    share, square = right / total, Z_95**2
    centre = (share + square / (2 * total)) / (1 + square / total)
    half = Z_95 / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    # At 0 and 1 the formula gives the bound itself, but for rounding.
    return (0.0 if right == 0 else centre - half), (1.0 if right == total else centre + half)
