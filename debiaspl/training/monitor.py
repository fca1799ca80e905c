"""What a run measures while it trains: sums of losses and monitors, and the health of its features."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl._measures import distance
from debiaspl.data import ImageSet, loaded
from debiaspl.debias import ranks
from debiaspl.models import Network, predict_set
from debiaspl.models.predict import BATCH
from debiaspl.training.group import Group
from debiaspl.training.process import RunError
from debiaspl.training.recipe import Recipe

if TYPE_CHECKING:
    from debiaspl.training.step import Step


class Monitor:
    """Sums over the steps since the last line. The only place that reads the true labels of unlabeled images."""

    def __init__(self, true: list[int] | None = None) -> None:
        """``true``: see ``true_counts``."""
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

        def means(prefix: str) -> dict[str, Any]:
            return {name.removeprefix(prefix): sums[name] / steps for name in sums if name.startswith(prefix)}

        record = {"losses": means("losses/"), **means("means/")}
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


SAMPLE = 1000
"""Number of measured images, or all if there are fewer."""
IN_A_ROW = 3
"""Measurements that must agree before a warning, together with all in the last tenth of the run's steps."""
MIN_STEPS = 100
"""A run with fewer steps is a trial that cannot learn anything."""
WARMED_UP = 0.15
"""Share of the steps before which there is no warning: the first steps move features far, and back."""
LEAST_SPREAD = 0.02
"""Spread below which all features are alike."""
LEAST_RANK = 0.2
"""Features with less than this share of their largest rank have collapsed."""
FALLING_RANK = 0.55
"""Below this share of their largest rank since training began, features are collapsing; in healthy runs it stayed above
0.65."""
COLLAPSED, COLLAPSING = "collapsed", "collapsing"

Record = Mapping[str, Any]


class Health:
    """``health.measure(record)``: measurements of the averaged model's features for a line of the log, and, once, a
    warning if they collapse. The sample is the same every time; training is not affected."""

    def __init__(self, step: "Step", group: Group, log: Sequence[Record]) -> None:
        """``log`` contains the records of an earlier part of the run."""
        self._step, self._group = step, group
        # A single image gives no information.
        self._every = interval(step.recipe, step.algorithm.learns_labels) if len(step.task.unlabeled) > 1 else 0
        self._history = [record for record in log if "health" in record]
        self._sample: ImageSet | None = None

    def due(self, number: int) -> bool:
        """Whether to measure after so many steps."""
        return self._every > 0 and (number % self._every == 0 or number == self._step.recipe.steps)

    def measure(self, record: Record) -> dict[str, Any]:
        """``health``, and ``warning`` if there is a new one. The first rank measures; all ranks must call this."""
        measured: dict[str, Any] = {}
        if self._group.first:
            measured["health"] = self._measured()
            task, algorithm = self._step.task, self._step.algorithm
            classes = task.labeled.num_classes if algorithm.learns_labels else 0
            warning = verdict([*self._history, {**record, **measured}], self._step.recipe.steps, classes)
            given = {record["warning"]["kind"] for record in self._history if "warning" in record}
            if warning is not None and not {warning["kind"], COLLAPSED} & given:
                measured["warning"] = {**warning, "todo": algorithm.advice}
            self._history.append({**record, **measured})
        self._group.largest(0)  # first between the hosts: on a GPU a rank that hangs would not be noticed
        return measured

    def _measured(self) -> dict[str, float]:
        # Nothing here may depend on the number of ranks.
        with ranks.alone(), torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
            if self._sample is None:
                self._sample = sample(self._step.task.unlabeled, self._step.recipe.seed)
            features = _features(self._step.average.model, self._sample)
            return {"rank": effective_rank(features), "spread": spread(features)}


