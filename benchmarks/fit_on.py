"""What a fit on some of the photos costs: accuracy beside the fit on all of them, with 5 and 20 labels a class.

OMP_NUM_THREADS=1 python -m benchmarks.fit_on eurosat.npz --out results/photos/fit_on.json

The file holds ``features``, (N, D), and ``labels``. A draw gives labels to some photos of each class; accuracy is the
mean over classes on all others, which the fit on some photos has mostly not seen.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from benchmarks.origin import origin, write
from benchmarks.size import macro
from debiaspl.data import FewLabels
from debiaspl.features import FeatureTable, TableTask, fit_recipe
from debiaspl.features.fit import LINEAR, enough_steps

DRAWS, BUDGETS = range(100, 105), (5, 20)


def measured(features: torch.Tensor, truth: torch.Tensor, draw: int, sizes: list[int]) -> list[dict[str, Any]]:
    """A row for each budget and size, of which the last is that of all photos."""
    classes, rows = tuple(map(str, range(int(truth.max()) + 1))), []
    table = FeatureTable(features, unit=True, device=torch.device("cpu"))
    for size in sizes:
        for budget in BUDGETS:
            known = FewLabels(budget).split(truth, draw).labeled
            given = torch.full_like(truth, -1)
            given[known] = truth[known]
            recipe = LINEAR.changed(seed=draw, steps=enough_steps(len(table)), fit_on=size, first_classifier="graph")
            began = time.process_time()
            label = fit_recipe(recipe, table, TableTask(given, classes)).predict(features)[1]
            row = {"draw": draw, "labels": budget, "fit_on": size, "accuracy": round(macro(label, truth, given < 0), 2)}
            rows.append(row | {"seconds": round(time.process_time() - began, 1)})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000])
    parser.add_argument("--draws", type=int, nargs="+", default=list(DRAWS), help="adds to what --out has already")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with np.load(options.features) as file:
        features, truth = torch.from_numpy(file["features"]), torch.from_numpy(file["labels"]).long()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    for draw in options.draws:
        rows += measured(features, truth, draw, [*options.sizes, len(features)])
        sizes = [*options.sizes, len(features)]
        means = {
            f"{budget} labels, {size} photos": round(
                mean(row["accuracy"] for row in rows if (row["labels"], row["fit_on"]) == (budget, size)), 2
            )
            for budget in BUDGETS
            for size in sizes
        }
        made = {
            **origin("OMP_NUM_THREADS=1 python -m benchmarks.fit_on eurosat.npz --out results/photos/fit_on.json"),
            "features": "efficientnet-lite0 at 224 pixels, 13,500 photos of EuroSAT",
            "means": means,
            "rows": rows,
        }
        write(options.out, made)
        print(means, flush=True)


if __name__ == "__main__":
    main()
