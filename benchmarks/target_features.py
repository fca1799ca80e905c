"""What an estimated target brings on long tails, in minutes on a CPU: a small network on frozen features of CIFAR-10.

    python -m benchmarks.target_features --data data --work runs/target-features --out results/target/features.json

Features of efficientnet-lite0 at 112 pixels of two weak and two strong views of each training image; a perceptron with
one hidden layer, first trained on the labels that spread over the graph of the first view, then by FixMatch with each
correction: 3,000 steps of 32 + 224, an averaged teacher. Accuracy is that of the average on the balanced test images.
Nothing was searched for any method. Views that are in --work are not made again.
"""

import argparse
import copy
import json
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.long_tail import MinusPrior
from benchmarks.origin import ROOT, origin, write
from debiaspl._over_seeds import markdown
from debiaspl._processes import usable_cores
from debiaspl.augment import RandAugment, Weak
from debiaspl.data import ImageSet, LongTail, TwoTails, load
from debiaspl.data.splits import Splitter
from debiaspl.debias import Correction, Debiaser
from debiaspl.encoders import load_encoder
from debiaspl.features import FeatureTable
from debiaspl.training.parts import build

RESULTS = ROOT / "results" / "target" / "features.json"
SETS: dict[str, Splitter] = {
    "LT 100": LongTail(100.0, 0.1, labeled_also_unlabeled=True),
    **{
        f"500/4000 {kind}": TwoTails(500, 4000, 100.0, kind, labeled_also_unlabeled=True)
        for kind in ("consistent", "uniform", "reversed")
    },
}
VIEWS = {"weak": 2, "strong": 2}
SIDE, COLUMNS, HIDDEN, STEPS, FIRST_STEPS, RATE, THRESHOLD, DECAY = 112, 128, 256, 3000, 400, 0.03, 0.95, 0.99
GRAPH_ROWS = 12_000


def corrections(counts: list[int], on_graph: Tensor) -> dict[str, Callable[[], Correction]]:
    known = {"num_classes": 10, "class_counts": counts}

    def named(name: str, **settings: Any) -> Callable[[], Correction]:
        return lambda: build("correction", name, settings, **known)

    def expecting(kind: type[Debiaser], strength: float) -> Callable[[], Correction]:
        def made() -> Correction:
            debiaser = kind(10, strength, 0.99, 1.0, 1.0, "estimated", class_counts=counts)
            debiaser.expect(on_graph)
            return debiaser

        return made

    return {
        "FixMatch": named("none"),
        "DebiasPL, strength 0.5": named("debiaser", strength=0.5),
        "DebiasPL, strength 1": named("debiaser", strength=1.0),
        "alignment + logit adjustment": named("alignment+logit-adjustment"),
        "SimPro": named("simpro", unlabeled_ratio=7.0),
        "estimated during training": named("debiaser", target="estimated"),
        "estimated on the graph": expecting(Debiaser, 1.0),
        "the same, strength 0.5": expecting(Debiaser, 0.5),
        "the same, less log prior": expecting(MinusPrior, 1.0),
    }


@torch.no_grad()
def encode(images: ImageSet, view: str, seed: int, file: Path) -> None:
    torch.set_num_threads(1)
    encoder, generator, parts = load_encoder("efficientnet-lite0", SIDE), torch.Generator().manual_seed(seed), []
    weak, strong = Weak(), RandAugment.fixmatch()
    for start in range(0, len(images), 8):
        batch = images.images[start : start + 8]
        batch = batch if view == "plain" else weak(batch, generator)
        batch = strong(batch, generator) if view == "strong" else batch
        pixels = (batch.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        parts.append(encoder.embed(pixels).half())
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, torch.cat(parts).numpy())


def encoded(train: ImageSet, test: ImageSet, work: Path) -> tuple[dict[str, Tensor], Tensor]:
    """Views of the training images by name, (views, N, D), and the test images, reduced to the same columns; the first
    view itself is under ``graph``."""
    views = [(train, view, number) for view, count in VIEWS.items() for number in range(count)]
    wanted = [
        (images, view, 10 * number + len(view), file)
        for images, view, number in [*views, (test, "plain", 0)]
        if not (file := work / f"{view}{number}.npy").exists()
    ]
    with ProcessPoolExecutor(usable_cores()) as pool:
        list(pool.map(encode, *zip(*wanted, strict=True))) if wanted else None
    read = {
        f"{view}{number}": torch.from_numpy(np.load(work / f"{view}{number}.npy")).float() for _, view, number in views
    }
    first, tested = read["weak0"], torch.from_numpy(np.load(work / "plain0.npy")).float()
    mean, order = first.mean(0), torch.randperm(len(first), generator=torch.Generator().manual_seed(0))
    basis = torch.linalg.svd(first[order[:10_000]] - mean, full_matrices=False)[2][:COLUMNS].T
    length = ((first - mean) @ basis).square().sum(-1).mean().sqrt() / COLUMNS**0.5
    reduced = {name: (rows - mean) @ basis / length for name, rows in read.items()}
    stacked = {view: torch.stack([reduced[f"{view}{n}"] for n in range(count)]) for view, count in VIEWS.items()}
    return {**stacked, "graph": first}, (tested - mean) @ basis / length


