"""Few labels on folders of photos, by the features of one encoder: debiaspl beside what scikit-learn offers.

    python -m benchmarks.photos eurosat=EuroSAT/2750 flowers=flowers20 --work runs/photos --out cells.json

Each set is a folder of class folders. For every set there are three kinds of folders: balanced; long-tailed with the
same number of labels for each class; and long-tailed with labels drawn at random, where a class that was missed gets
one label. Every method sees the same photos, labels and features. Measured is what it says of the photos without a
label: accuracy, and macro accuracy, which is the mean over classes. Ours are the very choices of ``debiaspl train
PHOTOS --encoder NAME``, without the folds that check them, and ``DebiasedClassifier`` with its defaults.
"""

import argparse
import json
import math
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from debiaspl import DebiasedClassifier
from debiaspl._processes import keep_freed_memory
from debiaspl.data import GivenLabels, ImageSet, loaded
from debiaspl.encoders import Encoder, features_of, load_encoder
from debiaspl.features import FeatureTable, fit
from debiaspl.graph import Graph
from debiaspl.photos.choose import choose, working_size
from debiaspl.photos.survey import Photos, survey

ROOT = Path(__file__).parent.parent
ENCODER = "efficientnet-lite0"
KINDS = ("balanced", "long tail, equal labels", "long tail, random labels")
MOST = 500
"""Photos of a class that are looked at."""
BALANCED, LARGEST, GAMMA = {10: 200, 20: 100}, {10: 500, 20: 200}, {10: 20.0, 20: 10.0}
"""By the number of classes: photos of a class in a balanced folder; of the largest class in a long-tailed one; and the
largest class over the smallest. So every folder has 1,600 to 2,000 photos."""
THEIRS = ("logistic regression", "self-training", "LabelSpreading", "graph diffusion")
OURS = ("DebiasPL", "DebiasedClassifier")
FITS = {"supervised": "supervised", "graph labels": "graph", "FixMatch": "fixmatch", "DebiasPL": "debiaspl"}


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
    recipe = choose(photos, "cpu", (ENCODER, encoder))
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


def drawn(truth: np.ndarray, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Which photos are in the folder, and their labels, -1 where there is none."""
    random, classes = np.random.default_rng(cell.draw), int(truth.max()) + 1
    order = np.arange(classes) if cell.kind == KINDS[0] else random.permutation(classes)
    kept: list[int] = []
    for rank, number in enumerate(order):
        own = random.permutation(np.flatnonzero(truth == number))
        share = GAMMA[classes] ** (-rank / (classes - 1))
        count = BALANCED[classes] if cell.kind == KINDS[0] else round(LARGEST[classes] * share)
        kept += own[:count].tolist()
    there = truth[kept]
    if cell.kind == KINDS[2]:
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
    return np.array(kept), given


def theirs(rows: np.ndarray, given: np.ndarray) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """scikit-learn's methods on rows of length 1, with settings that suit these; and diffusion on a graph."""

    def regression() -> LogisticRegression:
        return LogisticRegression(C=30, max_iter=300)

    known = given >= 0
    yield "logistic regression", lambda: regression().fit(rows[known], given[known]).predict(rows)
    yield "self-training", lambda: SelfTrainingClassifier(regression(), threshold=0.8).fit(rows, given).predict(rows)
    spreading = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.9, max_iter=50)
    yield "LabelSpreading", lambda: spreading.fit(rows, given).transduction_
    graph = Graph.of(torch.from_numpy(rows))
    yield "graph diffusion", lambda: graph.spread(torch.from_numpy(given), int(given.max()) + 1).argmax(-1).numpy()


def rated(predicted: np.ndarray, truth: np.ndarray, given: np.ndarray) -> dict[str, float]:
    """Accuracy and its mean over classes in %, of the photos without a label."""
    right, of = (predicted == truth)[given < 0], truth[given < 0]
    by_class = [right[of == number].mean() for number in np.unique(of)]
    return {"accuracy": round(100 * float(right.mean()), 2), "macro": round(100 * float(np.mean(by_class)), 2)}