def interval(recipe: Recipe, learns_labels: bool) -> int:
    """Steps between two measurements; 0: none."""
    if recipe.health_every:
        return max(recipe.health_every, 0)
    return 0 if learns_labels else -(-recipe.steps // 20)  # twenty times in a run


def sample(images: ImageSet, seed: int) -> ImageSet:
    """Images in memory, without unreadable files, which the log names when they occur in training."""
    generator = torch.Generator().manual_seed(seed)
    stored = loaded(images.select(torch.randperm(len(images), generator=generator)[:SAMPLE].sort().values))[0]
    return replace(stored, images=stored.images[torch.arange(len(stored))])  # those of a packed set are on disk


@torch.no_grad()
def _features(model: Network, images: ImageSet) -> Tensor:
    features = torch.cat([seen.features for seen in predict_set(model, images, BATCH)])
    if not bool(features.isfinite().all()):
        raise RunError("the averaged model's features are not finite. Try a smaller learning_rate in a new run.")
    return features


def verdict(history: Sequence[Record], steps: int, classes: int = 0) -> dict[str, str] | None:
    """A warning, ``kind`` and ``fact``, after the last of these lines of the log; None if the features are healthy.
    Where labels are learned, features may shrink to one direction for each of the ``classes``."""
    trained = [record for record in history if record["step"] > 0]
    if steps < MIN_STEPS or len(trained) < IN_A_ROW or trained[-1]["step"] < WARMED_UP * steps:
        return None
    recent = max(IN_A_ROW, sum(record["step"] > trained[-1]["step"] - steps / 10 for record in trained))
    rank, spreads = ([record["health"][name] for record in trained] for name in ("rank", "spread"))
    largest = max(record["health"]["rank"] for record in history)
    least = LEAST_RANK * largest if not classes else min(LEAST_RANK * largest, (classes - 1) / 2)
    if max(spreads[-recent:]) < LEAST_SPREAD or max(rank[-recent:]) < least:
        fact = (
            f"The features have collapsed: their effective rank is {rank[-1]:.1f} and was {largest:.1f}, and their "
            f"spread is {spreads[-1]:.2f}, where 1 is even and 0 is all alike."
        )
        return {"kind": COLLAPSED, "fact": fact}
    if classes:
        return None  # labels need one direction per class; the others may vanish
    best = max(range(len(rank)), key=rank.__getitem__)
    recovers = rank[-1] > 1.05 * min(rank)
    if len(rank) - 1 - best < recent or recovers or max(rank[-recent:]) >= FALLING_RANK * max(rank[best], 1e-9):
        return None
    fact = (
        f"The features are collapsing slowly: their effective rank fell from {rank[best]:.1f} at step "
        f"{trained[best]['step']:,} to {rank[-1]:.1f}."
    )
    return {"kind": COLLAPSING, "fact": fact}


def health_results(log: Sequence[Record]) -> dict[str, Any]:
    """Entries of results.json: the first and the last measurement, and all warnings."""
    lines = [record for record in log if "health" in record]
    if not lines:
        return {}
    first, last = ({"step": line["step"], **line["health"]} for line in (lines[0], lines[-1]))
    warnings = [{"step": line["step"], **line["warning"]} for line in lines if "warning" in line]
    return {"health": {"first": first, "last": last}} | ({"warnings": warnings} if warnings else {})


def effective_rank(features: Tensor) -> float:
    """Number of directions that the features use: exp(H(p)), where p are the singular values of the centred features
    over their sum, and H is the entropy in nats (Roy and Vetterli, 2007); 0 if all are equal."""
    centred = features.double() - features.double().mean(0)
    # Squares of the singular values, from the smaller of the two products: much faster than the singular values.
    product = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    values = torch.linalg.eigvalsh(product).clamp_min(0).sqrt()
    if not bool(values.any()):
        return 0.0
    return float(torch.special.entr(values / values.sum()).sum().exp())


def spread(features: Tensor) -> float:
    """Standard deviation of features of length 1, averaged over dimensions, times sqrt(D) (Chen and He, 2021): 1 if
    they are spread evenly in all directions, 0 if all are equal."""
    unit = F.normalize(features.double(), dim=-1)
    return float(unit.std(0, correction=0).mean() * unit.shape[1] ** 0.5)
