"""The figures of docs/lab/notebook.md, from what benchmarks/gain.py measured.

python -m benchmarks.gain_figures results/gain/cifar10-lt100-10pct --out docs/lab/debiasing-lt100.png
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.results import named

COLOURS = {"FixMatch": "#888888", "DebiasPL": "#d1495b"}
CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    name = folder.name
    return {
        "FixMatch": json.loads((folder / f"{name}-minutes-fixmatch.json").read_text()),
        "DebiasPL": json.loads((folder / f"{name}-minutes.json").read_text()),
    }


def true_shares(measured: dict[str, Any]) -> list[float]:
    protocol = measured["recipe"]["protocol"]
    sizes = [1.0] * 10
    if protocol["name"] == "long-tail":
        sizes = [int(5000 * protocol["settings"]["gamma"] ** (-place / 9)) for place in range(10)]
    return [size / sum(sizes) for size in sizes]


def accuracy(axes: Any, found: dict[str, dict[str, Any]]) -> None:
    for method, measured in found.items():
        for number, fold in enumerate(measured["folds"]):
            lines = [line for line in fold["log"] if "accuracy" in line]
            label = method if number == 0 else None
            places = [line["step"] for line in lines]
            axes.plot(places, [100 * line["accuracy"] for line in lines], color=COLOURS[method], lw=1.2, label=label)
    recipe = found["DebiasPL"]["recipe"]
    begin = recipe["algorithm"]["settings"]["labels_from"] * recipe["steps"]
    axes.axvline(begin, color="k", lw=0.8, ls=":")
    axes.text(begin, axes.get_ylim()[0], " pseudo-labels", va="bottom", fontsize=8)
    axes.set(title="Accuracy on the test set, a line per fold", xlabel="step", ylabel="%")
    axes.legend(frameon=False)


def labels(axes: Any, found: dict[str, dict[str, Any]]) -> None:
    for method, measured in found.items():
        # Of steps that a variant has in common with others, its own labels are not known.
        log = [line for line in measured["folds"][0]["log"] if "kept" in line]
        places = [line["step"] for line in log]
        axes.plot(places, [line["kept"] for line in log], color=COLOURS[method], ls="--", lw=1.2)
        known = [line for line in log if line["pseudo_accuracy"] is not None]
        axes.plot([line["step"] for line in known], [line["pseudo_accuracy"] for line in known], color=COLOURS[method])
    axes.set(title="Fold 0: pseudo-labels right (solid), kept (dashed)", xlabel="step", ylim=(0, 1))


def shares(axes: Any, found: dict[str, dict[str, Any]]) -> None:
    places = range(len(CLASSES))
    for offset, (method, measured) in zip((-0.2, 0.2), found.items(), strict=True):
        log = measured["folds"][0]["log"]
        last = log[-len(log) // 8 :]
        mean = [sum(line["marginal"][place] for line in last) / len(last) for place in places]
        axes.bar([place + offset for place in places], mean, 0.4, color=COLOURS[method], label=method)
    axes.plot(places, true_shares(found["FixMatch"]), "k_", ms=16, label="true share")
    axes.set_xticks(list(places), CLASSES, rotation=45, ha="right")
    axes.set(title="Fold 0, at the end: share of each class predicted", yscale="log")
    axes.legend(loc="lower left", framealpha=0.9)


def recalls(axes: Any, found: dict[str, dict[str, Any]]) -> None:
    places = range(len(CLASSES))
    for offset, (method, measured) in zip((-0.2, 0.2), found.items(), strict=True):
        mean = [
            100 * sum(fold["recall"][place] for fold in measured["folds"]) / len(measured["folds"]) for place in places
        ]
        axes.bar([place + offset for place in places], mean, 0.4, color=COLOURS[method])
    axes.set_xticks(list(places), CLASSES, rotation=45, ha="right")
    axes.set(title="Recall of each class, mean over folds", ylabel="%", ylim=(0, 100))


def margins(axes: Any, found: dict[str, dict[str, Any]]) -> None:
    measured = found["DebiasPL"]
    strength = named(measured["recipe"]["name"]).correction.settings["strength"]
    log = measured["folds"][0]["log"]
    for place, name in enumerate(CLASSES):
        values = [-strength * math.log(line["prior"][place]) for line in log]
        axes.plot([line["step"] for line in log], values, lw=1.1, color=plt.cm.viridis(place / 9), label=name)
    axes.set(title="DebiasPL, fold 0: margin of each class", xlabel="step")
    axes.legend(frameon=False, fontsize=7, ncol=2)


def precision(axes: Any, found: dict[str, dict[str, Any]]) -> None:
    places = range(len(CLASSES))
    for offset, (method, measured) in zip((-0.2, 0.2), found.items(), strict=True):
        log = measured["folds"][0]["log"]
        last = log[-len(log) // 4 :]
        used = [sum(line["pseudo_labels"][place] for line in last) for place in places]
        right = [sum(line["pseudo_right_labels"][place] for line in last) for place in places]
        values = [100 * hit / count if count else 0 for hit, count in zip(right, used, strict=True)]
        axes.bar([place + offset for place in places], values, 0.4, color=COLOURS[method])
    axes.set_xticks(list(places), CLASSES, rotation=45, ha="right")
    axes.set(title="Fold 0, last quarter: labels of each class that are right", ylabel="%", ylim=(0, 100))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = read(options.folder)
    figure, grid = plt.subplots(2, 3, figsize=(14, 7.2), layout="constrained")
    for axes, draw in zip(grid.flat, (accuracy, labels, margins, shares, precision, recalls), strict=True):
        draw(axes, found)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.out, dpi=90)


if __name__ == "__main__":
    main()
