"""Does it pay to fine-tune the encoder? With 5 and 20 labels a class, beside the frozen fit that is the default.

    python -m benchmarks.fine_tuning eurosat=EuroSAT/2750 flowers=flowers20 --work runs/fine-tuning --out cells.jsonl

Each set is a folder of class folders; all photos of a draw that are not labeled are learned from without their labels,
and are what is measured: accuracy, and macro accuracy, the mean over classes. The ways:

* *frozen*: DebiasPL on the features of the frozen encoder, as ``debiaspl train PHOTOS``; *frozen, other size*: the same
  with images of another size; *vote*: the mean of the two fits' log-probabilities.
* *labels*: all weights are trained on the labels alone, from a random classifier; *labels, fit*: from the classifier
  that is fitted to the frozen features of the labels alone.
* *random*: with pseudo-labels, from a random classifier; *fit*: from the classifier that is fitted to the frozen
  features, with its confidence calibrated (``debiaspl train PHOTOS --fine-tune``).

Each way of fine-tuning takes the best of the same learning rates, on a draw of its own with 5 labels a class. The first
draw of all cells comes before the second, and a line is written after each run, so that one that is stopped loses
little; with ``--budget``, no run is started that would end later.
"""

import argparse
import json
import shutil
import subprocess
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from debiaspl.data import UNLABELED, GivenLabels, ImageSet, Task, loaded
from debiaspl.encoders import features_of, load_encoder
from debiaspl.features import FeatureTable
from debiaspl.features.begin import fitted_head
from debiaspl.features.fit import LINEAR, TableTask, enough_steps, fit_recipe
from debiaspl.photos.choose import choose
from debiaspl.photos.survey import survey
from debiaspl.training import Recipe, Run
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.method import with_method
from debiaspl.training.tasks import given_task

ENCODER = "efficientnet-lite0"
LABELS, SEARCHED, SEARCH_DRAW = (5, 20), 5, 100
RATES = (2e-4, 6e-4, 2e-3)
TUNED = {
    "fit": {},
    "labels": {"method": "supervised", "first": "random"},
    "labels, fit": {"method": "supervised"},
    "random": {"first": "random"},
}
"""Ways of fine-tuning: what differs from the recipe of ``--fine-tune``."""
FROZEN = "frozen", "frozen, other size", "vote"
Head = tuple[Tensor, Tensor]


class Cell(NamedTuple):
    data: str
    labels: int
    """A class."""
    draw: int


def prepare(name: str, folder: Path, options: argparse.Namespace) -> None:
    """Decode the photos, encode them at both sizes and choose the recipe: a file for all processes."""
    photos, encoder = survey(folder, None), load_encoder(ENCODER)
    photos = replace(photos, labels=photos.labels.new_full(photos.labels.shape, UNLABELED))
    encoder.image_size = options.sides[0]
    recipe = choose(photos, options.device, encoder, frozen=False)
    images, _ = loaded(GivenLabels().read(str(folder), recipe.image_size, stream=True))
    if options.most:
        members = torch.nn.functional.one_hot(images.labels)
        place = (members.cumsum(0) - 1).gather(1, images.labels[:, None])[:, 0]
        images = images.select((place < options.most).nonzero().flatten())
    features = []
    for side in options.sides:
        encoder.image_size = side
        features.append(features_of(images, encoder.to(options.device), options.work / name).values.clone())
    torch.save((images.images, images.labels, images.classes, features, recipe), options.work / f"{name}.pt")


@cache
def prepared(work: Path, name: str) -> tuple[Tensor, Tensor, tuple[str, ...], list[Tensor], Recipe]:
    torch.set_num_threads(1)
    found: tuple[Tensor, Tensor, tuple[str, ...], list[Tensor], Recipe] = torch.load(
        work / f"{name}.pt", weights_only=False
    )
    return found


def known(labels: Tensor, cell: Cell) -> Tensor:
    """Row numbers of the labeled photos of a draw."""
    random, chosen = np.random.default_rng([cell.draw, cell.labels]), list[int]()
    for number in range(int(labels.max()) + 1):
        chosen += random.permutation((labels == number).nonzero().flatten().numpy())[: cell.labels].tolist()
    return torch.tensor(sorted(chosen))