def trained(
    views: dict[str, Tensor], truth: Tensor, split: tuple[Tensor, Tensor], first: Tensor, rule: Correction, seed: int
) -> nn.Module:
    """The averaged network. ``first`` are a class for some images, -1 for the others, to begin with."""
    labeled, unlabeled = split
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))

    def drawn(view: str, rows: Tensor) -> Tensor:
        return views[view][torch.randint(VIEWS[view], (len(rows),), generator=generator), rows]

    def optimiser(rate: float) -> torch.optim.SGD:
        return torch.optim.SGD(network.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4)

    known = (first >= 0).nonzero().flatten()
    weights, update = 1 / torch.bincount(first[known], minlength=10)[first[known]].float(), optimiser(0.05)
    for _ in range(FIRST_STEPS):
        rows = known[torch.multinomial(weights, 256, replacement=True, generator=generator)]
        update.zero_grad()
        F.cross_entropy(network(drawn("weak", rows)), first[rows]).backward()
        update.step()
    average, update = copy.deepcopy(network), optimiser(RATE)
    for step in range(STEPS):
        update.param_groups[0]["lr"] = RATE * math.cos(math.pi / 2 * step / STEPS)
        own, others = (
            part[torch.randint(len(part), (n,), generator=generator)] for part, n in ((labeled, 32), (unlabeled, 224))
        )
        with torch.no_grad():
            confidence, label = rule(average(drawn("weak", others))).max(-1)
        logits = network(torch.cat((drawn("weak", own), drawn("strong", others))))
        losses = F.cross_entropy(rule.margin(logits[32:], label), label, reduction="none")
        loss = F.cross_entropy(rule.labeled_margin(logits[:32], truth[own]), truth[own])
        update.zero_grad()
        (loss + (losses * (confidence >= THRESHOLD)).mean()).backward()
        update.step()
        with torch.no_grad():
            for mean, value in zip(average.parameters(), network.parameters(), strict=True):
                mean.lerp_(value, 1 - DECAY)
    return average


def of_fold(cell: tuple[str, int], train: ImageSet, test: ImageSet, work: Path) -> dict[str, dict[str, Any]]:
    """Every method on a fold of a set."""
    torch.set_num_threads(1)
    name, seed = cell
    views, tested = encoded(train, test, work)
    split = SETS[name].split(train.labels, seed)
    others = split.unlabeled[~torch.isin(split.unlabeled, split.labeled)]
    rows = torch.cat((split.labeled, others))
    table = FeatureTable(views["graph"][rows], device=torch.device("cpu"))
    labels = torch.cat((train.labels[split.labeled], torch.full_like(others, -1)))
    own = table.sample(labels, GRAPH_ROWS)
    on_graph = table.first_classifier("graph", labels, 10)["shares"]
    first = torch.full_like(train.labels, -1)
    first[rows[table.chosen]] = torch.where(own >= 0, own, table.spread(labels, 10).label)
    true = torch.bincount(train.labels[split.unlabeled], minlength=10) / len(split.unlabeled)
    counts, rows_by_method = torch.bincount(train.labels[split.labeled], minlength=10).tolist(), {}
    for method, made in corrections(counts, on_graph).items():
        rule = made()
        network = trained(views, train.labels, split, first, rule, seed)
        with torch.no_grad():
            right = network(tested).argmax(-1) == test.labels
        recall = [round(float(right[test.labels == number].double().mean()), 4) for number in range(10)]
        row: dict[str, Any] = {"accuracy": float(right.double().mean()), "recall": recall}
        if isinstance(rule, Debiaser) and rule.estimates:
            row["off"] = round(float((rule.target - true).abs().sum() / 2), 4)
        rows_by_method[method] = row
        print(name, seed, method, row["accuracy"], flush=True)
    return rows_by_method


def measure(options: argparse.Namespace) -> None:
    data = load("cifar10", options.data)
    train, test = data.train, data.test
    encoded(train, test, options.work)
    cells = [(name, seed) for name in SETS for seed in range(options.folds)]
    with ProcessPoolExecutor(usable_cores()) as pool:
        done = list(pool.map(of_fold, cells, *([one] * len(cells) for one in (train, test, options.work))))
    runs: dict[str, dict[str, dict[str, Any]]] = {}
    for (name, seed), rows in zip(cells, done, strict=True):
        for method, row in rows.items():
            runs.setdefault(name, {}).setdefault(method, {})[str(seed)] = row
    write(options.out, {"origin": origin(), "runs": runs})


def table(path: Path = RESULTS) -> str:
    """Accuracy in %, means over seeds; for an estimated target also its distance from the true shares."""
    runs = json.loads(path.read_text())["runs"]
    lines = [["target or method", *SETS]]
    for method in next(iter(runs.values())):
        cells = []
        for name in SETS:
            rows = list(runs[name][method].values())
            off = f" ({fmean(row['off'] for row in rows):.2f})" if "off" in rows[0] else ""
            cells.append(f"{100 * fmean(row['accuracy'] for row in rows):.1f}{off}")
        lines.append([method, *cells])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of CIFAR-10")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "target-features")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--folds", type=int, default=3)
    measure(options := parser.parse_args())
    print(table(options.out))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
