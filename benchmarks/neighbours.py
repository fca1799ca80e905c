"""The search for neighbours by cells, beside that of another commit: seconds of the processor, and recall.

OMP_NUM_THREADS=1 python -m benchmarks.neighbours --beside 18ffc63 --out results/graph/neighbours.json

Made vectors: 100 clusters, and normal numbers without clusters. Recall is the share of the 50 nearest that are found,
of 400 vectors that are compared with all others.
"""

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

import torch

from benchmarks.origin import git
from debiaspl.graph import directions, neighbours

COUNT, CHECKED, CLUSTERS = 50, 400, 100


def module_of(commit: str) -> ModuleType:
    text = subprocess.run(
        ["git", "show", f"{commit}:debiaspl/graph/neighbours.py"], capture_output=True, text=True, check=True
    ).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text)
        file.flush()
        spec = importlib.util.spec_from_file_location("beside", file.name)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["beside"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def made(kind: str, rows: int, width: int) -> torch.Tensor:
    """Unit vectors."""
    random = torch.Generator().manual_seed(0)
    centres = torch.randn(CLUSTERS, width, generator=random) * (kind == "clusters")
    parts = torch.arange(rows).split(10_000)
    vectors = torch.cat([centres[part % CLUSTERS] + torch.randn(len(part), width, generator=random) for part in parts])
    return directions(vectors, vectors.mean(0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", help="a commit")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--sets", nargs="+", default=["clusters:1280", "clusters:64", "plain:8", "plain:16"])
    parser.add_argument("--out", type=Path, required=True, help="what it has already is kept")
    options = parser.parse_args()
    commit = git("rev-parse", "HEAD")
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    for named in options.sets:
        kind, width = named.split(":")
        units = made(kind, options.rows, int(width))
        some = torch.arange(0, len(units), len(units) // CHECKED)
        least = neighbours.nearest(units[some], COUNT + 1, units, exact=True).similarity[:, -1:] - 1e-6
        for who in (options.beside, commit) if options.beside else (commit,):
            began = time.process_time()
            module = neighbours if who == commit else module_of(who)
            found = module.nearest(units, COUNT, exact=False)
            seconds = time.process_time() - began
            recall = float((found.similarity[some] >= least).float().mean())
            row = {"vectors": kind, "numbers": int(width), "rows": len(units), "commit": who[:7]}
            rows.append(row | {"seconds": round(seconds, 1), "recall": round(recall, 3)})
            print(rows[-1], flush=True)
            command = "OMP_NUM_THREADS=1 python -m benchmarks.neighbours --beside 18ffc63 --out neighbours.json"
            about = {"command": command, "commit": commit, "device": platform.machine(), "torch": torch.__version__}
            options.out.write_text(json.dumps({**about, "neighbours": COUNT, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
