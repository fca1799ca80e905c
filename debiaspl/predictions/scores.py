"""Probabilities or logits of every class, read in parts: the whole may be far larger than its results."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debiaspl.predictions.table import SUM_TOLERANCE, PredictionsError, rows_named

PART_NUMBERS = 2_000_000
"""Scores processed at a time: 8 MB of float32, which fit in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores with a row per prediction and a column per class."""

    values: NDArray[Any]
    are_logits: bool

    def __len__(self) -> int:
        return len(self.values)

    @property
    def num_classes(self) -> int:
        return int(self.values.shape[1])

    def parts(self) -> Iterator[slice]:
        size = max(1, PART_NUMBERS // self.num_classes)
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    def logits(self, rows: slice) -> NDArray[np.float32]:
        """Logits of some rows; for probabilities, their logarithm, with the smallest normal number for 0."""
        values = self.values[rows].astype(np.float32)
        return values if self.are_logits else np.log(np.maximum(values, np.finfo(np.float32).tiny))

    def probabilities(self, rows: slice) -> NDArray[np.float32]:
        """Probabilities of some rows; they sum to 1."""
        values = self.values[rows].astype(np.float32)
        if self.are_logits:
            values -= values.max(1, keepdims=True)
            np.exp(values, out=values)
        values /= values.sum(1, keepdims=True)
        return values

    def check(self) -> None:
        if self.num_classes < 2:
            raise PredictionsError(
                f"the scores have {self.num_classes} column, expected one for each class: p and 1 - p."
            )
        kind = "logits" if self.are_logits else "probabilities"
        expected = "finite" if self.are_logits else "numbers from 0 on that sum to 1, one for each class"
        todo = "" if self.are_logits else "; logits are named logit:CLASS, or by --column logits=NAME"
        for rows in self.parts():
            values = self.values[rows]
            with np.errstate(invalid="ignore"):  # a row may have both infinities
                good, sums = np.isfinite(values).all(1), values.sum(1, dtype=np.float64)
            if not self.are_logits:
                good &= (values >= 0).all(1) & (np.abs(sums - 1) <= SUM_TOLERANCE)
            if good.all():
                continue
            bad = np.flatnonzero(~good)
            first = f"from {values[bad[0]].min():.4g} to {values[bad[0]].max():.4g}, with the sum {sums[bad[0]]:.4g}"
            where = f"in {rows_named((bad + rows.start).tolist())} (the first is {first})"
            raise PredictionsError(f"the {kind} {where} are not {expected}. Correct them, or leave them out{todo}.")
