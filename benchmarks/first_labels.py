"""Which photos to label first: coverage beside a random choice, a stratified one, k-means, TypiClust (arXiv 2202.02794)
and the page of 583f46c.

    python -m benchmarks.first_labels eurosat=EuroSAT/2750 flowers=flowers20 --work runs/first --out first_labels.json

    python -m benchmarks.first_labels --figure docs/first-labels.png

What the file of results holds already is not measured again. The figure is that of results/photos/first_labels.json.
Each draw is a folder of 2,000 photos (10 classes) or 1,500 (20 classes), or a long tail of 50 to 1. Every
choice names an order of its photos; the first K labels of a class, on average, are given, ``features.fit`` learns from
them, and what it says of all other photos is measured. *Stratified* knows the classes: an upper reference.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.drawn import Drawn, encoded, parsed, record
from benchmarks.origin import ROOT
from debiaspl.features import choose
from debiaspl.graph.neighbours import clusters

LABELS = (1, 2, 5, 20)
"""Of each class, on average."""
TYPICAL = 20
DRAWN = 5
"""Of so many random photos the page of 583f46c showed the one farthest from all before it."""
COLOURS = {"random": "#888888", "page of 583f46c": "#0072b2", "coverage": "#d1495b"}
Order = Callable[[np.ndarray, np.ndarray, np.ndarray, np.random.Generator, int], np.ndarray]


def at_random(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    return random.permutation(len(rows))[:count]


def stratified(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    order = random.permutation(len(rows))
    turn = np.empty(len(rows), int)
    for number in np.unique(truth):
        own = np.flatnonzero(truth[order] == number)
        turn[own] = np.arange(len(own))
    return order[np.argsort(turn, kind="stable")][:count]


def page(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    """Of a few random photos the one farthest from all before it, by seven numbers on colour, contrast and detail."""
    scaled, left, chosen = sketches / (sketches.std(0) + 1e-6), list(range(len(rows))), list[int]()
    nearest = np.full(len(rows), np.inf)
    for _ in range(count):
        drawn = random.choice(left, size=min(DRAWN, len(left)))
        best = int(drawn[nearest[drawn].argmax()])
        left.remove(best)
        chosen.append(best)
        nearest = np.minimum(nearest, np.square(scaled - scaled[best]).sum(1))
    return np.array(chosen)


def centres(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    """The photo nearest to each centre of k-means; not nested."""
    x = torch.from_numpy(rows)
    units = F.normalize(x - x.mean(0), dim=-1)
    home = clusters(units, count, seed=int(random.integers(2**31)))
    chosen = []
    for number in range(count):
        own = (home == number).nonzero().flatten()
        if len(own):
            chosen.append(int(own[(units[own] @ units[own].mean(0)).argmax()]))
    rest = [row for row in random.permutation(len(rows)) if row not in set(chosen)]
    return np.array([*chosen, *rest][:count])


def typical(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    """TypiClust: of each cluster of k-means the photo nearest to its 20 nearest ones; not nested."""
    x = torch.from_numpy(rows)
    units = F.normalize(x - x.mean(0), dim=-1)
    home = clusters(units, count, seed=int(random.integers(2**31)))
    chosen = []
    for number in range(count):
        own = (home == number).nonzero().flatten()
        if len(own):
            distance = torch.cdist(units[own], units[own]).sort(dim=1).values[:, 1 : TYPICAL + 1]
            chosen.append(int(own[distance.mean(1).nan_to_num(0).argmin()]))
    rest = [row for row in random.permutation(len(rows)) if row not in set(chosen)]
    return np.array([*chosen, *rest][:count])


def covering(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    return choose(rows, count)


ORDERS: dict[str, Order] = {
    "random": at_random,
    "page of 583f46c": page,
    "k-means": centres,
    "TypiClust": typical,
    "coverage": covering,
    "stratified": stratified,
}


def measured(path: Path, name: str, tail: bool, draw: int, wanted: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    photos, found = Drawn(path, tail, draw), []
    rows = photos.features.numpy()
    for budget, how in wanted:
        # All but k-means and TypiClust are nested: the same order, cut off later.
        random = np.random.default_rng(draw)
        chosen = ORDERS[how](rows, photos.sketches, photos.truth, random, budget * photos.classes)
        row = {"data": name, "tail": tail, "draw": draw, "labels": budget, "order": how}
        classes = len(np.unique(photos.truth[chosen])) / photos.classes
        found.append({**row, **photos.rated(chosen), "classes": classes})
    return found


def table(runs: list[dict[str, Any]]) -> str:
    """Accuracy / mean over classes of every choice, and the gain of coverage on the page with its standard error."""
    shown = [how for how in ORDERS if any(run["order"] == how for run in runs)]
    header = ["folders", "labels a class", *shown, "coverage - page"]
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    for tail in (False, True):
        for budget in sorted({run["labels"] for run in runs}):
            own = [run for run in runs if (run["tail"], run["labels"]) == (tail, budget)]
            by = {how: {(r["data"], r["draw"]): r for r in own if r["order"] == how} for how in shown}
            cells = [
                " / ".join(f"{mean(run[measure] for run in by[how].values()):.1f}" for measure in ("accuracy", "macro"))
                for how in shown
            ]
            gains = [by["coverage"][key]["accuracy"] - r["accuracy"] for key, r in by["page of 583f46c"].items()]
            error = stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
            kind = "tail of 50 to 1" if tail else "balanced"
            lines.append(f"| {' | '.join([kind, str(budget), *cells])} | {mean(gains):+.1f} ± {error:.1f} |")
    return "\n".join(lines) + "\n"


def figure(runs: list[dict[str, Any]], out: str) -> None:
    """Accuracy against the number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for tail, panel in enumerate(axes):
        for how, colour in COLOURS.items():
            own = [run for run in runs if run["tail"] == bool(tail) and run["order"] == how]
            budgets = sorted({run["labels"] for run in own})
            values = [mean(run["accuracy"] for run in own if run["labels"] == budget) for budget in budgets]
            panel.plot(budgets, values, color=colour, marker="o", ms=3.5, lw=1.4, label=how)
        panel.set(title="tail of 50 to 1" if tail else "balanced", xlabel="labels a class, on average", xscale="log")
        panel.set_xticks(budgets, list(map(str, budgets)))
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("accuracy of the other photos, %")
    axes[1].legend(frameon=False)
    shown.tight_layout()
    shown.savefig(out, metadata={"Date": None})


def main() -> None:
    if sys.argv[1:2] == ["--figure"]:
        return figure(json.loads((ROOT / "results" / "photos" / "first_labels.json").read_text())["runs"], sys.argv[2])
    parser = parsed(__doc__)
    parser.add_argument("--labels", default=",".join(map(str, LABELS)))
    options = parser.parse_args()
    paths, draws = encoded(options.sets, options.work), range(*map(int, options.draws.split(":")))
    there = json.loads(options.out.read_text())["runs"] if options.out.exists() else []
    done = {(run["data"], run["tail"], run["draw"], run["labels"], run["order"]) for run in there}
    every = [(int(budget), how) for budget in options.labels.split(",") for how in ORDERS]
    tasks = []
    for draw in draws:
        for name, tail in ((name, tail) for name in paths for tail in (False, True)):
            if wanted := [one for one in every if (name, tail, draw, *one) not in done]:
                tasks.append((measured, paths[name], name, tail, draw, wanted))
    runs = record(options.out, tasks, options.jobs)
    print(table(runs))


if __name__ == "__main__":
    main()
