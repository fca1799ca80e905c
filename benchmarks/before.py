"""Labels of photos by an earlier commit and by this one: the same folders, features and labels for both.

    git worktree add --detach runs/583f46c 583f46c
    python -m benchmarks.before eurosat=EuroSAT/2750 flowers=flowers20 --checkout runs/583f46c --work runs/photos \\
        --out results/photos/before.json

The cells are those of ``benchmarks.photos`` without coverage. Each checkout fits ``DebiasedClassifier`` in a process of
its own, on one thread; this one also with ``optimise="classes"``. At 583f46c it was at least as accurate as
``debiaspl train PHOTOS --encoder``. Measured is what the model says of the photos without a label.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from benchmarks.origin import ROOT, write
from benchmarks.photos import KINDS, LABELS, Cell, Encoded, drawn, encoded, origin_of, rated

FIT = """
import sys
import numpy as np, torch
from debiaspl import DebiasedClassifier
torch.set_num_threads(1)
given = np.load(sys.argv[1])
settings = {"optimise": sys.argv[3]} if sys.argv[3] else {}
model = DebiasedClassifier(random_state=int(sys.argv[4]), device="cpu", **settings)
np.save(sys.argv[2], model.fit(given["features"], given["labels"]).transduction_)
"""


def labels_by(checkout: Path, optimise: str, rows: Path, seed: int) -> np.ndarray:
    out = rows.with_name(f"{rows.stem}-{checkout.name}-{optimise}.npy")
    command = [sys.executable, "-c", FIT, str(rows), str(out), optimise, str(seed)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(checkout)}, cwd=rows.parent)
    return np.asarray(np.load(out))


def measure(data: Encoded, cell: Cell, checkout: Path, work: Path) -> dict[str, Any]:
    kept, given = drawn(data, cell)
    rows = work / f"{cell.data}-{KINDS.index(cell.kind)}-{cell.labels}-{cell.draw}.npz"
    np.savez(rows, features=data.features[kept].numpy(), labels=given)
    ways = {"before": (checkout, ""), "photos": (ROOT, "photos"), "classes": (ROOT, "classes")}
    found = {name: labels_by(place, aim, rows, cell.draw) for name, (place, aim) in ways.items()}
    for file in work.glob(f"{rows.stem}[.-]*"):
        file.unlink()
    return {**cell._asdict(), **{name: rated(own, data.truth[kept], given) for name, own in found.items()}}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Points gained over the earlier commit, by cell and on average: accuracy for photos, its mean over classes for
    classes, and the other one of both."""
    gains: dict[str, dict[str, float]] = {}
    for aim, number in product(("photos", "classes"), ("accuracy", "macro")):
        cells: dict[tuple[str, str, int], list[float]] = {}
        for run in runs:
            cell = run["data"], run["kind"], run["labels"]
            cells.setdefault(cell, []).append(run[aim][number] - run["before"][number])
        by_cell = {", ".join(map(str, cell)): round(mean(own), 2) for cell, own in cells.items()}
        gains[f"{aim}: {number}"] = {**by_cell, "mean": round(mean(by_cell.values()), 2)}
    return gains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    work, checkout = options.work.resolve(), options.checkout.resolve()
    work.mkdir(parents=True, exist_ok=True)
    sets = {name: encoded(Path(place), work) for name, _, place in (text.partition("=") for text in options.sets)}
    cells = [
        Cell(data, kind, labels, draw)
        for data, kind, draw in product(sets, KINDS[:3], range(options.draws))
        for labels in LABELS[kind]
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(lambda cell: measure(sets[cell.data], cell, checkout, work), cells))
    gains = summary(runs)
    about = {**origin_of(range(options.draws)), "before": checkout.name, "gains": gains}
    write(options.out, {**about, "runs": runs})
    print(json.dumps(gains, indent=1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
