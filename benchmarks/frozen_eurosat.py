"""EuroSAT with the forty labels of fold 0 and features of EfficientNet-lite0: to compare with eurosat-40, length start.

python -m benchmarks.frozen_eurosat --runs runs --out results/graph/eurosat-encoder.json
"""

import argparse
import json
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import torch

from debiaspl.encoders import load_encoder
from debiaspl.features.run import frozen
from debiaspl.recipes import recipe
from debiaspl.training import Choice, Recipe, train

FIXMATCH = Choice("fixmatch", {"threshold": 0.8, "joint": False})
DEBIASER = Choice("debiaser", {"strength": 1.0})
METHODS = {
    "supervised": (Choice("supervised"), Choice("none"), "random"),
    "FixMatch": (FIXMATCH, Choice("none"), "random"),
    "DebiasPL": (FIXMATCH, DEBIASER, "random"),
    "DebiasPL, first classifier from the graph": (FIXMATCH, DEBIASER, "graph"),
}
"""Algorithm, correction and first classifier; the settings are those that ``debiaspl train PHOTOS`` chooses."""


def of_method(name: str) -> Recipe:
    algorithm, correction, first = METHODS[name]
    base = recipe("eurosat-40")
    base = replace(base, name=name, algorithm=algorithm, correction=correction, first_classifier=first)
    base = replace(base, image_size=64, evaluate_every=0)
    return frozen(base, 10_800, load_encoder("efficientnet-lite0"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs and the features")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    made = {"commit": commit, "device": platform.machine(), "torch": torch.__version__, "fold": 0, "runs": {}}
    for name in METHODS:
        results = train(of_method(name), options.runs / name.replace(",", "").replace(" ", "-"), resume=True)
        made["runs"][name] = {key: results[key] for key in ("recipe", "accuracy", "recall", "labels", "test")}
        print(f"{name}: {100 * results['accuracy']:.1f} %", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