def measure(path: Path, cell: Cell) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)  # LabelSpreading divides by 0 for rows without a neighbour
    data = Encoded(*torch.load(path, weights_only=False))
    kept, given = drawn(data.truth, cell)
    truth, features = data.truth[kept], data.features[kept]
    rows = torch.nn.functional.normalize(features - features.mean(0), dim=-1).numpy()
    methods = dict(theirs(rows, given))
    table, labels = FeatureTable(features, device=torch.device("cpu")), torch.from_numpy(given)
    for name, method in FITS.items():
        chosen = partial(fit, table, labels, len(data.classes), method=method, seed=cell.draw)
        methods[name] = lambda chosen=chosen: chosen().predict(table.features)[1].numpy()
    methods["DebiasedClassifier"] = lambda: (
        DebiasedClassifier(random_state=cell.draw, device="cpu").fit(features.numpy(), given).transduction_
    )
    found = []
    for name, method in methods.items():
        began = time.perf_counter()
        numbers = rated(method(), truth, given)
        found.append({**cell._asdict(), "method": name, **numbers, "seconds": round(time.perf_counter() - began, 1)})
    return found


def summary(runs: list[dict[str, Any]], measure: str) -> list[dict[str, Any]]:
    """A row a cell: the mean of every method over draws, and ours minus the best of theirs, draw by draw."""
    rows = []
    for data, kind, labels in dict.fromkeys((run["data"], run["kind"], run["labels"]) for run in runs):
        own = [run for run in runs if (run["data"], run["kind"], run["labels"]) == (data, kind, labels)]
        by_method: dict[str, list[float]] = {}
        for run in sorted(own, key=lambda run: run["draw"]):
            by_method.setdefault(run["method"], []).append(run[measure])
        means = {name: round(mean(values), 1) for name, values in by_method.items()}
        best = max(THEIRS, key=lambda name: mean(by_method[name]))
        row: dict[str, Any] = {"data": data, "kind": kind, "labels": labels, "mean": means, "best of theirs": best}
        for name in OURS:
            gain = [one - other for one, other in zip(by_method[name], by_method[best], strict=True)]
            error = stdev(gain) / math.sqrt(len(gain)) if len(gain) > 1 else float("nan")
            row[name] = {"gain": round(mean(gain), 1), "standard_error": round(error, 1), "draws": len(gain)}
        rows.append(row)
    return rows


SHOWN = ("supervised", "graph labels", "FixMatch", "DebiasPL")


def table(made: dict[str, Any]) -> str:
    """As docs/own-photos.md shows it, plain accuracy / mean over classes; the file has every method."""
    header = ("photos", "folder", "labels a class", "best of four", *SHOWN)
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    for plain, macro in zip(made["accuracy"], made["macro"], strict=True):
        cells = [plain["data"], plain["kind"], str(plain["labels"])]
        pairs = [(plain["best of theirs"], macro["best of theirs"]), *((name, name) for name in SHOWN)]
        cells += [f"{plain['mean'][one]:.1f} / {macro['mean'][other]:.1f}" for one, other in pairs]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def origin(draws: Iterable[int]) -> dict[str, Any]:
    """What a file of results says of where it comes from."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip(),
        "device": platform.machine(),
        "torch": torch.__version__,
        "encoder": ENCODER,
        "draws": list(draws),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--work", type=Path, required=True, help="folder for the features")
    parser.add_argument("--labels", default="5,10,20")
    parser.add_argument("--first", type=int, default=0, help="the first draw; settings were chosen on 100 and 101")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, _, folder in (text.partition("=") for text in options.sets):
        paths[name] = options.work / f"{name}.pt"
        if not paths[name].exists():
            torch.save(tuple(encoded(Path(folder), options.work)), paths[name])
        print(f"features of {name}", flush=True)
    labels, draws = (
        [int(text) for text in options.labels.split(",")],
        range(options.first, options.first + options.draws),
    )
    cells = [Cell(name, kind, count, draw) for draw in draws for name in paths for kind in KINDS for count in labels]
    runs: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for done in [pool.submit(measure, paths[cell.data], cell) for cell in cells]:
            runs += done.result()
            print(f"{len(runs)} of {9 * len(cells)}", flush=True)
    made = {
        **origin(draws),
        "macro": summary(runs, "macro"),
        "accuracy": summary(runs, "accuracy"),
        "runs": runs,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(made) + "\n")
    print(table(made))


if __name__ == "__main__":
    main()
