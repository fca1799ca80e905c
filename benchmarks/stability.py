"""How late and how strong a correction may be: digits, one label a class, momentum by strength, over seeds.

    python benchmarks/stability.py --out results/stability/digits.json

For each pair: accuracy; how far the prior is from what the model predicts at the time (*lag*); and how much the shares
of the classes among its predictions move from one window of 20 steps to the next (*swing*). Both are half the sum of
absolute differences, 0 to 1, meaned over the second half of training.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch

from benchmarks.origin import origin, write
from debiaspl.data import Task, open_data
from debiaspl.recipes import recipe as find
from debiaspl.training import Recipe
from debiaspl.training.evaluate import evaluate
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step

MOMENTA = (0.9, 0.99, 0.999)
STRENGTHS = (0.25, 0.5, 1.0, 2.0)
WINDOW = 20


def apart(one: list[float], other: list[float]) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2


def prepared(name: str, settings: list[str], seed: int) -> tuple[Recipe, Task, Step]:
    recipe = parse_settings(find(name), [*settings, f"seed={seed}"], load_files=True)
    whole = open_data(recipe.data, recipe.image_size, recipe.stream)
    task = Task.of(whole, recipe.protocol.build("protocol"), recipe.seed)
    return recipe, task, Step(recipe, task, torch.device("cpu"))


def run(name: str, settings: list[str], seed: int) -> dict[str, Any]:
    recipe, task, step = prepared(name, settings, seed)
    marginals, lags = [], []
    for number in range(1, recipe.steps + 1):
        step(number - 1)
        if number % WINDOW == 0:
            marginals.append(step.monitor.summary()["marginal"])
            prior = getattr(step.algorithm.correction, "prior", None)
            lags.append(apart(prior.tolist(), marginals[-1]) if prior is not None else 0.0)
    half = len(lags) // 2
    swing = statistics.mean(apart(a, b) for a, b in zip(marginals[half:], marginals[half - 1 :], strict=False))
    accuracy = evaluate(step.finished(), task.test).accuracy
    return {"accuracy": accuracy, "lag": round(statistics.mean(lags[half:]), 4), "swing": round(swing, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="digits-10")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    pairs = [(None, 0.0), *((momentum, strength) for momentum in MOMENTA for strength in STRENGTHS)]
    cells = []
    for momentum, strength in pairs:
        settings = ["correction=none"] if momentum is None else [f"momentum={momentum}", f"strength={strength}"]
        runs = [run(options.recipe, settings, seed) for seed in range(options.seeds)]
        cells.append({"momentum": momentum, "strength": strength, "runs": runs})
        means = {key: round(statistics.mean(found[key] for found in runs), 4) for key in runs[0]}
        print(momentum, strength, means, flush=True)
    outcome = {
        **origin(),
        "recipe": find(options.recipe).to_json(),
        "cells": cells,
    }
    write(options.out, outcome)


if __name__ == "__main__":
    main()
