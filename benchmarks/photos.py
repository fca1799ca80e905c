"""Few labels on folders of photos, by the features of one encoder: debiaspl beside what else there is.

    python -m benchmarks.photos eurosat=EuroSAT/2750 flowers=flowers20 --work runs/photos --out cells.json

Each set is a folder of class folders. For every set there are four kinds of folders: balanced; and with a long tail of
50 to 1, of which as many photos of each class have a label (at most half of the class), or photos that were drawn at
random (a class that was missed gets one label), or photos that were chosen by coverage. Every method sees the same
photos, labels and features. Measured is what it says of the photos without a label: accuracy, and macro accuracy, which
is the mean over classes. Ours are ``debiaspl train PHOTOS`` with either ``--optimise``, without the folds that check
them; *even shares* is the same without estimated shares, as it was at 583f46c.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from benchmarks.alternatives import methods
from benchmarks.origin import origin
from debiaspl._processes import keep_freed_memory
from debiaspl.data import GivenLabels, ImageSet, loaded
from debiaspl.encoders import Encoder, features_of, load_encoder
from debiaspl.features import FeatureTable, choose as covering
from debiaspl.features.fit import LINEAR, TableTask, enough_steps, fit_recipe
from debiaspl.photos.choose import choose, working_size
from debiaspl.photos.survey import Photos, survey
from debiaspl.training.method import with_method

ENCODER = "efficientnet-lite0"
KINDS = ("balanced", "long tail, equal labels", "long tail, random labels", "long tail, coverage")
MOST = 500
"""Photos of a class that are looked at."""
BALANCED, LARGEST, GAMMA = {10: 200, 20: 75}, {10: 500, 20: 230}, 50.0
"""By the number of classes: photos of a class in a balanced folder; of the largest class in a long-tailed one. And the
largest class over the smallest. So every folder has 1,000 to 2,000 photos."""
LABELS = {KINDS[0]: (5, 20), KINDS[1]: (5, 20), KINDS[2]: (5, 20), KINDS[3]: (2, 5, 20)}
"""Of a class; of labels that are drawn or chosen, on average."""
THEIRS = (
    *("logistic regression", "class-balanced regression", "self-training", "LabelSpreading", "graph diffusion"),
    *("LaplacianShot-like", "TransCLIP-like"),
)
EVEN, PHOTOS, CLASSES = "even shares", "photos", "classes"
OURS = ("FixMatch", EVEN, PHOTOS, CLASSES)


class Encoded(NamedTuple):
    """A set, and the features of every photo."""

    classes: tuple[str, ...]
    truth: np.ndarray
    features: torch.Tensor


class Cell(NamedTuple):
    data: str
    kind: str
    labels: int
    """A class; of labels drawn at random, on average."""
    draw: int


def looked_at(folder: Path) -> tuple[Photos, Encoder, ImageSet]:
    """What is there, the encoder at its working size, and the same photos each time: up to ``MOST`` of a class."""
    photos = survey(folder, None)
    encoder = load_encoder(ENCODER)
    encoder.image_size = working_size(photos, "cpu", encoder)
    recipe = choose(photos, "cpu", encoder)
    every = GivenLabels().read(str(folder), recipe.image_size, stream=True)
    chosen: list[int] = []
    for number in range(every.num_classes):
        own = (every.labels == number).nonzero().flatten().numpy()
        chosen += sorted(np.random.default_rng(7).permutation(own)[:MOST].tolist())
    return photos, encoder.eval(), loaded(every.select(chosen))[0]


def encoded(folder: Path, work: Path) -> Encoded:
    """Features are computed once and kept."""
    keep_freed_memory()
    photos, encoder, images = looked_at(folder)
    return Encoded(photos.classes, images.labels.numpy(), features_of(images, encoder, work / "features").values)


def folder(truth: np.ndarray, tail: bool, draw: int) -> np.ndarray:
    """Row numbers of the photos of a draw."""
    random, classes = np.random.default_rng(draw), int(truth.max()) + 1
    kept: list[int] = []
    for rank, number in enumerate(random.permutation(classes)):
        own = random.permutation(np.flatnonzero(truth == number))
        share = GAMMA ** (-rank / (classes - 1))
        kept += own[: max(round(LARGEST[classes] * share), 2) if tail else BALANCED[classes]].tolist()
    return np.array(kept)


def drawn(data: Encoded, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Which photos are in the folder, and their labels, -1 where there is none."""
    kept = folder(data.truth, cell.kind != KINDS[0], cell.draw)
    there, random = data.truth[kept], np.random.default_rng([cell.draw, 7])
    classes = int(data.truth.max()) + 1
    if cell.kind == KINDS[3]:
        known = covering(data.features[kept], cell.labels * classes).tolist()
    elif cell.kind == KINDS[2]:
        known = random.permutation(len(there))[: cell.labels * classes].tolist()
        missed = set(range(classes)) - set(there[known].tolist())
        known += [int(random.choice(np.flatnonzero(there == number))) for number in sorted(missed)]
    else:
        known = []
        for number in range(classes):
            own = random.permutation(np.flatnonzero(there == number))
            known += own[: min(cell.labels, len(own) // 2)].tolist()
    given = np.full(len(there), -1)
    given[known] = there[known]
    return kept, given


def rated(predicted: np.ndarray, truth: np.ndarray, given: np.ndarray) -> dict[str, float]:
    """Accuracy and its mean over classes in %, of the photos without a label."""
    right, of = (predicted == truth)[given < 0], truth[given < 0]
    by_class = [right[of == number].mean() for number in np.unique(of)]
    return {"accuracy": round(100 * float(right.mean()), 2), "macro": round(100 * float(np.mean(by_class)), 2)}


def measure(path: Path, cell: Cell, names: Collection[str]) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)  # LabelSpreading divides by 0 for rows without a neighbour
    data = Encoded(*torch.load(path, weights_only=False)[:3])
    kept, given = drawn(data, cell)
    truth, features = data.truth[kept], data.features[kept]
    # Where no label of a class was chosen, nobody can predict it.
    known = np.unique(given[given >= 0])
    own = np.where(given >= 0, np.searchsorted(known, given), -1)
    rows = torch.nn.functional.normalize(features - features.mean(0), dim=-1).numpy()
    asked = {KINDS[2]: "random", KINDS[3]: "coverage"}.get(cell.kind, "")
    found = []
    made = (*_theirs(rows, own, names), *_ours(features, own, len(known), cell.draw, asked, names))
    for name, predicted, seconds in made:
        numbers = rated(known[predicted], truth, given)
        found.append({**cell._asdict(), "method": name, **numbers, "seconds": round(seconds, 2)})
    return found


def _theirs(rows: np.ndarray, given: np.ndarray, names: Collection[str]) -> Iterator[tuple[str, np.ndarray, float]]:
    for name, method in methods(rows, given).items():
        if name in names:
            began = time.process_time()
            yield name, method(), time.process_time() - began


def _ours(
    features: torch.Tensor, given: np.ndarray, classes: int, seed: int, asked: str, names: Collection[str]
) -> Iterator[tuple[str, np.ndarray, float]]:
    labels, base = torch.from_numpy(given), LINEAR.changed(first_classifier="graph")
    base = replace(base, seed=seed, steps=enough_steps(len(labels)))
    how = [asked if label >= 0 else "" for label in given]
    recipes = {"FixMatch": with_method(base, "fixmatch"), EVEN: base, PHOTOS: replace(base, optimise=PHOTOS)}
    table = FeatureTable(features, device=torch.device("cpu"))
    for name, recipe in recipes.items():
        if name not in names:
            continue
        began = time.process_time()
        fitted = fit_recipe(recipe, table, TableTask(labels, tuple(map(str, range(classes))), asked=how))
        logits, seconds = fitted.logits(features), time.process_time() - began
        yield name, logits.argmax(1).numpy(), seconds
        if fitted.shares is not None:
            # One model for both aims: a test has it that they differ by the shares alone.
            yield CLASSES, (logits - fitted.shares.log()).argmax(1).numpy(), seconds


def summary(runs: list[dict[str, Any]], measure: str) -> dict[str, Any]:
    """By kind of folder and number of labels, over the sets: the mean of every method over sets and draws. And over all
    cells of a kind ours minus the best single one of theirs, and minus ours with even shares, draw by draw."""
    cells: dict[str, dict[str, float]] = {}
    for kind, labels in dict.fromkeys((run["kind"], run["labels"]) for run in runs):
        own = [run for run in runs if (run["kind"], run["labels"]) == (kind, labels)]
        cells[f"{kind}, {labels}"] = {
            name: round(mean(run[measure] for run in own if run["method"] == name), 1) for name in measured(runs)
        }
    groups = {"long tail": KINDS[1:3], "long tail, coverage": KINDS[3:], "balanced": KINDS[:1]}
    return {"cells": cells, "groups": {name: _group(runs, kinds, measure) for name, kinds in groups.items()}}


def _group(runs: list[dict[str, Any]], kinds: Iterable[str], measure: str) -> dict[str, Any]:
    values: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        if run["kind"] in kinds:
            values.setdefault(run["method"], {}).setdefault(run["draw"], []).append(run[measure])
    by_draw = {name: [mean(own[draw]) for draw in sorted(own)] for name, own in values.items()}
    best = max((name for name in THEIRS if name in by_draw), key=lambda name: mean(by_draw[name]), default="")
    aim = PHOTOS if measure == "accuracy" else CLASSES
    return {
        "mean": {name: round(mean(own), 1) for name, own in by_draw.items()},
        "best of theirs": best,
        **{
            f"{aim} - {other}": _difference(by_draw[aim], by_draw[other])
            for other in (best, EVEN)
            if {aim, other} <= by_draw.keys()
        },
    }


def _difference(ours: list[float], others: list[float]) -> dict[str, Any]:
    """The mean over draws, with its 95 % interval by Student's t."""
    from scipy.special import stdtrit

    gain = [one - other for one, other in zip(ours, others, strict=True)]
    half = stdtrit(len(gain) - 1, 0.975) * stdev(gain) / math.sqrt(len(gain)) if len(gain) > 1 else float("nan")
    return {"gain": round(mean(gain), 2), "half": round(float(half), 2), "draws": len(gain)}


SHOWN = ("class-balanced regression", "self-training", "LaplacianShot-like", "TransCLIP-like", *OURS)


def measured(runs: list[dict[str, Any]]) -> list[str]:
    """Methods, in their order."""
    found = {run["method"] for run in runs}
    return [name for name in (*THEIRS, *OURS) if name in found]


def table(made: dict[str, Any]) -> str:
    """As docs/own-photos.md shows it, accuracy / mean over classes; the file has every method and both sets."""
    shown = [name for name in SHOWN if name in measured(made["runs"])]
    header = ("folder", "labels a class", *shown)
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    for cell, plain in made["accuracy"]["cells"].items():
        macro = made["macro"]["cells"][cell]
        numbers = [f"{plain[name]:.1f} / {macro[name]:.1f}" for name in shown]
        lines.append(f"| {' | '.join([*cell.rsplit(', ', 1), *numbers])} |")
    return "\n".join(lines) + "\n"


def about(made: dict[str, Any]) -> dict[str, Any]:
    """How a part of the results was measured."""
    return {name: made[name] for name in ("command", "commit", "device", "torch", "note") if name in made}


def origin_of(draws: Iterable[int]) -> dict[str, Any]:
    """What a file of results says of where it comes from."""
    return {**origin(), "encoder": ENCODER, "draws": list(draws)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--work", type=Path, required=True, help="folder for the features")
    parser.add_argument("--first", type=int, default=0, help="the first draw; settings were chosen on 100 to 103")
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", default=",".join((*THEIRS, *OURS)), help=f"{PHOTOS} measures {CLASSES} too")
    parser.add_argument("--out", type=Path, required=True, help="what it holds of other methods or draws is kept")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, _, place in (text.partition("=") for text in options.sets):
        paths[name] = options.work / f"{name}.pt"
        if not paths[name].exists():
            torch.save(tuple(encoded(Path(place), options.work)), paths[name])
        print(f"features of {name}", flush=True)
    draws = range(options.first, options.first + options.draws)
    cells = [
        Cell(name, kind, count, draw)
        for draw in draws
        for name in paths
        for kind, counts in LABELS.items()
        for count in counts
    ]
    names, before = options.methods.split(","), json.loads(options.out.read_text()) if options.out.exists() else {}
    if unknown := set(names) - {*THEIRS, *OURS}:
        parser.error(f"there is no method {', '.join(unknown)}; there are {', '.join((*THEIRS, *OURS))}.")
    anew = {*names, CLASSES} if PHOTOS in names else {*names}
    runs = [run for run in before.get("runs", []) if run["method"] not in anew or run["draw"] not in draws]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for done in [pool.submit(measure, paths[cell.data], cell, names) for cell in cells]:
            runs += done.result()
            made = {
                **origin_of(sorted({run["draw"] for run in runs})),
                "earlier": [*before.get("earlier", []), *([about(before)] if before else [])],
                "macro": summary(runs, "macro"),
                "accuracy": summary(runs, "accuracy"),
                "runs": runs,
            }
            options.out.write_text(json.dumps(made) + "\n")
            print(f"{len(runs)} measured", flush=True)
    print(table(made))


if __name__ == "__main__":
    main()
