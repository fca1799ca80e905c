"""The settings of photos with a frozen encoder, searched for FixMatch and DebiasPL alike.

    python -m benchmarks.photos_search eurosat=EuroSAT/2750 flowers=flowers20 --work runs/photos --out search.json

Every setting is tried without the Debiaser (strength 0, which is FixMatch) and with it, on the same draws and the same
photos: draws 100 and 101, which benchmarks/photos.py does not measure. The base is what both share: the graph first,
threshold 0.8, 500 steps, learning rate 1. Each setting changes one thing of it.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.photos import (
    KINDS,
    Cell,
    Encoded,
    drawn,
    encoded,
    looked_at,
    origin,
    rated,
    recipes,
    scaled,
    trained,
)
from debiaspl._processes import keep_freed_memory
from debiaspl.encoders import EncodedViews
from debiaspl.encoders.cache import cached_features
from debiaspl.graph import Graph, nearest
from debiaspl.training import Choice, Recipe
from debiaspl.training.settings import parse_settings

DRAWS, LABELS, STRENGTHS = (100, 101), (5, 20), (0.0, 0.5)
BASE, RANDOM = "base", "random classifier first"
SETTINGS: dict[str, list[str]] = {
    BASE: [],
    **{f"threshold {value}": [f"threshold={value}"] for value in (0.5, 0.6, 0.7, 0.9, 0.95)},
    **{f"steps {value}": [f"steps={value}"] for value in (200, 1000)},
    "learning rate 0.3": ["learning_rate=0.3"],
    "strong views of features": ["strong=hide", "flip=false"],
    RANDOM: ["first_classifier=random"],
}
MIRROR, SMOOTH, TAUGHT = "mirror", "smooth", "taught"
"""What is learned from is changed, not a setting: features are averaged over the photo and its mirror image; or with
the mean of those of ten neighbours; or the graph's surer half of each class counts as labeled."""
ADDED = (0.25, 0.5, 1.0)
"""Weights of the graph's log-probabilities, added afterwards to those of the base and of a random first classifier."""


def viewed(folder: Path, work: Path) -> tuple[Any, ...]:
    """As benchmarks/photos.py keeps it."""
    return tuple(encoded(folder, work))


def mirrored(folder: Path, work: Path) -> torch.Tensor:
    """Features of the mirror images of the same photos."""
    keep_freed_memory()
    _, encoder, images = looked_at(folder)
    assert isinstance(images.images, torch.Tensor)
    turned = replace(images, images=images.images.flip(-1))
    return cached_features(encoder, turned, work / "features", EncodedViews()).plain


def recipe_of(base: Recipe, strength: float, settings: list[str]) -> Recipe:
    correction = Choice("debiaser", {"strength": strength}) if strength else Choice("none")
    return parse_settings(replace(base, correction=correction), ["threshold=0.8", *settings])


def smoothed(values: torch.Tensor) -> torch.Tensor:
    """Half of each is the mean of its photo's ten nearest neighbours."""
    plain = values[:, 0]
    around = plain[nearest(F.normalize(plain, dim=-1), 10).places].mean(1)
    return (values + around[:, None]) / 2


