"""Comparisons again from the ``results.json`` that they wrote, also from those of earlier versions."""

from collections.abc import Mapping, Sequence
from typing import Any

from debiaspl.report.comparison import Comparison, Matrix


def comparison_of(values: Mapping[str, Any], true: Sequence[Sequence[int]] | None = None) -> Comparison:
    """Of ``debiaspl demo``.

    Args:
        values: its results.json.
        true: true classes of the unlabeled images, seed by seed. Files of earlier versions do not contain them.
    """
    seeds = values["seeds"]
    known = true or values.get("true_counts") or [None] * len(seeds)

    def runs(numbers: Mapping[str, Any]) -> list[dict[str, Any]]:
        columns = numbers["accuracy"]["per_seed"], numbers["worst_recall"]["per_seed"], numbers["pseudo_labels"], known
        names = "accuracy", "worst_recall", "pseudo_labels", "true_counts"
        return [dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)]

    return Comparison(seeds, {name: runs(numbers) for name, numbers in values["methods"].items()}, values["baseline"])


def matrix_of(values: Mapping[str, Any]) -> Matrix:
    """Of ``debiaspl compare``."""

    def runs(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
        columns = (cell[name]["per_seed"] for name in ("accuracy", "worst_recall", "seconds"))
        return [
            {"accuracy": accuracy, "worst_recall": worst, "timing": {"seconds": seconds}}
            for accuracy, worst, seconds in zip(*columns, strict=True)
        ]

    rows = values["algorithms"]
    results = {name: {key: runs(cell) for key, cell in row["corrections"].items()} for name, row in rows.items()}
    refused = {name: row["refused"] for name, row in rows.items()}
    named = dict.fromkeys(key for row in rows.values() for part in ("corrections", "refused") for key in row[part])
    return Matrix(
        values["seeds"], results, refused, {name: row["own_correction"] for name, row in rows.items()}, [*named]
    )
