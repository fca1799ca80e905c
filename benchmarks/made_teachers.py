"""Zero-shot students: a threshold of confidence, or the most confident photos of each class? With teachers made up.

    python -m benchmarks.made_teachers eurosat=EuroSAT/2750 flowers=flowers20 --work runs/first \\
        --draws 0:3 --out results/zeroshot/made-teachers.json

No CLIP is at hand here. A made teacher knows a class by the mean of three of its photos and noise, in the features of
the same encoder, and has a bias for or against each class. Five kinds, from mild to one that mixes up a fifth of the
classes; one sees blurred photos. That flatters small numbers of labels: its most confident photos are nearly all right.
Folders are balanced (2,000 or 1,500 photos) or have a tail of 50 to 1. No true label is used before the last line.
"""

import json
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.drawn import Drawn, encoded, parsed, record
from benchmarks.origin import ROOT
from debiaspl._over_seeds import markdown
from debiaspl.features.fit import LINEAR, TableTask, enough_steps, fit_recipe
from debiaspl.zeroshot.predictions import Predictions, lost_classes

TEACHERS: dict[str, dict[str, float]] = {
    "mild": {"noise": 1.0, "bias": 0.0},
    "biased": {"noise": 1.5, "bias": 0.05},
    "strongly biased": {"noise": 1.5, "bias": 0.1},
    "blurred": {"noise": 1.5, "bias": 0.05, "blur": 2.0, "temperature": 0.03},
    "mixed up": {"noise": 1.0, "bias": 0.05, "wrong": 0.6},
}
STRICT = "threshold 0.95"
STUDENTS: tuple[tuple[float | None, int, str], ...] = (
    (0.95, 0, STRICT),
    (0.95, 0, "DebiasPL"),
    (None, 20, STRICT),
    *((None, count, "DebiasPL") for count in (5, 10, 20, 50)),
    (None, 20, "FixMatch"),
    *((None, count, "shares of the photos") for count in (10, 20)),
)
"""Confidence, or labels of each class; the student, DebiasPL at threshold 0.7 and with equal shares if not said."""
SHOTS = 3


def teacher(
    rows: Tensor,
    truth: Tensor,
    classes: int,
    seed: int,
    noise: float,
    bias: float,
    blur: float = 0.0,
    wrong: float = 0.0,
    temperature: float = 0.05,
) -> Tensor:
    """Probabilities, (N, C)."""
    random = torch.Generator().manual_seed(seed)

    def shaken(vectors: Tensor, by: float) -> Tensor:
        return F.normalize(vectors + by * F.normalize(torch.randn(vectors.shape, generator=random), dim=-1), dim=-1)

    units = F.normalize(rows - rows.mean(0), dim=-1)
    known = [(truth == number).nonzero().flatten() for number in range(classes)]
    shots = [own[torch.randperm(len(own), generator=random)[:SHOTS]] for own in known]
    means = torch.stack([F.normalize(units[own].mean(0), dim=-1) for own in shots])
    means = shaken(means, noise)
    if wrong:
        for number in torch.randperm(classes, generator=random)[: max(classes // 5, 1)].tolist():
            other = (number + 1 + int(torch.randint(classes - 1, (1,), generator=random))) % classes
            means[number] = F.normalize((1 - wrong) * means[number] + wrong * means[other], dim=-1)
    if blur:
        units = shaken(units, blur)
    favour = bias * torch.randn(classes, generator=random)
    return ((units @ means.T + favour) / temperature).softmax(-1)


def scored(label: Tensor, truth: Tensor, classes: int) -> dict[str, float]:
    right = (label == truth).double()
    return {
        "photos": float(right.mean()),
        "classes": fmean(float(right[truth == number].mean()) for number in range(classes)),
    }


def measured(path: Path, name: str, tail: bool, draw: int) -> list[dict[str, Any]]:
    drawn, found = Drawn(path, tail, draw), []
    rows, truth, classes = drawn.features, torch.from_numpy(drawn.truth), drawn.classes
    for kind, made in TEACHERS.items():
        probabilities = teacher(rows, truth, classes, draw, **made)
        said = Predictions(probabilities, tuple(map(str, range(classes))), ("",) * len(rows), kind)
        folder = {"data": name, "tail": tail, "draw": draw, "teacher": kind}
        found.append({**folder, "labels": "", "method": "alone", **scored(said.label, truth, classes)})
        for confidence, per_class, method in STUDENTS:
            labels = said.choose(confidence, per_class)
            learned = torch.tensor(sorted(set(labels.tolist()) - {-1}))
            number = torch.full((classes + 1,), -1)
            number[learned] = torch.arange(len(learned))
            recipe = LINEAR.changed(first_classifier="graph", seed=draw, steps=enough_steps(len(rows)))
            recipe = recipe.changed(correction="none") if method == "FixMatch" else recipe
            recipe = recipe.changed(threshold=0.95) if method == STRICT else recipe
            recipe = recipe.changed(optimise="photos") if method == "shares of the photos" else recipe
            names = list(map(str, learned.tolist()))
            label = learned[fit_recipe(recipe, drawn.table, TableTask(number[labels], names)).predict(rows)[1]]
            choice = f"confidence {confidence:g}" if confidence else f"{per_class} a class"
            row = {**scored(label, truth, classes), "lost": len(lost_classes(label, said))}
            found.append({**folder, "labels": choice, "method": method, **row})
    return found


def table() -> str:
    """photos / classes in %, means of five teachers, two sets and three draws; and who has lost classes."""
    runs = json.loads((ROOT / "results" / "zeroshot" / "made-teachers.json").read_text())["runs"]
    lines = [["labels", "student", "balanced", "tail", "lost classes", "below its teacher"]]
    alone = {_key(run): run["photos"] for run in runs if run["method"] == "alone"}
    for choice, method in dict.fromkeys((run["labels"], run["method"]) for run in runs):
        own = [run for run in runs if (run["labels"], run["method"]) == (choice, method)]
        cells = []
        for tail in (False, True):
            rows = [run for run in own if run["tail"] == tail]
            cells.append(" / ".join(f"{100 * fmean(run[name] for run in rows):.1f}" for name in ("photos", "classes")))
        lost = sum(run.get("lost", 0) > 0 for run in own)
        below = sum(run["photos"] < alone[_key(run)] - 0.01 for run in own)
        counts = ["-", "-"] if method == "alone" else [f"{count} of {len(own)}" for count in (lost, below)]
        lines.append([choice or "-", "the teacher alone" if method == "alone" else method, *cells, *counts])
    return markdown(lines)


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["data"], run["tail"], run["draw"], run["teacher"]


def main() -> None:
    options = parsed(__doc__).parse_args()
    paths, draws = encoded(options.sets, options.work), range(*map(int, options.draws.split(":")))
    cells = product(draws, paths, (False, True))
    record(options.out, [(measured, paths[name], name, tail, draw) for draw, name, tail in cells], options.jobs)


if __name__ == "__main__":
    main()