def rated(cell: Cell, way: str, predicted: Tensor, truth: Tensor, began: float, **more: Any) -> dict[str, Any]:
    """A line of the file; accuracies in %."""
    right = (predicted == truth).double()
    macro = mean(float(right[truth == number].mean()) for number in range(int(truth.max()) + 1))
    numbers = {"accuracy": round(100 * float(right.mean()), 2), "macro": round(100 * macro, 2)}
    return {**cell._asdict(), "way": way, **numbers, **more, "seconds": round(time.time() - began, 1)}


def fit_frozen(work: Path, cell: Cell, until: float) -> tuple[list[dict[str, Any]], dict[str, Head]]:
    """The frozen fits and their vote, and the classifiers from which fine-tuning begins."""
    if time.time() > until:
        return [], {}
    _, labels, classes, features, _ = prepared(work, cell.data)
    rows = known(labels, cell)
    given = torch.full_like(labels, UNLABELED)
    given[rows] = labels[rows]
    others, lines, votes = given < 0, [], []
    for way, rows_of in zip(FROZEN, features, strict=False):
        began = time.time()
        recipe = replace(LINEAR, first_classifier="graph", steps=enough_steps(len(labels)), optimise="photos")
        fitted = fit_recipe(
            recipe, FeatureTable(rows_of, unit=True, device=torch.device("cpu")), TableTask(given, classes)
        )
        votes.append(fitted.logits(rows_of).log_softmax(-1)[others])
        lines.append(rated(cell, way, votes[-1].argmax(1), labels[others], began))
    lines.append(rated(cell, FROZEN[-1], (votes[0] + votes[1]).argmax(1), labels[others], time.time()))
    # As a run makes them, from the features that are there.
    ways = {"fit": "debiaspl", "labels, fit": "supervised"}
    return lines, {way: fitted_head(features[0], given, classes, recipe.seed, ways[way]) for way in ways}


