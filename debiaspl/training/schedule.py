"""The learning rate."""

import math

FIXMATCH = 7 / 16
HALF_WAVE = 1.0


def rate(number: int, length: int, arc: float = FIXMATCH, warm_up: float = 0.0) -> float:
    """The factor at step ``number`` of ``length``: linear from 0 to 1 over the first share ``warm_up`` of the steps,
    then cos(arc pi k / K) over the other K steps. FixMatch's arc of 7/16 ends at 0.195, an arc of 1/2 at 0. An arc of 1
    is the half wave of the ImageNet scripts, (1 + cos(pi k / K)) / 2, which ends at 0 as well."""
    rising = round(warm_up * length)
    if number < rising:
        return (number + 1) / rising  # the first step is above 0, since a rate of 0 would waste it
    wave = math.cos(arc * math.pi * (number - rising) / (length - rising))
    return (1 + wave) / 2 if arc == HALF_WAVE else wave
