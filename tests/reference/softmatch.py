"""SoftMatch (Chen et al., 2023) with plain loops, written from the paper's formulas."""

import math

from tests.reference.paper import Vector


def moved(mean: float, variance: float, confidences: Vector, decay: float) -> tuple[float, float]:
    """mu and sigma^2 after a batch: m times what was, 1 - m times the batch's mean and B / (B - 1) its variance."""
    size = len(confidences)
    batch_mean = sum(confidences) / size
    batch_variance = sum((value - batch_mean) ** 2 for value in confidences) / size
    unbiased = size / (size - 1) * batch_variance if size > 1 else 0.0
    return decay * mean + (1 - decay) * batch_mean, decay * variance + (1 - decay) * unbiased


def weight(confidence: float, mean: float, variance: float, sharpness: float) -> float:
    """1 from the mean on; below it, a Gaussian whose standard deviation is sigma / sharpness."""
    if confidence >= mean or sharpness == 0:
        return 1.0
    deviation = math.sqrt(variance) / sharpness
    return math.exp(-((confidence - mean) ** 2) / (2 * deviation**2))
