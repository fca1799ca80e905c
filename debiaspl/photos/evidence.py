"""Which of several models is used, by a paired test on labels that none of them learned from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from debiaspl.features.chance import mcnemar

SUPERVISED, GRAPH, DEBIASPL = "supervised", "graph", "DebiasPL"
SIGNIFICANT = 0.05
"""Two models differ significantly where chance alone would show as much less often than this."""


@dataclass(frozen=True)
class TrainedCandidate:
    """One of the models that were trained on the photos."""

    name: str
    results: dict[str, Any]
    folder: str = ""
    """Its folder below that of the run; empty for the run itself."""

    @property
    def right(self) -> int:
        """Checked labels that it predicts right."""
        return sum(row[number] for number, row in enumerate(self.results["confusion"]))

    @property
    def checked(self) -> int:
        return int(self.results["test"])

    @property
    def right_files(self) -> frozenset[str] | None:
        """Which labels it predicts right; None in results of an earlier version, which did not record them."""
        found = self.results.get("check", {}).get("right")
        return None if found is None else frozenset(found)


@dataclass(frozen=True)
class PairedCandidates:
    """Two models on the same labels."""

    more: int
    """Labels that only the first predicts right."""
    less: int
    """Labels that only the second does."""

    @property
    def chance(self) -> float:
        """How often two equally good models would differ as much, either way (McNemar's exact test)."""
        return mcnemar(self.more, self.less) if self.more + self.less else 1.0

    @property
    def significant(self) -> bool:
        return self.chance < SIGNIFICANT


def paired(first: TrainedCandidate, second: TrainedCandidate) -> PairedCandidates | None:
    """How two models differ, label by label; None where that was not recorded."""
    ours, theirs = first.right_files, second.right_files
    if ours is None or theirs is None:
        return None
    return PairedCandidates(len(ours - theirs), len(theirs - ours))


def choose_by_evidence(candidates: Sequence[TrainedCandidate], checked: bool) -> TrainedCandidate:
    """The model that is used: the last of the candidates, which was the best on average over many sets of photos
    (results/photos), unless another one is significantly better on these labels."""
    preferred = candidates[-1]
    better = [one for one in candidates[:-1] if _beats(one, preferred)] if checked else []
    return max(better, key=lambda one: one.right, default=preferred)


def _beats(one: TrainedCandidate, other: TrainedCandidate) -> bool:
    found = paired(one, other)
    return found is not None and found.more > found.less and found.significant