def taught(given: np.ndarray, spread: torch.Tensor) -> np.ndarray:
    """Labels, and those of the graph for the surer half of what it gives to each class."""
    sure, label = (found.numpy() for found in spread.max(-1))
    more = given.copy()
    for number in range(spread.shape[1]):
        own = np.flatnonzero((label == number) & (given < 0))
        more[own[np.argsort(-sure[own], kind="stable")[: len(own) // 2]]] = number
    return more


@cache
def kept_in_memory(path: Path) -> Encoded:
    """For all cells of a process."""
    return Encoded(*torch.load(path, weights_only=False))


def measure(path: Path, mirror: Path, cell: Cell, strength: float, only: frozenset[str]) -> list[dict[str, Any]]:
    """Every setting, or those that ``only`` names."""
    torch.set_num_threads(1)
    data = kept_in_memory(path)
    kept, given = drawn(data.truth, cell)
    truth, plain, views = data.truth[kept], data.plain[kept], data.views[kept]
    base, classes = recipes(data.photos, given)["DebiasPL"], data.photos.classes
    values, found = scaled(plain, views), []

    def note(setting: str, logits: torch.Tensor, began: float) -> None:
        numbers = rated(logits.argmax(-1).numpy(), truth, given)
        seconds = round(time.perf_counter() - began, 1)
        found.append({**cell._asdict(), "strength": strength, "setting": setting, **numbers, "seconds": seconds})

    spread = Graph.of(plain).spread(torch.from_numpy(given), len(classes))
    for setting, changes in SETTINGS.items():
        graphs = [f"{setting} + {weight} graph" for weight in ADDED] if setting in (BASE, RANDOM) else []
        if only and only.isdisjoint((setting, *graphs)):
            continue
        began = time.perf_counter()
        logits = trained(recipe_of(base, strength, changes), values, given, classes)
        note(setting, logits, began)
        for name, weight in zip(graphs, ADDED, strict=False):
            both = logits.log_softmax(-1) + weight * spread.clamp_min(1e-6).log()
            note(name, both, time.perf_counter())
    plainly = recipe_of(base, strength, [])
    others = {
        MIRROR: lambda: (scaled((plain + torch.load(mirror)[kept]) / 2, views), given),
        SMOOTH: lambda: (smoothed(values), given),
        TAUGHT: lambda: (values, taught(given, spread)),
    }
    for setting, learned_from in others.items():
        if not only or setting in only:
            began = time.perf_counter()
            note(setting, trained(plainly, *learned_from(), classes), began)
    return found


def means(runs: list[dict[str, Any]]) -> dict[float, dict[str, dict[str, float]]]:
    """By strength and setting: macro accuracy and accuracy, meaned over draws and then over cells."""
    cells: dict[tuple[float, str], dict[tuple[Any, ...], list[dict[str, Any]]]] = {}
    for run in runs:
        own = cells.setdefault((run["strength"], run["setting"]), {})
        own.setdefault((run["data"], run["kind"], run["labels"]), []).append(run)
    found: dict[float, dict[str, dict[str, float]]] = {}
    for (strength, setting), own in cells.items():
        found.setdefault(strength, {})[setting] = {
            key: mean(mean(run[key] for run in each) for each in own.values()) for key in ("macro", "accuracy")
        }
    return found


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--work", type=Path, required=True, help="folder for the features")
    parser.add_argument("--draws", type=numbers, default=DRAWS, help="such as 0,1,2,3,4")
    parser.add_argument("--labels", type=numbers, default=LABELS, help="of a class, such as 5,10,20")
    parser.add_argument("--strengths", type=lambda text: [float(part) for part in text.split(",")], default=STRENGTHS)
    parser.add_argument(
        "--only", action="append", default=[], metavar="SETTING", help="these settings; all, unless given"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="what is in it is not run again")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, _, folder in (text.partition("=") for text in options.sets):
        paths[name] = options.work / f"{name}.pt", options.work / f"{name}-mirror.pt"
        for path, compute in zip(paths[name], (viewed, mirrored), strict=True):
            if not path.exists():
                torch.save(compute(Path(folder), options.work), path)
        print(f"features of {name}", flush=True)
    cells = [
        Cell(name, kind, count, draw)
        for draw in options.draws
        for count in options.labels
        for name in paths
        for kind in KINDS
    ]
    runs: list[dict[str, Any]] = json.loads(options.out.read_text())["runs"] if options.out.exists() else []
    there = {(run["data"], run["kind"], run["labels"], run["draw"], run["strength"]) for run in runs}
    left = [(cell, strength) for cell in cells for strength in options.strengths if (*cell, strength) not in there]
    made = origin(options.draws)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        only = frozenset(options.only)
        for done in [pool.submit(measure, *paths[cell.data], cell, strength, only) for cell, strength in left]:
            runs += done.result()
            options.out.write_text(json.dumps({**made, "means": means(runs), "runs": runs}) + "\n")
            print(f"{len(runs)} runs", flush=True)


if __name__ == "__main__":
    main()
