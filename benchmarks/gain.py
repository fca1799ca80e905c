"""What a recipe reaches, fold by fold, and how it got there: one JSON file a recipe, for docs/results.md.

    python benchmarks/gain.py --out results/gain --recipe cifar10-40-minutes --recipe cifar10-40-minutes-fixmatch

Every fold is the command that a user would type, in a process of its own, and its seconds are that process's, from its
start to its end. Several can share the GPU (--together), which uses it better: each then takes longer than alone.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from debiaspl.recipes import recipe as find
from debiaspl.training.settings import parse_settings

KEPT = ("step", "accuracy", "losses", "kept", "pseudo_labels", "pseudo_right_labels", "pseudo_accuracy", "marginal")
"""Of a line of the log."""


def command(name: str, fold: int, settings: list[str]) -> list[str]:
    chosen = [part for setting in (*settings, f"seed={fold}") for part in ("--set", setting)]
    return ["debiaspl", "train", "--recipe", name, *chosen]


def run(name: str, fold: int, settings: list[str], folder: Path) -> dict[str, Any]:
    out = folder / f"{name}-{fold}"
    began = time.perf_counter()
    program = [sys.executable, "-m", *command(name, fold, settings), "--out", str(out)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if ended.returncode:
        raise SystemExit(f"{' '.join(program)}\n{ended.stdout}{ended.stderr}")
    results = json.loads((out / "results.json").read_text())
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    prior = ("prior",) if "prior" in log[-1] else ()
    print(f"{name} fold {fold}: {100 * results['accuracy']:.2f} % in {seconds:.0f} s", flush=True)
    return {
        "fold": fold,
        "accuracy": results["accuracy"],
        "recall": results["recall"],
        "seconds": round(seconds, 1),
        "training_seconds": results["timing"]["seconds"],
        "log": [{key: rounded(line[key]) for key in (*KEPT, *prior) if key in line} for line in log],
    }


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return {key: rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", dest="recipes", action="append", required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--name", help="of the file, where settings differ from the recipe's")
    parser.add_argument("--folds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--together", type=int, default=1, help="runs that share the device")
    parser.add_argument("--commit", default=None, help="where the code comes from, if this is no checkout")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    folds = range(options.first, options.first + options.folds)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.together) as pool:
        begun = {
            name: [pool.submit(run, name, fold, options.settings, Path(folder)) for fold in folds]
            for name in options.recipes
        }
        for name, futures in begun.items():
            measured = {
                "recipe": parse_settings(find(name), options.settings).to_json(),
                "command": " ".join(command(name, options.first, options.settings)),
                "commit": options.commit or found or "unknown",
                "device": device,
                "together": options.together,
                "versions": {"torch": torch.__version__, "python": platform.python_version()},
                "folds": [future.result() for future in futures],
            }
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{options.name or name}.json").write_text(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
