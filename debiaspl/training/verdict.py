"""Judges a run by its measurements: nothing to report, its features collapse, or they were still improving.

A pure function of the lines of the log, so that a resumed run gives the same verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IN_A_ROW = 3
"""Measurements that must agree, together with all in the last tenth of the run's steps."""
MIN_STEPS = 100
"""A run with fewer steps is a trial that cannot learn anything."""
SETTLED = 0.15
"""Share of the steps before which there is no verdict: the first steps move features far, and back."""
ALIKE = 0.02
"""Spread below which all features are alike."""
FEW_DIRECTIONS = 0.2
"""Features with less than this share of their largest rank have collapsed."""
HALF_THE_DIRECTIONS, FEWER_DIRECTIONS = 0.55, 0.7
"""Below the first share of their largest rank since training began, features are collapsing; below the second, if they
learn nothing meanwhile. The healthy runs used to choose these values stayed above 0.65."""
NO_BETTER = 0.12
"""Healthy runs lowered the overlap by more than twice this in that time; runs that collapsed slowly by half of it."""
RANDOM_OVERLAP = 0.8
"""Overlap of features that hardly distinguish images, as with random weights."""
LEARNED = 0.06
"""Healthy runs lowered it by 0.12 and more in half of their steps; those that learned nothing by 0.03."""
SURE = 3.0
"""Number of standard errors by which the labeled images must have become worse."""
GOES_ON = 0.04
"""Decrease of the overlap in the last quarter of a run that more steps would continue."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """The finding; the algorithm knows what to do about it."""

    kind: str
    fact: str

    @property
    def is_warning(self) -> bool:
        """Whether something is wrong; otherwise it is a note."""
        return self.kind != IMPROVING


COLLAPSED, COLLAPSING, IDLE, WORSE, IMPROVING = "collapsed", "collapsing", "idle", "worse", "improving"


def verdict(history: Sequence[Record], steps: int, labels: int, classes: int = 0) -> Verdict | None:
    """The verdict after the last of these records, each a line of the log with its measurement under ``health``.

    Args:
        history: records from the first measurement, before training, to the last so far.
        steps: steps of the whole run.
        labels: number of labeled images for the accuracy of nearest neighbours.
        classes: number of classes, for an algorithm that learns labels, whose features may shrink to one direction per
            class; 0 for a self-supervised algorithm.
    """
    trained = [record for record in history if record["step"] > 0]
    first = history[0]["health"] if len(trained) < len(history) else None
    if steps < MIN_STEPS or len(trained) < IN_A_ROW or trained[-1]["step"] < SETTLED * steps:
        return None
    recent = max(IN_A_ROW, sum(record["step"] > trained[-1]["step"] - steps / 10 for record in trained))
    found = (
        _collapsed(trained, recent, first, classes)
        or _collapsing(trained, recent, classes)
        or _idle(trained, recent, first, steps)
        or _worse(trained, recent, first, steps, labels)
    )
    return _improving(trained) if found is None and trained[-1]["step"] == steps else found


def _values(records: Sequence[Record], name: str) -> list[float]:
    return [record["health"][name] for record in records]


def _collapsed(trained: Sequence[Record], recent: int, first: Record | None, classes: int) -> Verdict | None:
    """Nearly all features are alike, or in a few directions."""
    ranks, spreads = (_values(trained, name) for name in ("rank", "spread"))
    largest = max([*ranks, *([first["rank"]] if first else [])])
    least = FEW_DIRECTIONS * largest if not classes else min(FEW_DIRECTIONS * largest, (classes - 1) / 2)
    if max(spreads[-recent:]) >= ALIKE and max(ranks[-recent:]) >= least:
        return None
    return Verdict(
        COLLAPSED,
        f"The features have collapsed: their effective rank is {ranks[-1]:.1f} and was {largest:.1f}, and their spread "
        f"is {spreads[-1]:.2f}, where 1 is even and 0 is all alike{_loss(trained)}.",
    )


def _collapsing(trained: Sequence[Record], recent: int, classes: int) -> Verdict | None:
    """Fewer directions than before, for some time."""
    if classes:
        return None  # labels need one direction per class; the others may vanish
    ranks, overlaps = (_values(trained, name) for name in ("rank", "overlap"))
    best = max(range(len(ranks)), key=ranks.__getitem__)
    share = max(ranks[-recent:]) / max(ranks[best], 1e-9)
    learned = overlaps[best] - overlaps[-1] > NO_BETTER
    recovers = ranks[-1] > 1.05 * min(ranks)
    if len(ranks) - 1 - best < recent or recovers or share >= (HALF_THE_DIRECTIONS if learned else FEWER_DIRECTIONS):
        return None
    told = "" if learned else ", and images are distinguished no better"
    return Verdict(
        COLLAPSING,
        f"The features are collapsing slowly: their effective rank fell from {ranks[best]:.1f} at step "
        f"{trained[best]['step']:,} to {ranks[-1]:.1f}{told}{_loss(trained)}.",
    )


def _idle(trained: Sequence[Record], recent: int, first: Record | None, steps: int) -> Verdict | None:
    """Half of the run, and nothing learned."""
    if first is None or first["overlap"] < RANDOM_OVERLAP or 2 * trained[-1]["step"] < steps:
        return None  # features that were learned in another run may stay as they are
    now = min(_values(trained[-recent:], "overlap"))
    if first["overlap"] - now >= LEARNED:
        return None
    return Verdict(
        IDLE,
        "The features have learned almost nothing: two views of an image are as far apart as before training (overlap "
        f"{now:.2f}, and {first['overlap']:.2f} before){_loss(trained)}.",
    )


def _worse(trained: Sequence[Record], recent: int, first: Record | None, steps: int, labels: int) -> Verdict | None:
    """After half of the run, nearest neighbours of labeled images are worse than before training."""
    before = first["neighbours"] if first else None
    if before is None or 2 * trained[-1]["step"] < steps:
        return None
    now = max(_values(trained[-recent:], "neighbours"))
    error = math.sqrt(max(before * (1 - before), now * (1 - now)) * 2 / labels)
    if before - now <= SURE * error:
        return None
    return Verdict(
        WORSE,
        f"The features are worse than before training: {now:.0%} of the labeled images have a nearest neighbour of "
        f"their own class, compared with {before:.0%} before{_loss(trained)}.",
    )


def _improving(trained: Sequence[Record]) -> Verdict | None:
    """Still improving in the last quarter of the run."""
    overlaps = _values(trained, "overlap")
    before = overlaps[-1 - max(len(overlaps) // 4, 1)]
    if len(overlaps) < 2 * IN_A_ROW or before - overlaps[-1] < GOES_ON:
        return None
    return Verdict(
        IMPROVING,
        f"The features were still improving when the run ended: in its last quarter the overlap (distance between "
        f"views of one image, relative to different images) fell from {before:.2f} to {overlaps[-1]:.2f}.",
    )


def _loss(trained: Sequence[Record]) -> str:
    """The loss can be misleading, so it is shown too."""
    before, now = (sum(record["losses"].values()) for record in (trained[0], trained[-1]))
    return f", while the loss fell from {before:.2f} to {now:.2f}" if now < before else ""
