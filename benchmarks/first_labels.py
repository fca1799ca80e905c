"""Which photos to label first: coverage beside a random choice, a stratified one, k-means and the page of 583f46c.

    python -m benchmarks.first_labels eurosat=EuroSAT/2750 flowers=flowers20 --work runs/first --out first_labels.json

Each draw is a folder of 2,000 photos (10 classes) or 1,500 (20 classes), or a long tail of 50 to 1. Every
choice names an order of its photos; the first K labels of a class, on average, are given, ``features.fit`` learns from
them, and what it says of all other photos is measured. *Stratified* knows the classes: an upper reference.
"""

import argparse
import json
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.photos import looked_at, origin, rated
from debiaspl.encoders import features_of
from debiaspl.features import FeatureTable, choose, fit
from debiaspl.graph.clusters import clusters

GAMMA, BALANCED, LARGEST = 50.0, {10: 200, 20: 75}, {10: 500, 20: 230}
"""By the number of classes: photos of a class in a balanced folder, and of the largest one in a long tail."""
LABELS = (1, 2, 5, 20)
"""Of each class, on average."""
DRAWN = 5
"""Of so many random photos the page of 583f46c showed the one farthest from all before it."""
Order = Callable[[np.ndarray, np.ndarray, np.ndarray, np.random.Generator, int], np.ndarray]


def folder(truth: np.ndarray, tail: bool, draw: int) -> np.ndarray:
    """Row numbers of the photos of a draw."""
    random, classes = np.random.default_rng(draw), int(truth.max()) + 1
    kept: list[int] = []
    for rank, number in enumerate(random.permutation(classes)):
        own = random.permutation(np.flatnonzero(truth == number))
        share = GAMMA ** (-rank / (classes - 1))
        kept += own[: max(round(LARGEST[classes] * share), 2) if tail else BALANCED[classes]].tolist()
    return np.array(kept)


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


def covering(rows: np.ndarray, sketches: np.ndarray, truth: np.ndarray, random: Any, count: int) -> np.ndarray:
    return choose(rows, count)


ORDERS: dict[str, Order] = {
    "random": at_random,
    "page of 583f46c": page,
    "k-means": centres,
    "coverage": covering,
    "stratified": stratified,
}


def sketched(pixels: torch.Tensor) -> np.ndarray:
    """Mean and contrast of the colours and the amount of detail of each photo, at 8 x 8 pixels."""
    small = torch.cat([F.interpolate(part.float() / 255, size=(8, 8), mode="area") for part in pixels.split(256)])
    grey = small.mean(1)
    detail = (grey.diff(dim=1).abs().mean((1, 2)) + grey.diff(dim=2).abs().mean((1, 2)))[:, None]
    contrast = torch.cat([small.std((2, 3)), detail], 1).add(0.01).log()
    return torch.cat([small.mean((2, 3)), contrast], 1).numpy()


def measured(path: Path, name: str, tail: bool, draw: int, budgets: tuple[int, ...]) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    truth, features, sketches = torch.load(path, weights_only=False)
    kept = folder(truth, tail, draw)
    there, rows, classes = truth[kept], features[kept].numpy(), int(truth.max()) + 1
    table, found = FeatureTable(features[kept], device=torch.device("cpu")), []
    for how, order in ORDERS.items():
        for budget in budgets:
            count = budget * classes
            # All but k-means are nested: the same order, cut off later.
            chosen = order(rows, sketches[kept], there, np.random.default_rng(draw), count)
            given = np.full(len(kept), -1)
            given[chosen] = there[chosen]
            known = np.unique(there[chosen])
            labels = torch.from_numpy(np.where(given >= 0, np.searchsorted(known, given), -1))
            fitted = fit(table, labels, len(known), seed=draw)
            predicted = known[fitted.row_probabilities(table).argmax(1).numpy()]
            row = {"data": name, "tail": tail, "draw": draw, "labels": budget, "order": how}
            found.append({**row, **rated(predicted, there, given), "classes": len(known) / classes})
    return found


def table(runs: list[dict[str, Any]]) -> str:
    """Accuracy / mean over classes of every choice, and the gain of coverage on the page with its standard error."""
    header = ["folders", "labels a class", *ORDERS, "coverage - page"]
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    for tail in (False, True):
        for budget in sorted({run["labels"] for run in runs}):
            own = [run for run in runs if (run["tail"], run["labels"]) == (tail, budget)]
            by = {how: {(r["data"], r["draw"]): r for r in own if r["order"] == how} for how in ORDERS}
            cells = [
                " / ".join(f"{mean(run[measure] for run in by[how].values()):.1f}" for measure in ("accuracy", "macro"))
                for how in ORDERS
            ]
            gains = [by["coverage"][key]["accuracy"] - r["accuracy"] for key, r in by["page of 583f46c"].items()]
            error = stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
            kind = "tail of 50 to 1" if tail else "balanced"
            lines.append(f"| {' | '.join([kind, str(budget), *cells])} | {mean(gains):+.1f} ± {error:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--work", type=Path, required=True, help="folder for the features")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--labels", default=",".join(map(str, LABELS)))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, _, place in (text.partition("=") for text in options.sets):
        paths[name] = options.work / f"{name}-first.pt"
        if not paths[name].exists():
            _, encoder, images = looked_at(Path(place))
            features = features_of(images, encoder, options.work / "features").values
            torch.save((images.labels.numpy(), features, sketched(images.images)), paths[name])
        print(f"features of {name}", flush=True)
    budgets = tuple(int(text) for text in options.labels.split(","))
    runs: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        cells = [(name, tail, draw) for draw in range(options.draws) for name in paths for tail in (False, True)]
        for done in [pool.submit(measured, paths[name], name, tail, draw, budgets) for name, tail, draw in cells]:
            runs += done.result()
            options.out.write_text(json.dumps({**origin(range(options.draws)), "runs": runs}) + "\n")
            print(len(runs), flush=True)
    print(table(runs))


if __name__ == "__main__":
    main()
