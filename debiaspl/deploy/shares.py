"""The class shares that a saved model knows, and how its probabilities are changed for others.

The network's own probabilities are for the shares of its run (``optimise`` photos) or for even ones (classes).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import distance
from debiaspl.features.shares import PHOTOS, ClassShares, certain, count_shares, smoothed

RUN, FOLDER, EVEN = "run", "folder", "even"
ROUNDS = 10
"""Rounds in which the shares of a folder and the labels of its photos are found by each other."""
DIFFERENT, FAR = 0.01, 0.05
"""Two folders differ if chance alone would show as much less often than this, and by more than this share of photos."""


def unlike_labels(shares: Mapping[str, Sequence[float]], classes: Sequence[str]) -> str:
    """Where the labels of a run have other class shares than its photos without one: of the class that differs most, in
    words; empty where they may be the same. ``shares`` are those of its results."""
    parts = zip(classes, *(shares[name] for name in ("estimate", "low", "high", "labels")), strict=True)
    apart = [part for part in parts if not part[2] <= part[4] <= part[3]]
    if not apart or distance(shares["labels"], shares["estimate"]) < FAR:
        return ""
    name, share, _, _, given = max(apart, key=lambda part: abs(part[1] - part[4]))
    return f"{name} is {percent(given)} % of your labels, but about {percent(share)} % of the other photos"


def percent(share: float) -> str:
    return f"{100 * share:.0f}" if share > 0.02 else f"{100 * share:.1f}"


@dataclass(frozen=True, eq=False)
class SavedShares:
    """Shares of the run's unlabeled photos, and those that are used."""

    run: ClassShares
    optimise: str
    counts: Tensor
    """How often the model predicts each class for all photos of its run."""
    temperature: float
    """By which logits are divided, so that confidence means what it says."""
    used: str
    """``run``, ``folder`` or ``even``."""
    folder: ClassShares | None = None

    @classmethod
    def of(cls, values: Any, classes: int) -> "SavedShares":
        """From the file of a model, which is untrusted. Raises ValueError."""
        try:
            estimate, error, counts = (
                torch.tensor(values[name], dtype=torch.float64) for name in ("estimate", "error", "counts")
            )
            weight, temperature, optimise = values["weight"], values["temperature"], values["optimise"]
            good = (
                all(part.shape == (classes,) and bool((part >= 0).all()) for part in (estimate, error, counts))
                and bool((estimate > 0).all())
                and bool(torch.cat((estimate, error, counts)).isfinite().all())
                and isinstance(weight, int | float)
                and 0 <= weight <= 1
                and isinstance(temperature, int | float)
                and 0 < temperature < 1e6
                and optimise in ("photos", "classes")
            )
        except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as wrong:
            raise ValueError(f"its class shares are damaged ({type(wrong).__name__}: {wrong})") from wrong
        if not good:
            raise ValueError("its class shares are damaged: expected a positive share for each class")
        used = RUN if optimise == PHOTOS else EVEN
        return cls(ClassShares(estimate, error, float(weight)), optimise, counts, float(temperature), used)

    @property
    def usual(self) -> str:
        """What is used unless a user says otherwise, which is what the network's own probabilities are for."""
        return RUN if self.optimise == PHOTOS else EVEN

    def using(self, name: str) -> "SavedShares":
        if name not in (RUN, FOLDER, EVEN):
            raise ValueError(f"--shares is {name}, expected run, folder or even.")
        return replace(self, used=name)

    def adjusted(self, probabilities: Tensor) -> Tensor:
        """The network's probabilities, (N, C), for the shares that are used."""
        shift = self.shift()
        if not shift.any() and self.temperature == 1:
            return probabilities
        return self._shifted(probabilities, shift)

    def shift(self) -> Tensor:
        """What is added to the network's logits before they are divided by the temperature."""
        return self._log(self.used) - self._log(self.usual)

    def of_folder(self, probabilities: Tensor) -> "SavedShares":
        """With the shares of the photos whose network probabilities are these. They are counted from predictions, so
        that their error is that of the run's shares and, beside it, that of so many photos."""
        even = self._shifted(probabilities, -self._log(self.usual)).double().log()
        size, rows = even.shape[1], len(even)
        shares = ClassShares.even(size)
        for _ in range(ROUNDS):
            found = smoothed(count_shares((even + shares.log()).argmax(-1), size), rows)
            shares = certain(found, self.run.error.square() + found * (1 - found) / rows)
        return replace(self, used=FOLDER, folder=shares)

    def differs(self, counts: Mapping[str, int], classes: Sequence[str]) -> str:
        """The class whose share in these predictions differs most from that of the run, if they differ significantly;
        otherwise empty. Both must have been predicted for the usual shares."""
        here = torch.tensor([counts.get(name, 0) for name in classes], dtype=torch.float64)
        totals = here.sum(), self.counts.sum()
        if not all(totals) or distance(here.tolist(), self.counts.tolist()) < FAR:
            return ""
        from scipy.special import chdtrc

        both = here + self.counts
        expected = [both * total / both.sum() for total in totals]
        apart = sum(
            float(((one - other).square() / other.clamp_min(1e-12)).sum())
            for one, other in zip((here, self.counts), expected, strict=True)
        )
        if chdtrc(max(int((both > 0).sum()) - 1, 1), apart) > DIFFERENT:
            return ""
        place = int((here / totals[0] - self.counts / totals[1]).abs().argmax())
        then, now = (100 * float(part[place] / part.sum()) for part in (self.counts, here))
        return f"{classes[place]} {now:.0f} % instead of {then:.0f} %"

    def _log(self, name: str) -> Tensor:
        shares = {RUN: self.run, FOLDER: self.folder, EVEN: None}[name]
        return torch.zeros_like(self.run.estimate) if shares is None else shares.log()

    def _shifted(self, probabilities: Tensor, shift: Tensor) -> Tensor:
        logits = probabilities.clamp_min(torch.finfo(torch.float32).tiny).log() + shift.to(probabilities)
        return (logits / self.temperature).softmax(-1)
