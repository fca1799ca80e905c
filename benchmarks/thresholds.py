"""Which labels are kept: the threshold by the strength of the correction, on digits, over seeds.

    python benchmarks/thresholds.py --recipe digits-10 --out results/thresholds/digits-10.json

A correction changes how confident a label is, and so which labels pass the threshold. What part of its effect is that?
``before`` corrects the labels but keeps those that were confident before the correction. For each: accuracy, the share
kept and the share right of what is kept, over the second half of training.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.origin import origin, write
from benchmarks.stability import prepared
from debiaspl.debias import Debiaser
from debiaspl.training.evaluate import evaluate

THRESHOLDS = (0.5, 0.8, 0.95, 0.99)
VARIANTS = {
    "none": ["correction=none"],
    "strength 0.5": ["strength=0.5"],
    "strength 1": ["strength=1"],
    "strength 0.5, before": ["correction=benchmarks/thresholds.py:Before", "strength=0.5"],
}


class Before(Debiaser):
    """The debiased label, with the confidence that the prediction had before it was debiased."""

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        label = super().probabilities(weak_logits).argmax(-1, keepdim=True)
        raw = weak_logits.detach().softmax(-1)
        return torch.zeros_like(raw).scatter(-1, label, raw.amax(-1, keepdim=True))


def run(name: str, settings: list[str], seed: int) -> dict[str, Any]:
    recipe, task, step = prepared(name, settings, seed)
    for number in range(recipe.steps):
        if number == recipe.steps // 2:
            step.monitor.summary()  # what was seen so far is forgotten
        step(number)
    seen, found = step.monitor.summary(), evaluate(step.finished(), task.test)
    right = seen["pseudo_accuracy"]
    return {
        "accuracy": found.accuracy,
        "worst": min(share for share in found.confusion.recall if share is not None),
        "kept": round(seen["kept"], 4),
        "right": None if right is None else round(right, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="digits-10")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    cells = []
    for variant, settings in VARIANTS.items():
        for threshold in THRESHOLDS:
            chosen = [*settings, f"threshold={threshold}"]
            runs = [run(options.recipe, chosen, seed) for seed in range(options.seeds)]
            cells.append({"variant": variant, "threshold": threshold, "runs": runs})
            print(variant, threshold, statistics.mean(found["accuracy"] for found in runs), flush=True)
    outcome = {
        **origin(),
        "cells": cells,
    }
    write(options.out, outcome)


if __name__ == "__main__":
    main()