def tune(
    options: argparse.Namespace, cell: Cell, way: str, rate: float, head: Head | None, until: float
) -> list[dict[str, Any]]:
    """Fine-tune; no line if there is no time left for another run of its kind."""
    began = time.time()
    if began + _SECONDS.get(way, 0) > until:
        return []
    pictures, labels, classes, _, recipe = prepared(options.work, cell.data)
    differs = TUNED[way]
    recipe = with_method(recipe, differs["method"]) if "method" in differs else recipe
    recipe = replace(
        recipe,
        first_classifier=differs.get("first", recipe.first_classifier),
        learning_rate=rate,
        steps=options.steps,
        log_every=max(options.steps // 10, 1),
        checkpoint_every=options.steps,
    ).changed(**json.loads(options.set))
    rows, images = known(labels, cell), ImageSet(pictures, labels, classes)
    labeled = images.select(rows)
    others = images.select(np.setdiff1d(np.arange(len(labels)), rows.numpy()).tolist())
    recipe, data = given_task(recipe, Task(labeled, others.without_labels(), others))
    out = options.work / "run" / f"{'-'.join(map(str, cell))}-{way.replace(', ', '-')}-{rate}"
    shutil.rmtree(out, ignore_errors=True)
    how = RunOptions(device=options.device, eager=options.eager, shown=False)
    more = {} if head is None else {"begin": lambda *_: {"head.weight": head[0], "head.bias": head[1]}}
    results = train_as(how, recipe, out, data, **more)
    kept = [round(record["kept"], 3) for record in Run(out).log() if "kept" in record]
    shutil.rmtree(out)
    numbers = {"accuracy": round(100 * results["accuracy"], 2), "macro": round(100 * mean(results["recall"]), 2)}
    pseudo = {"kept": kept, "pseudo_accuracy": results.get("pseudo_accuracy")} if kept else {}
    _SECONDS[way] = time.time() - began
    seconds = {"seconds": round(_SECONDS[way], 1), "training": results["timing"]["seconds"]}
    return [{**cell._asdict(), "way": way, "rate": rate, **numbers, **pseudo, **seconds}]


_SECONDS: dict[str, float] = {}
"""How long the last run of each kind took, in this process."""


class Lines:
    """Writes each line as it comes."""

    def __init__(self, file: Path) -> None:
        self.all: list[dict[str, Any]] = []
        self._file, self._lock = file.open("a"), Lock()

    def add(self, line: dict[str, Any]) -> None:
        with self._lock:
            self.all.append(line)
            print(json.dumps(line), flush=True)
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def of(self, future: Future[Any]) -> None:
        """Write what has been returned; a run that fails ends no other."""
        try:
            result = future.result()
            for line in result[0] if isinstance(result, tuple) else result:
                self.add(line)
        except Exception:
            self.add({"error": traceback.format_exc()[-2000:]})

    def best_rate(self, way: str, rates: Sequence[float]) -> float:
        """By the mean over the sets; the middle one if nothing was searched."""
        found = {
            rate: [one["accuracy"] for one in self.all if one.get("way") == way and one.get("rate") == rate]
            for rate in rates
        }
        most = max(map(len, found.values()))
        complete = {rate: mean(values) for rate, values in found.items() if most and len(values) == most}
        return max(complete, key=lambda rate: complete[rate], default=rates[len(rates) // 2])


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Accuracy and macro accuracy of each way, as means over the draws that all ways of a cell have."""
    measured = [one for one in lines if one.get("draw", SEARCH_DRAW) != SEARCH_DRAW]
    rows = []
    for data, labels in dict.fromkeys((one["data"], one["labels"]) for one in measured):
        own: dict[str, dict[int, dict[str, Any]]] = {}
        for one in measured:
            if (one["data"], one["labels"]) == (data, labels):
                own.setdefault(one["way"], {})[one["draw"]] = one
        shared = set.intersection(*(set(draws) for draws in own.values()))
        for way in [*FROZEN, *TUNED] if shared else ():
            if way in own:
                numbers = (mean(own[way][draw][name] for draw in shared) for name in ("accuracy", "macro"))
                told = ", ".join(f"{own[way][draw]['accuracy']:.1f}" for draw in sorted(shared))
                rows.append(
                    f"| {data}, {labels} a class | {way} | {' | '.join(f'{n:.1f}' for n in numbers)} | {told} |"
                )
    return "\n".join(("| cell | way | accuracy | macro | draws |", "|---|---|---|---|---|", *rows))


def planned(sets: list[str], draws: int) -> Iterator[Cell]:
    for draw in range(draws):
        for labels in LABELS:
            yield from (Cell(data, labels, draw) for data in sets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="NAME=FOLDER; none: print the table of --out")
    parser.add_argument("--work", type=Path, default=Path("runs/fine-tuning"), help="for features and runs")
    parser.add_argument("--out", type=Path, required=True, help="a line for each run; appended to")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds, from now")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES, help="learning rates to choose from")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sides", type=int, nargs=2, default=(224, 160), help="of images inside the encoder")
    parser.add_argument("--set", default="{}", help="changes of the recipe, as JSON, for a rehearsal")
    parser.add_argument("--most", type=int, default=0, help="photos of a class, for a rehearsal")
    parser.add_argument("--processes", type=int, nargs=2, default=(3, 8), help="that train, and that fit")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--eager", action="store_true")
    options = parser.parse_args()
    if not options.sets:
        print(table([json.loads(line) for line in options.out.read_text().splitlines()]))
        return
    until = time.time() + options.budget
    options.work.mkdir(parents=True, exist_ok=True)
    lines, sets = Lines(options.out), dict(one.split("=", 1) for one in options.sets)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    device = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    lines.add(
        {"commit": commit, "device": device, "torch": torch.__version__, "steps": options.steps, "rates": options.rates}
    )
    fresh = get_context("spawn")
    trainers, fitters = (ProcessPoolExecutor(count, fresh) for count in options.processes)
    for done in [trainers.submit(prepare, name, Path(folder), options) for name, folder in sets.items()]:
        done.result()
    lines.add({"prepared": list(sets), "left": round(until - time.time())})
    searched, cells = [Cell(name, SEARCHED, SEARCH_DRAW) for name in sets], list(planned(list(sets), options.draws))
    fits = {cell: fitters.submit(fit_frozen, options.work, cell, until) for cell in (*searched, *cells)}

    def tuned(cell: Cell, way: str, rate: float) -> Future[Any]:
        begins = way.endswith("fit") and fits[cell].exception() is None
        head = fits[cell].result()[1].get(way) if begins else None
        future = trainers.submit(tune, options, cell, way, rate, head, until)
        future.add_done_callback(lines.of)
        return future

    ways = [*reversed(TUNED)]  # the fits are still at work when the others begin
    for one in fits.values():
        one.add_done_callback(lines.of)
    wait([tuned(cell, way, rate) for way in ways for rate in options.rates for cell in searched])
    best = {way: lines.best_rate(way, options.rates) for way in TUNED}
    lines.add({"best": best, "left": round(until - time.time())})
    wait([*(tuned(cell, way, best[way]) for cell in cells for way in ways), *fits.values()])
    print(table(lines.all))


if __name__ == "__main__":
    main()
