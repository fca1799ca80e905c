"""Which images a person should look at."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from debiaspl.report.audit.favoured import Favoured, favoured
from debiaspl.report.audit.numbers import Audit

UNCERTAIN, CHANGED, MISTAKEN = 20, 60, 20


@dataclass(frozen=True, eq=False)
class Picks:
    """Rows of the predictions, in the order to be shown."""

    favoured: Favoured
    uncertain: NDArray[np.int64]
    """The least certain images of the favoured class."""
    changed: NDArray[np.int64]
    """Images that the correction would give another class, the surest first."""
    mistaken: NDArray[np.int64]
    """Wrong and sure of it."""

    @property
    def rows(self) -> list[int]:
        """All of them, each once, the most useful first."""
        return list(dict.fromkeys(np.concatenate([self.uncertain, self.changed, self.mistaken]).tolist()))


def picks(audit: Audit) -> Picks:
    predictions, none = audit.predictions, np.empty(0, np.int64)
    most, confidence, truth = favoured(audit), predictions.confidence, predictions.truth
    uncertain = mistaken = none
    if confidence is not None:
        own = np.flatnonzero(predictions.label == most.number)
        uncertain = own[np.argsort(confidence[own], kind="stable")][:UNCERTAIN]
        if truth is not None:
            wrong = np.flatnonzero((truth >= 0) & (truth != predictions.label))
            mistaken = wrong[np.argsort(-confidence[wrong], kind="stable")][:MISTAKEN]
    changed = none if audit.change is None else audit.change.rows[:CHANGED]
    return Picks(most, uncertain, changed, mistaken)
