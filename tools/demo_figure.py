"""The figure of README: what ``debiaspl demo`` has measured, drawn with matplotlib from its results.json."""

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

# Okabe and Ito: told apart in every common kind of colour blindness, and in print.
COLOURS = ("#999999", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")


def draw_demo(results: Path, path: Path) -> None:
    """Left: the share of each class among the pseudo-labels, largest first. Right: accuracy, a dot per seed."""
    methods = json.loads(results.read_text())["methods"]
    colours = dict(zip(methods, COLOURS, strict=False))
    figure = Figure(figsize=(9, 3.4), layout="constrained", dpi=120)
    shares, accuracy = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_shares(shares, methods, colours)
    _draw_accuracy(accuracy, methods, colours)
    figure.savefig(path)


def _draw_shares(axes: Any, methods: dict[str, Any], colours: dict[str, str]) -> None:
    drawn = {name: _mean_sorted_shares(numbers) for name, numbers in methods.items() if numbers["pseudo_distance"]}
    width = 0.8 / max(len(drawn), 1)
    classes = 0
    for place, (name, shares) in enumerate(drawn.items()):
        classes = len(shares)
        positions = [number + (place - (len(drawn) - 1) / 2) * width for number in range(1, classes + 1)]
        axes.bar(positions, [100 * share for share in shares], width, color=colours[name], label=name)
    axes.axhline(100 / classes, color="black", linewidth=1, linestyle=":", label="even share")
    axes.set(xticks=range(1, classes + 1), xlabel="class, most frequent first", ylabel="share of pseudo-labels, %")
    axes.set_title("Pseudo-labels of the second half of training", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_accuracy(axes: Any, methods: dict[str, Any], colours: dict[str, str]) -> None:
    for place, (name, numbers) in enumerate(methods.items()):
        values = [100 * value for value in numbers["accuracy"]["per_seed"]]
        axes.plot([place] * len(values), values, "o", color=colours[name], alpha=0.7, markersize=6)
        mean = 100 * numbers["accuracy"]["mean"]
        axes.plot([place - 0.25, place + 0.25], [mean, mean], color="black", linewidth=2)
        axes.annotate(f"{mean:.1f}", (place + 0.28, mean), va="center", fontsize=9)
    axes.set(xticks=range(len(methods)), xticklabels=list(methods), ylabel="accuracy, %", xlim=(-0.5, len(methods)))
    axes.set_title("Accuracy on the test images, a dot for each seed", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def _mean_sorted_shares(numbers: dict[str, Any]) -> list[float]:
    """The sorted shares of each seed, and their mean over seeds at each rank."""
    runs = [
        sorted((count / sum(counts) for count in counts), reverse=True) for counts in numbers["pseudo_labels"] if counts
    ]
    return [sum(column) / len(column) for column in zip(*runs, strict=True)]
