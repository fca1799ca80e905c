"""Sums of losses and monitors between two lines of the log. They stay on the device, so that no step waits for it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from debiaspl._shares import distance
from debiaspl.data import ImageSet
from debiaspl.debias import ranks


class Monitor:
    """Sums over the steps since the last line. The only place that reads the true labels of unlabeled images."""

    def __init__(self, true: list[int] | None = None) -> None:
        """``true`` are the counts of the true classes of the unlabeled images, if known."""
        self.sums: dict[str, Tensor] = {}
        self.true = true

    @torch.no_grad()
    def add(self, losses: Mapping[str, Tensor], monitors: Mapping[str, Tensor], truth: Tensor, classes: int) -> None:
        """Add one step: its losses, its monitors, and the true labels of its unlabeled images (-1: unknown)."""
        for name, value in losses.items():
            self._sum(f"losses/{name}", value)
        for name, value in monitors.items():
            if value.ndim == 0:
                self._sum(f"means/{name}", value)
        if "marginal" in monitors:
            self._sum("marginal", monitors["marginal"])
        if "kept" in monitors and "pseudo_label" in monitors:
            kept, label = monitors["kept"].to(torch.int64), monitors["pseudo_label"]
            known = kept * (truth >= 0)
            self._sum("kept", kept.to(torch.float32).mean())
            self._sum("known", known.sum())
            right = known * (label == truth)
            self._sum("right", right.sum())
            self._sum("counts", kept.new_zeros(classes).scatter_add(0, label, kept))
            self._sum("right_counts", kept.new_zeros(classes).scatter_add(0, label, right))
        self._sum("steps", torch.ones((), dtype=torch.int64, device=truth.device))

    def _sum(self, name: str, value: Tensor) -> None:
        # float64, so that the sum over a window does not depend on where the run was interrupted.
        value = value.detach().to(torch.float64 if value.is_floating_point() else torch.int64)
        if name not in self.sums:
            self.sums[name] = torch.zeros_like(value)
        self.sums[name] += value

    def load(self, sums: Mapping[str, Tensor], device: torch.device) -> None:
        """Load the sums of a checkpoint, which are those of all ranks."""
        self.sums = {name: value.to(device, copy=True) for name, value in sums.items()}
        if ranks.own():
            self.sums = {name: torch.zeros_like(value) for name, value in self.sums.items()}

    def collect(self) -> None:
        """Add up the sums of all ranks on the first; the others are set to 0. One rank's state is then the run's."""
        if ranks.count() > 1:
            for value in self.sums.values():
                total = ranks.summed(value)
                value.copy_(torch.zeros_like(total) if ranks.own() else total)

    def summary(self) -> dict[str, Any]:
        """Summary of these steps for the log, on the first rank; resets the sums."""
        self.collect()
        if ranks.own():
            return {"losses": {}}
        sums: dict[str, Any] = {name: value.tolist() for name, value in self.sums.items()}
        for value in self.sums.values():
            value.zero_()  # in place, because a recorded step adds to these very tensors
        steps = sums["steps"]
        means: dict[str, dict[str, Any]] = {"losses": {}, "means": {}}
        for name in (name for name in sums if "/" in name):
            group, _, own_name = name.partition("/")
            means[group][own_name] = sums[name] / steps
        record: dict[str, Any] = {"losses": means["losses"], **means["means"]}
        if "kept" in sums:
            record["kept"] = sums["kept"] / steps
            record["pseudo_labels"] = sums["counts"]
            record["pseudo_distance"] = distance(sums["counts"], self.true) if any(sums["counts"]) else None
            record["pseudo_known"], record["pseudo_right"] = sums["known"], sums["right"]
            record["pseudo_right_labels"] = sums["right_counts"]
            # None if no label was kept, or if the true labels are not known.
            record["pseudo_accuracy"] = sums["right"] / sums["known"] if sums["known"] else None
        if "marginal" in sums:
            record["marginal"] = [value / steps for value in sums["marginal"]]
        return record


def true_counts(unlabeled: ImageSet) -> list[int] | None:
    """Number of unlabeled images of each true class; None if some are not known."""
    truth = unlabeled.truth
    if not len(truth) or int(truth.min()) < 0:
        return None
    return torch.bincount(truth, minlength=unlabeled.num_classes).tolist()
