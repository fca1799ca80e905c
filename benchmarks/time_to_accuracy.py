"""Seconds until a recipe reaches an accuracy on the test set, start-up included; or what several reach in equal time.

    python benchmarks/time_to_accuracy.py --target 0.8 --run "cifar10-250 joint=false steps=12000"
    python benchmarks/time_to_accuracy.py --seconds 60 --folds 2 --run "cifar10-40" --run "cifar10-40 algorithm=uda"

The clock of a run starts before its networks are made and stops at the evaluation that reaches the target; evaluations
count. With --seconds the schedule is made to fit: a few steps are timed, and the recipe gets as many as the time holds.
Evaluations on the way look at the averaged weights and decide nothing but when the clock stops.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.origin import origin, write
from debiaspl.data import ImageSet, Task, open_data
from debiaspl.models import scale
from debiaspl.recipes import recipe as find
from debiaspl.training import Recipe
from debiaspl.training.evaluate import evaluate
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step

TIMED = 60


def milliseconds(recipe: Recipe, task: Task, device: torch.device) -> float:
    """Of one step, once it is recorded."""
    step = Step(recipe, task, device)
    for number in range(6):
        step(number)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for number in range(6, 6 + TIMED):
        step(number)
    wait()
    return 1000 * (time.perf_counter() - start) / TIMED


@torch.no_grad()
def neighbours(step: Step, test: ImageSet, count: int = 20, chunk: int = 2000) -> float:
    """Share of the test images whose nearest unlabeled images are mostly of their class: how good the features are,
    whatever is made of them. It looks at labels that training has not."""

    def embedded(images: Tensor) -> Tensor:
        parts = [step.average.model.embed(scale(part.to(step.device), None)) for part in images.split(chunk)]
        return F.normalize(torch.cat(parts).float(), dim=-1)

    known, truth = embedded(step.task.unlabeled.images), step.task.unlabeled.truth.to(step.device)
    right = 0
    for part, labels in zip(embedded(test.images).split(chunk), test.labels.to(step.device).split(chunk), strict=True):
        nearest = truth[(part @ known.T).topk(count).indices]
        right += int((nearest.mode(-1).values == labels).sum())
    return right / len(test)


def run(
    recipe: Recipe, device: torch.device, target: float, seconds: float, points: int, features: bool
) -> dict[str, Any]:
    whole = open_data(recipe.data, recipe.image_size, recipe.stream)
    began = time.perf_counter()
    task = Task.of(whole, recipe.protocol.build("protocol"), recipe.seed, recipe.validation)
    each = None
    if seconds:
        each = milliseconds(recipe, task, device)
        left = seconds - (time.perf_counter() - began)
        recipe = replace(recipe, steps=max(100, int(0.97 * 1000 * left / each)))
    step, test = Step(recipe, task, device), task.test.to(device)
    curve: list[dict[str, Any]] = []
    for number in range(1, recipe.steps + 1):
        step(number - 1)
        if number % max(1, recipe.steps // points) == 0 or number == recipe.steps:
            record = step.monitor.summary()
            found = evaluate(step.finished(), test)
            spent = round(time.perf_counter() - began, 1)
            near = {"neighbours": neighbours(step, test)} if features else {}
            curve.append({"step": number, "seconds": spent, "accuracy": found.accuracy, **near, **record})
            if found.accuracy >= target:
                break
    return {
        "accuracy": found.accuracy,
        "recall": found.confusion.recall,
        "seconds": curve[-1]["seconds"],
        "reached_target": found.accuracy >= target,
        "ms_per_step": each and round(each, 2),
        "steps": curve[-1]["step"],
        "curve": curve,
        "recipe": recipe.to_json(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", dest="runs", action="append", required=True, metavar="RECIPE [KEY=VALUE ...]")
    parser.add_argument("--folds", type=int, default=1, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--target", type=float, default=2.0, help="accuracy, 0 to 1, at which a run ends")
    parser.add_argument("--seconds", type=float, default=0.0, help="fit each schedule into this time")
    parser.add_argument("--points", type=int, default=4, help="evaluations on the way")
    parser.add_argument("--neighbours", action="store_true", help="at each, judge the features by nearest images too")
    parser.add_argument("--commit", default=None, help="where the code comes from, if this is no checkout")
    parser.add_argument("--out", type=Path, help="write all as JSON here, after every run")
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    outcome: dict[str, Any] = {
        "seconds": options.seconds,
        "target": options.target,
        **origin(),
        **({"commit": options.commit} if options.commit else {}),
        "runs": [],
    }
    for seed in range(options.first, options.first + options.folds):
        for text in options.runs:
            name, *settings = text.split()
            recipe = parse_settings(find(name), [*settings, f"seed={seed}"])
            measured = run(recipe, device, options.target, options.seconds, options.points, options.neighbours)
            outcome["runs"].append({"run": text, "seed": seed, **measured})
            shown = {key: measured[key] for key in ("accuracy", "seconds", "steps", "ms_per_step")}
            print(json.dumps({"run": text, "seed": seed, **shown}), flush=True)
            if options.out:
                write(options.out, outcome)


if __name__ == "__main__":
    main()
