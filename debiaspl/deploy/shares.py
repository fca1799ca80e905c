"""The class shares that a saved model knows, and how its probabilities are changed for others.

The network's own probabilities are for the shares of its run (``optimise`` photos) or for even ones (classes).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import distance, unlike
from debiaspl.data import DataError
from debiaspl.features.shares import CLASSES, PHOTOS, ClassShares, certain, count_shares, smoothed

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


def on_all_photos(
    labels: Sequence[float], predicted: Sequence[float], recall: Sequence[float | None], shares: Sequence[float] = ()
) -> str:
    """Where labels are spread over the classes so unlike the photos that they do not measure the accuracy on these:
    what that is, in words, by the ``recall`` of each class and the estimated ``shares``; otherwise empty."""
    if not unlike(labels, [share * sum(predicted) / sum(shares) for share in shares] or predicted):
        return ""
    text = "The labels have other class shares than the photos seem to have"
    known = [(share, part) for share, part in zip(shares or predicted, recall, strict=True) if part is not None]
    if not shares or not (total := sum(share for share, _ in known)):  # what a model predicts may be one class alone
        return f"{text}: on all photos, the share can be another."
    right = sum(share * part for share, part in known) / total
    return f"{text}. Weighed by these, about {100 * right:.0f} % of all photos are right."


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
        """From the file of a model, which is untrusted. Raises DataError."""
        try:
            numbers = torch.tensor([values[name] for name in ("estimate", "error", "counts")], dtype=torch.float64)
            weight, temperature, optimise = float(values["weight"]), float(values["temperature"]), values["optimise"]
            good = (
                numbers.shape == (3, classes)
                and bool(((numbers >= 0) & numbers.isfinite()).all() and (numbers[0] > 0).all())
                and 0 <= weight <= 1
                and 0 < temperature < 1e6
                and optimise in (PHOTOS, CLASSES)
            )
        except (KeyError, TypeError, ValueError, RuntimeError, OverflowError):
            good = False
        if not good:
            found = "the class shares of the model are damaged, expected a positive one for each class"
            raise DataError(f"{found}. Restore the run from a copy, or train again.")
        estimate, error, counts = numbers
        shares = cls(ClassShares(estimate, error, weight), optimise, counts, temperature, "")
        return replace(shares, used=shares.usual)

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
        rows, size = even.shape
        shares = ClassShares.even(size)
        for _ in range(ROUNDS):
            counted = smoothed(count_shares((even + shares.log()).argmax(-1), size), rows)
            shares = certain(counted, self.run.error.square() + counted * (1 - counted) / rows)
        return replace(self, used=FOLDER, folder=shares)

    def differs(self, now: Mapping[str, int], classes: Sequence[str]) -> str:
        """The class whose share in these predictions differs most from that of the run, if they differ significantly;
        otherwise empty, as with other shares than the usual ones."""
        counts = torch.stack((torch.tensor([now.get(name, 0) for name in classes]).double(), self.counts))
        totals = counts.sum(1, keepdim=True)
        if self.used != self.usual or not totals.all() or distance(*counts.tolist()) < FAR:
            return ""
        from scipy.special import chdtrc

        expected = totals * counts.sum(0) / totals.sum()
        apart = float(((counts - expected).square() / expected.clamp_min(1e-12)).sum())
        if chdtrc(max(int((expected[0] > 0).sum()) - 1, 1), apart) > DIFFERENT:
            return ""
        here, before = counts / totals
        place = int((here - before).abs().argmax())
        return f"{classes[place]} {100 * here[place]:.0f} % instead of {100 * before[place]:.0f} %"

    def _log(self, name: str) -> Tensor:
        shares = {RUN: self.run, FOLDER: self.folder, EVEN: None}[name]
        return torch.zeros_like(self.run.estimate) if shares is None else shares.log()

    def _shifted(self, probabilities: Tensor, shift: Tensor) -> Tensor:
        logits = probabilities.clamp_min(torch.finfo(torch.float32).tiny).log() + shift.to(probabilities)
        return (logits / self.temperature).softmax(-1)
