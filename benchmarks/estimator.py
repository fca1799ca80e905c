"""DebiasedClassifier beside scikit-learn's own: python benchmarks/estimator.py [--seeds 10] [--out results/estimator]

Digits (1,797 images of 8 x 8), 4 labels a class, every other image without a label; accuracy over the images without,
each of which every method sees in training (``transduction_``). Ours has its defaults, chosen on seeds from 100 on.
The others get a grid of settings each, and their row is the best of it on the very seeds that are measured: more than
a user could choose, since there would be no labels to choose with.

Then the time to fit 100,000 x 512 features, in a process of one thread.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from benchmarks.origin import origin
from debiaspl import DebiasedClassifier
from debiaspl.data import FewLabels

ROOT = Path(__file__).parent.parent
PER_CLASS = 4
ROWS, WIDTH, CLASSES = 100_000, 512, 10


def grid() -> dict[str, dict[str, Any]]:
    """Methods of scikit-learn, each with the settings that it is tried with; pixels are 0 to 1."""
    bases = {f"LogisticRegression(C={c})": LogisticRegression(C=c, max_iter=1000) for c in (10, 100)}
    bases |= {"KNeighborsClassifier(3)": KNeighborsClassifier(3, weights="distance")}
    bases |= {"SVC(C=10)": SVC(C=10, probability=True, random_state=0)}
    training = {
        f"{name}, threshold={threshold}": SelfTrainingClassifier(base, threshold=threshold, max_iter=None)
        for name, base in bases.items()
        for threshold in (0.75, 0.9)
    }
    spreading: dict[str, Any] = {}
    for alpha in (0.2, 0.8, 0.99):
        for gamma in (2, 5, 10, 20, 40):
            spreading[f"rbf, gamma={gamma}, alpha={alpha}"] = LabelSpreading("rbf", gamma=gamma, alpha=alpha)
        for neighbors in (7, 10):
            name = f"knn, n_neighbors={neighbors}, alpha={alpha}"
            spreading[name] = LabelSpreading("knn", n_neighbors=neighbors, alpha=alpha)
    return {"SelfTrainingClassifier": training, "LabelSpreading": spreading}


def labels_of(truth: np.ndarray, seed: int) -> np.ndarray:
    known = FewLabels(PER_CLASS).split(torch.from_numpy(truth), seed).labeled.numpy()
    labels = np.full_like(truth, -1)
    labels[known] = truth[known]
    return labels


def accuracies(make: Callable[[int], Any], rows: np.ndarray, truth: np.ndarray, seeds: range) -> list[float]:
    found = []
    for seed in seeds:
        labels = labels_of(truth, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # LabelSpreading divides by 0 for rows without a neighbour
            warnings.simplefilter("ignore", FutureWarning)  # SVC(probability=True) will go; the rest of it stays
            transduction = make(seed).fit(rows, labels).transduction_
        if transduction.min() < 0:  # rows that self-training left without a label
            raise SystemExit("a method left rows without a label")
        found.append(float((transduction == truth)[labels < 0].mean()))
    return found


class Complete:
    """SelfTrainingClassifier leaves rows it is not sure of at -1: they get what it predicts for them."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, rows: np.ndarray, labels: np.ndarray) -> "Complete":
        self.classifier.fit(rows, labels)
        found = self.classifier.transduction_
        self.transduction_ = np.where(found < 0, self.classifier.predict(rows), found)
        return self


def summary(values: list[float], **more: Any) -> dict[str, Any]:
    return {"mean": statistics.mean(values), "deviation": statistics.stdev(values), "seeds": values, **more}


def compare(seeds: range) -> dict[str, Any]:
    digits = load_digits()
    truth, flat = digits.target.astype(np.int64), digits.data / 16
    found: dict[str, Any] = {}
    for method, candidates in grid().items():
        tried = {}
        for name, candidate in candidates.items():
            tried[name] = accuracies(lambda seed, one=candidate: Complete(clone(one)), flat, truth, seeds)
        best = max(tried, key=lambda name: statistics.mean(tried[name]))
        means = {name: statistics.mean(values) for name, values in tried.items()}
        found[method] = summary(tried[best], settings=best, tried=means)
    started = time.perf_counter()
    ours = accuracies(lambda seed: DebiasedClassifier(random_state=seed), digits.images, truth, seeds)
    seconds = (time.perf_counter() - started) / len(seeds)
    features = accuracies(lambda seed: DebiasedClassifier(random_state=seed), digits.data, truth, seeds)
    found["DebiasedClassifier"] = summary(ours, settings="defaults", seconds_a_fit=round(seconds, 1))
    found["the same, of pixels as features"] = summary(features, settings="defaults")
    return found


def time_features() -> dict[str, Any]:
    """In float32, on one thread; clusters that overlap, 5 labels of each."""
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    truth = random.integers(0, CLASSES, ROWS)
    means = 0.3 * random.standard_normal((CLASSES, WIDTH)).astype(np.float32)
    rows = random.standard_normal((ROWS, WIDTH), np.float32) + means[truth]
    labels = np.full(ROWS, -1)
    for number in range(CLASSES):
        labels[np.flatnonzero(truth == number)[:5]] = number
    started, processor = time.perf_counter(), time.process_time()
    classifier = DebiasedClassifier(random_state=0, device="cpu").fit(rows, labels)
    took = time.perf_counter() - started
    return {
        "rows": ROWS,
        "width": WIDTH,
        "steps": classifier.n_iter_,
        "seconds": round(took, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "accuracy": float((classifier.transduction_ == truth)[labels < 0].mean()),
    }


def table(measured: dict[str, Any]) -> str:
    lines = ["| method | settings | accuracy % |", "| --- | --- | --- |"]
    for method, one in measured.items():
        lines.append(f"| {method} | {one['settings']} | {100 * one['mean']:.1f} ± {100 * one['deviation']:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    facts = {
        "data": f"digits, {PER_CLASS} labels a class, accuracy over the images without a label",
        "seeds": list(range(options.seeds)),
        "methods": compare(range(options.seeds)),
        "features": time_features(),
        **origin(),
        "load_before": round(load, 1),
        "versions": {name: version(name) for name in ("scikit-learn", "numpy")},
    }
    print(table(facts["methods"]))
    print(json.dumps(facts["features"]))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "results.json").write_text(json.dumps(facts, indent=2) + "\n")
        (options.out / "table.md").write_text(table(facts["methods"]))


if __name__ == "__main__":
    main()
