"""Labels spread over a graph of features: how many are right, by settings; and how long large sets take.

    python -m benchmarks.graph eurosat.npz flowers.npz --out results/graph/search.json --first 100
    python -m benchmarks.graph --vectors 100000 --out results/graph/large.json
    python -m benchmarks.graph --vectors 50000 --width 512 --device cuda --out results/graph/gpu.json

Each file has arrays ``features``, (N, D), and ``labels``, (N,), and a text ``about`` that says where they come from.
A draw gives labels to a few images of each class, and accuracy is that of all others.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.origin import origin, write
from debiaspl.data import FewLabels
from debiaspl.graph import Graph, nearest, ridge_weights

NEIGHBOURS, ALPHAS = (10, 20), (0.8, 0.9, 0.99)
DECAYS = (0.0003, 0.001, 0.003, 0.01, 0.03)


def variants(graphs: dict[int, Graph], given: Tensor, classes: int) -> Iterator[tuple[str, Tensor]]:
    """Name, and a class for every image."""
    units = graphs[NEIGHBOURS[0]].units
    members = F.one_hot(given.clamp_min(0), classes) * (given >= 0)[:, None]
    yield "nearest mean", (units @ F.normalize(members.float().T @ units, dim=-1).T).argmax(-1)
    for count, graph in graphs.items():
        for alpha in ALPHAS:
            yield f"graph, {count} neighbours, alpha {alpha}", graph.spread(given, classes, alpha).argmax(-1)
    spread = graphs[NEIGHBOURS[0]].spread(given, classes).argmax(-1)
    label = torch.where(given >= 0, given, spread)
    for decay in DECAYS:
        yield f"graph, then ridge {decay}", (units @ ridge_weights(units, label, classes, decay).T).argmax(-1)


def accuracies(path: Path, draws: range, per_class: int) -> dict[str, Any]:
    stored = np.load(path)
    features, truth = torch.from_numpy(stored["features"]), torch.from_numpy(stored["labels"]).long()
    classes, graphs = int(truth.max()) + 1, {count: Graph.of(features, count) for count in NEIGHBOURS}
    found: dict[str, list[float]] = {}
    for seed in draws:
        known = FewLabels(per_class).split(truth, seed).labeled
        given = torch.full_like(truth, -1)
        given[known] = truth[known]
        for name, label in variants(graphs, given, classes):
            right = (label == truth)[given < 0].double().mean()
            found.setdefault(name, []).append(round(100 * float(right), 2))
    shape = list(features.shape)
    return {"features": path.stem, "about": str(stored["about"]), "shape": shape, "classes": classes, "runs": found}


def large(count: int, width: int, device: str) -> dict[str, Any]:
    """Made of clusters in few dimensions, as features are, with noise, and positive, as after a ReLU."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(200, 48, generator=generator)
    inner = centres[torch.randint(200, (count,), generator=generator)] + 0.8 * torch.randn(
        count, 48, generator=generator
    )
    vectors = (inner @ torch.randn(48, width, generator=generator) / 7).relu_().to(device)
    Graph.of(vectors[:1000])  # a GPU's first use of a kernel takes seconds, which a run pays once
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    graph = Graph.of(vectors)
    made = time.perf_counter()
    given = torch.full((count,), -1, device=device)
    given[:100] = torch.arange(100, device=device) % 20
    float(graph.spread(given, 20).sum())  # waits for a GPU
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    some = torch.arange(0, count, max(count // 500, 1))
    exact, found = nearest(graph.units[some], 11, graph.units, exact=True), nearest(graph.units, 10)
    pairs = zip(exact.places[:, 1:].tolist(), found.places[some].tolist(), strict=True)
    hits = [len(set(all_of_them) & set(own)) / 10 for all_of_them, own in pairs]
    return {
        "vectors": [count, width],
        "seconds": {"graph": round(made - began, 1), "spread": round(ended - made, 1)},
        "processor_seconds": round(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 1),
        "memory_beside_gib": round((after.ru_maxrss - before.ru_maxrss) / 2**20, 2),
        "neighbours_found": round(float(np.mean(hits)), 4),
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--first", type=int, default=0, help="the first draw")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--per-class", type=int, default=4, help="labels")
    parser.add_argument("--vectors", type=int, help="time so many made-up vectors instead")
    parser.add_argument("--width", type=int, default=1280, help="of the vectors")
    parser.add_argument("--device", default="cpu", help="where the vectors are: cpu or cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    draws = range(options.first, options.first + options.draws)
    made = origin()
    if options.vectors:
        made |= large(options.vectors, options.width, options.device)
    else:
        made |= {"labels_per_class": options.per_class, "draws": list(draws)}
        made["sets"] = [accuracies(path, draws, options.per_class) for path in options.files]
        for one in made["sets"]:
            print(one["features"])
            for name, values in one["runs"].items():
                print(f"  {name:36} {mean(values):.1f}")
    write(options.out, made)


if __name__ == "__main__":
    main()
