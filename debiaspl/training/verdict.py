"""What the measurements of a run say of it: nothing, that its features collapse, or that they were still improving.

A pure function of the lines of the log, so that a run that is resumed says the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IN_A_ROW = 3
"""Measurements that must agree."""
ALIKE = 0.02
"""Spread of features that are all alike."""
FEW_DIRECTIONS = 0.2
"""Share of the largest rank below which features have collapsed, and of which they do not recover."""
FEWER_DIRECTIONS = 0.7
"""The same for a collapse that goes on, where views tell images apart no better meanwhile."""
NO_BETTER = 0.12
"""A fall of the overlap that is larger than this is learning."""
SURE = 3.0
"""Standard errors by which the labeled images must have got worse."""
GOES_ON = 0.03
"""A fall of the overlap over the last quarter of a run that is no longer learning at random."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What was found; what to do about it, the algorithm knows."""

    kind: str
    fact: str

    @property
    def is_warning(self) -> bool:
        """Whether something is wrong; if not, it is worth a note."""
        return self.kind != IMPROVING


COLLAPSED, COLLAPSING, WORSE, IMPROVING = "collapsed", "collapsing", "worse", "improving"


def verdict(history: Sequence[Record], steps: int, labels: int, classes: int = 0) -> Verdict | None:
    """What is found in the last of these records, each a line of the log with its measurement under ``health``.

    Args:
        history: from the first measurement, before training, to the last so far.
        steps: of the whole run.
        labels: labeled images that the accuracy of nearest neighbours comes from.
        classes: of an algorithm that learns labels, whose features may shrink to a direction for each class; 0 for one
            that learns features alone.
    """
    trained = [record for record in history if record["step"] > 0]
    first = history[0]["health"] if len(trained) < len(history) else None
    if len(trained) >= IN_A_ROW:
        for found in (_collapsed(trained, first, classes), _collapsing(trained, classes), _worse(trained, first, labels)):
            if found is not None:
                return found
    return _improving(trained) if trained and trained[-1]["step"] == steps else None


def _values(records: Sequence[Record], name: str) -> list[float]:
    return [record["health"][name] for record in records]


def _collapsed(trained: Sequence[Record], first: Record | None, classes: int) -> Verdict | None:
    """Nearly all features alike, or in a few directions."""
    ranks, spreads = (_values(trained, name) for name in ("rank", "spread"))
    largest = max([*ranks, *([first["rank"]] if first else [])])
    least = FEW_DIRECTIONS * largest if not classes else min(FEW_DIRECTIONS * largest, (classes - 1) / 2)
    if max(spreads[-IN_A_ROW:]) >= ALIKE and max(ranks[-IN_A_ROW:]) >= least:
        return None
    return Verdict(
        COLLAPSED,
        f"The features have collapsed: their effective rank is {ranks[-1]:.1f}, and was {largest:.1f}; images are "
        f"nearly alike to the network (spread {spreads[-1]:.2f}, where 1 is even){_loss(trained)}.",
    )


def _collapsing(trained: Sequence[Record], classes: int) -> Verdict | None:
    """Fewer directions than there were, for some time, and nothing learned for it."""
    if classes:
        return None  # labels need a direction for each class, and the others may go
    ranks, overlaps = (_values(trained, name) for name in ("rank", "overlap"))
    best = max(range(len(ranks)), key=ranks.__getitem__)
    now = ranks[-IN_A_ROW:]
    if len(ranks) - best <= IN_A_ROW or max(now) >= FEWER_DIRECTIONS * ranks[best]:
        return None
    if now[-1] > 1.01 * min(ranks) or overlaps[best] - overlaps[-1] > NO_BETTER:
        return None  # it recovers, or it has learned what is the same in all views of an image
    return Verdict(
        COLLAPSING,
        f"The features are collapsing slowly: their effective rank fell from {ranks[best]:.1f} at step "
        f"{trained[best]['step']:,} to {ranks[-1]:.1f}, and views tell images apart no better{_loss(trained)}.",
    )


def _worse(trained: Sequence[Record], first: Record | None, labels: int) -> Verdict | None:
    """Nearest neighbours of labeled images, against those with random weights."""
    before = first["neighbours"] if first else None
    if before is None or len(trained) < 2 * IN_A_ROW:
        return None
    now = max(_values(trained[-IN_A_ROW:], "neighbours"))
    error = math.sqrt(max(before * (1 - before), now * (1 - now)) * 2 / labels)
    if before - now <= SURE * error:
        return None
    return Verdict(
        WORSE,
        f"The features are worse than before training: {now:.0%} of the labeled images have a nearest neighbour of "
        f"their own class, and {before:.0%} had{_loss(trained)}.",
    )


def _improving(trained: Sequence[Record]) -> Verdict | None:
    """In the last quarter of the run."""
    overlaps = _values(trained, "overlap")
    before = overlaps[-1 - max(len(overlaps) // 4, 1) :][0]
    if len(overlaps) < 2 * IN_A_ROW or before - overlaps[-1] < GOES_ON:
        return None
    return Verdict(
        IMPROVING,
        f"The features were still improving when the run ended: the overlap of images, as views show them, fell from "
        f"{before:.2f} to {overlaps[-1]:.2f} in its last quarter.",
    )


def _loss(trained: Sequence[Record]) -> str:
    """It is the loss that misleads."""
    before, now = (sum(record["losses"].values()) for record in (trained[0], trained[-1]))
    return f", while the loss fell from {before:.2f} to {now:.2f}" if now < before else ""
