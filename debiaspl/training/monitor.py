"""What is watched between two lines of the log. Sums stay on the device: nothing waits for it inside a step."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from debiaspl._shares import distance
from debiaspl.data import ImageSet
from debiaspl.debias import ranks


class Monitor:
    """Sums over the steps since the last line. The one place where the truth of unlabeled images is looked at."""

    def __init__(self, true: list[int] | None = None) -> None:
        """``true`` counts the true classes of the unlabeled images, where they are known."""
        self.sums: dict[str, Tensor] = {}
        self.true = true

    @torch.no_grad()
    def add(self, losses: Mapping[str, Tensor], monitors: Mapping[str, Tensor], truth: Tensor, classes: int) -> None:
        """One step's losses, what its algorithm reported, and the truth of its unlabeled images (-1: unknown)."""
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
        # float64: the sum over a window must not depend on where a stop has cut it.
        value = value.detach().to(torch.float64 if value.is_floating_point() else torch.int64)
        if name not in self.sums:
            self.sums[name] = torch.zeros_like(value)
        self.sums[name] += value

    def load(self, sums: Mapping[str, Tensor], device: torch.device) -> None:
        """Go on with the sums of a checkpoint, which are those of all ranks."""
        self.sums = {name: value.to(device, copy=True) for name, value in sums.items()}
        if ranks.own():
            self.sums = {name: torch.zeros_like(value) for name, value in self.sums.items()}

    def collect(self) -> None:
        """What all ranks have summed, on the first; the others begin anew. One rank's state is then the run's."""
        if ranks.count() > 1:
            for value in self.sums.values():
                total = ranks.summed(value)
                value.copy_(torch.zeros_like(total) if ranks.own() else total)

    def summary(self) -> dict[str, Any]:
        """What the log shows of these steps, on the first rank; empties the sums."""
        self.collect()
        if ranks.own():
            return {"losses": {}}
        sums: dict[str, Any] = {name: value.tolist() for name, value in self.sums.items()}
        for value in self.sums.values():
            value.zero_()  # in place: a recorded step adds to these very tensors
        steps = sums["steps"]
        losses = {name.partition("/")[2]: value / steps for name, value in sums.items() if name.startswith("losses/")}
        record: dict[str, Any] = {"losses": losses}
        record |= {name.partition("/")[2]: value / steps for name, value in sums.items() if name.startswith("means/")}
        if "kept" in sums:
            record["kept"] = sums["kept"] / steps
            record["pseudo_labels"] = sums["counts"]
            record["pseudo_distance"] = distance(sums["counts"], self.true) if any(sums["counts"]) else None
            record["pseudo_known"], record["pseudo_right"] = sums["known"], sums["right"]
            record["pseudo_right_labels"] = sums["right_counts"]
            # None where no label was kept, or where nobody knows the truth.
            record["pseudo_accuracy"] = sums["right"] / sums["known"] if sums["known"] else None
        if "marginal" in sums:
            record["marginal"] = [value / steps for value in sums["marginal"]]
        return record


def true_counts(unlabeled: ImageSet) -> list[int] | None:
    """Unlabeled images of each true class; None where that of an image is not known."""
    truth = unlabeled.truth
    if not len(truth) or int(truth.min()) < 0:
        return None
    return torch.bincount(truth, minlength=unlabeled.num_classes).tolist()
