"""A run as its folder tells it, whether it has ended or not. Its files are checked for what a report needs."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debiaspl._measures import Cells
from debiaspl.data.tensor_file import classes_of_run
from debiaspl.files import parse_json
from debiaspl.training import Recipe, Run, RunError

NUMBERS = ("worst_recall", "pseudo_distance", "pseudo_almost_none", "pseudo_accuracy")
LOGGED = ("kept", "distance", "pseudo_distance", "accuracy", "pseudo_known", "pseudo_right")
MOST = 2**53
"""Larger numbers cannot be those of a run."""
VECTORS = ("pseudo_labels", "prior", "marginal")


@dataclass(frozen=True, eq=False)
class RunRecord:
    """``config.json``, ``log.jsonl`` and ``results.json``."""

    folder: Path
    recipe: Recipe
    log: list[dict[str, Any]]
    results: Mapping[str, Any] | None
    """None while the run has not ended."""
    classes: tuple[str, ...] | None
    """Class names, which the run writes when it ends; none of a run without labels."""

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def step(self) -> int:
        """The last step in the log."""
        return int(self.log[-1]["step"]) if self.log else 0

    def num_classes(self) -> int | None:
        """The number of classes; None for a run whose log does not contain it."""
        if self.classes:
            return len(self.classes)
        if self.results is not None and "recall" in self.results:
            return len(self.results["recall"])
        vectors = (record.get(name) for record in self.log for name in VECTORS)
        return next((len(vector) for vector in vectors if vector), None)


def read_run(folder: Path) -> RunRecord:
    if not (folder / "config.json").exists():
        raise RunError(f"{folder} is not a run of debiaspl: it has no config.json.")
    run = Run(folder)
    recipe = run.recipe()
    with _plain_errors(run.config_path):
        _refuse_not_finite(recipe.to_json(), "its recipe")
    with _plain_errors(run.log_path):
        log = run.log()
        _check_log(log)
    with _plain_errors(run.results_path):
        # Asked first: a run may end meanwhile.
        ended = run.results_path.exists()
        results = parse_json(run.results_path.read_text()) if ended else None
        if ended:
            _check_results(results)
    return RunRecord(folder, recipe, log, results, classes_of_run(folder))


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn errors into messages with the name of the file."""
    try:
        yield
    except ValueError as error:
        raise RunError(f"{path} is damaged or of another version: {error}. Restore it, or train again.") from error


def runs_in(folder: Path) -> list[Path]:
    """The folder itself if it is a run, else the runs inside it, by name."""
    if (folder / "config.json").exists() or not folder.is_dir():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/config.json"))
    if not found:
        raise RunError(f"{folder} is not a run of debiaspl and holds no runs.")
    return found


def _check_log(log: list[Any]) -> None:
    """Refuse lines that are not complete records of a step, or with different numbers of classes."""
    sizes = set()
    for number, record in enumerate(log, 1):
        line = f"line {number:,}"
        losses, health = record.get("losses"), record.get("health", {})
        _expect(isinstance(losses, dict) and all(map(_is_number, losses.values())), f"{line} has no losses")
        _expect(_is_number(record.get("seconds")), f"{line} has no seconds")
        measured = isinstance(health, dict) and all(value is None or _is_number(value) for value in health.values())
        _expect(measured, f"'health' in {line} is not names with numbers")
        said = record.get("warning", dict.fromkeys(("kind", "fact", "todo"), ""))
        texts = isinstance(said, dict) and all(isinstance(said.get(key), str) for key in ("kind", "fact", "todo"))
        _expect(texts, f"'warning' in {line} is not a kind, a fact and what to do, in words")
        for name in LOGGED:
            value = record.get(name)
            _expect(value is None or _is_number(value), f"{name!r} in {line} is {value!r}, expected a number")
        for name in VECTORS:
            vector = record.get(name, [])
            good = _is_counts(vector) if name == "pseudo_labels" else _is_shares(vector)
            _expect(good and (vector or name not in record), f"{name!r} in {line} is not a list of numbers")
            sizes |= {len(vector)} - {0}
        _expect(len(sizes) < 2, f"{line} has another number of classes than the lines above")


def _check_results(results: Any) -> None:
    """Refuse results that are not those of a run that has ended."""
    _expect(isinstance(results, dict), "it does not hold names with numbers")
    _refuse_not_finite(results, "it")
    accuracy, images = results.get("accuracy"), results.get("test")
    counted = _is_counts([results.get("unlabeled", 0), images])
    if results.get("labels") == []:  # features were learned of images without labels: nothing could be measured
        _expect(accuracy is None and counted, "it has no numbers of images, or an accuracy without labels")
        return
    _expect(is_share(accuracy), f"'accuracy' is {accuracy!r}, expected a number from 0 to 1")
    _expect(counted and images > 0, "'test' or 'unlabeled' is not a number of images")
    for name in NUMBERS:
        value = results.get(name)
        _expect(value is None or _is_number(value), f"{name!r} is {value!r}, expected a number")
    recall, confusion = results.get("recall"), results.get("confusion")
    shares = isinstance(recall, list) and recall and all(value is None or is_share(value) for value in recall)
    _expect(shares, "'recall' is not a list with a number for each class")
    Cells.from_json(confusion, len(recall))
    for name in ("pseudo_labels", "true_counts"):
        counts = results.get(name)
        good = counts is None or (_is_counts(counts) and len(counts) == len(recall) and any(counts))
        _expect(good, f"{name!r} is not a number for each class")
    _expect(_is_counts(results.get("labels", [])), "'labels' is not a list of numbers")


def _refuse_not_finite(values: Any, what: str) -> None:
    try:
        json.dumps(values, allow_nan=False)
    except ValueError:
        raise ValueError(f"a number of {what} is not finite") from None


def _expect(holds: Any, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _is_number(value: Any) -> bool:
    return (isinstance(value, float) and math.isfinite(value)) or (type(value) is int and abs(value) < MOST)


def _is_shares(value: Any) -> bool:
    """Shares of classes in float32, where 1 may have been rounded up."""
    return isinstance(value, list) and all(_is_number(one) and -1e-3 <= one <= 1 + 1e-3 for one in value)


def is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and 0 <= one < MOST for one in value)
