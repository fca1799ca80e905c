"""How sure a share is."""


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: unlike the normal one it stays within 0 to 1, and is no point at 0 or 1."""
    if total == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest

    low, high = binomtest(right, total).proportion_ci(method="wilson")
    return float(low), float(high)
