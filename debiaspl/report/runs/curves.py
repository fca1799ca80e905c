"""The log of a run as curves of limited length."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from debiaspl.report.audit.measures import Shares
from debiaspl.report.pages import rounded

POINTS = 200
"""Points of a line."""
STRIPES = 12_000
"""Shares of classes through time that are drawn as stripes: with more classes, fewer times."""
STAGES = 3
HEALTH = ("rank", "spread")

Record = dict[str, Any]


def windows(log: Sequence[Record], most: int) -> list[list[Record]]:
    """The lines of the log in groups of neighbours, at most ``most`` groups."""
    size = -(-len(log) // most) if log else 1
    return [list(log[start : start + size]) for start in range(0, len(log), size)]


def curves(log: Sequence[Record]) -> dict[str, Any]:
    """Numbers during training, a list per name, None where a value is missing."""
    parts = windows(log, POINTS)
    names = list(dict.fromkeys(name for record in log for name in record["losses"]))
    return {
        "step": [part[-1]["step"] for part in parts],
        "losses": {name: [_mean([record["losses"].get(name) for record in part]) for part in parts] for name in names},
        "kept": [_mean([record.get("kept") for record in part]) for part in parts],
        "pseudo_accuracy": [_right(part) for part in parts],
        "pseudo_distance": [_mean([record.get("pseudo_distance") for record in part]) for part in parts],
        "distance": [_mean([record.get("distance") for record in part]) for part in parts],
        "measured": [[record["step"], record["accuracy"]] for record in log if "accuracy" in record],
        "health": health(log),
    }


def health(log: Sequence[Record]) -> dict[str, list[Any]] | None:
    """Measures of the features, a list per measure; None where not measured."""
    parts = [part[-1] for part in windows([record for record in log if "health" in record], POINTS)]
    if not parts:
        return None
    measures = {name: [rounded(record["health"].get(name)) for record in parts] for name in HEALTH}
    return {"step": [record["step"] for record in parts], **measures}


def pseudo_counts(part: Sequence[Record]) -> Shares | None:
    """Pseudo-labels of these lines, class by class; None if there were none."""
    vectors = [record["pseudo_labels"] for record in part if "pseudo_labels" in record]
    total = np.asarray(vectors, np.int64).sum(0) if vectors else np.zeros(1, np.int64)
    return Shares(total) if total.any() else None


def stripes(log: Sequence[Record], classes: int, of: str) -> dict[str, Any] | None:
    """Shares of all classes through time, in times of an even share.

    ``of`` is ``pseudo_labels``, or ``prior``, for which a run without one gives its mean prediction.
    """
    most = int(np.clip(STRIPES // classes, 8, 120))
    steps, values = [], []
    for part in windows(log, most):
        if of == "pseudo_labels":
            found = pseudo_counts(part)
            times_even = None if found is None else found.times_even
        else:
            prior = part[-1].get("prior") or part[-1].get("marginal")
            times_even = None if prior is None else np.asarray(prior) * classes
        if times_even is not None:
            steps.append(part[-1]["step"])
            values.append(rounded(times_even.tolist()))
    return {"step": steps, "times_even": values} if values else None


def stages(log: Sequence[Record]) -> list[list[float] | None]:
    """The paper's figure: in each third of training, the pseudo-labels' shares, largest first, in times of even."""
    end = log[-1]["step"] if log else 0
    found: list[list[float] | None] = []
    for stage in range(STAGES):
        part = [record for record in log if stage * end < STAGES * record["step"] <= (stage + 1) * end]
        shares = pseudo_counts(part)
        found.append(None if shares is None else sorted(shares.times_even.tolist(), reverse=True))
    return found


def mean_stages(runs: Sequence[list[list[float] | None]]) -> list[list[float] | None]:
    """Over the seeds of a method, place by place."""
    stages = [[shares for run in runs if (shares := run[stage]) is not None] for stage in range(STAGES)]
    return [rounded(np.mean(values, 0).tolist()) if values else None for values in stages]


def _right(part: Sequence[Record]) -> float | None:
    known = sum(record.get("pseudo_known", 0) for record in part)
    return rounded(sum(record.get("pseudo_right", 0) for record in part) / known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return rounded(sum(there) / len(there)) if there else None
