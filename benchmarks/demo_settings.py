"""Choose the settings of the demo: on other seeds than it shows, and without looking at a test image.

    python benchmarks/demo_settings.py --out results/demo-settings

For each candidate, FixMatch and DebiasPL with several strengths are trained on seeds from 100 on, the same settings for
all. What is measured is the accuracy of the averaged weights on the unlabeled training images, whose truth no method
sees. Writes NAME.json for each candidate, and leaves out candidates that have one.
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.origin import origin
from debiaspl.data import Task, open_data
from debiaspl.recipes import recipe as find
from debiaspl.training.evaluate import predict_all
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step

FIXMATCH = {"FixMatch": ["correction=none"]}
STRONG = {"strength 2": ["strength=2"]}
USUAL = {"strength 0.5": ["strength=0.5"], "strength 1": ["strength=1"]}
FAST = {
    "strength 1, momentum 0.9": ["strength=1", "momentum=0.9"],
    "strength 2, momentum 0.9": ["strength=2", "momentum=0.9"],
}


class Candidate(NamedTuple):
    settings: list[str]
    methods: dict[str, list[str]]
    seeds: int


CANDIDATES = {
    "threshold-0.95": Candidate([], FIXMATCH | USUAL | STRONG, 16),
    "threshold-0.95-momentum": Candidate([], FIXMATCH | FAST, 8),
    "two-labels": Candidate(["per_class=2"], FIXMATCH | USUAL, 8),
    "threshold-0.8": Candidate(["threshold=0.8"], FIXMATCH | STRONG, 16),
    "threshold-0.8-momentum": Candidate(["threshold=0.8"], FIXMATCH | FAST, 8),
    "threshold-0.8-steps-200": Candidate(["threshold=0.8", "steps=200"], FIXMATCH | STRONG, 16),
    "threshold-0.8-steps-300": Candidate(["threshold=0.8", "steps=300"], FIXMATCH | STRONG, 16),
    "threshold-0.8-steps-400": Candidate(["threshold=0.8", "steps=400"], FIXMATCH | STRONG, 16),
    "threshold-0.8-width-8": Candidate(["threshold=0.8", "width=8"], FIXMATCH | STRONG, 12),
    "threshold-0.6": Candidate(["threshold=0.6"], FIXMATCH | STRONG, 12),
}
FIRST_SEED = 100


def run(settings: list[str], seed: int) -> dict[str, float]:
    torch.set_num_threads(1)
    recipe = parse_settings(find("digits-10"), [*settings, f"seed={seed}"])
    task = Task.of(open_data(recipe.data), recipe.protocol.build("protocol"), recipe.seed)
    started = time.process_time()
    step = Step(recipe, task, torch.device("cpu"))
    for number in range(recipe.steps):
        step(number)
    found = predict_all(step.finished(), task.unlabeled).argmax(-1)
    right = (found == task.unlabeled.truth).double().mean()
    return {"accuracy": round(float(right), 4), "seconds": round(time.process_time() - started, 1)}


def measured(candidate: Candidate, seeds: range, pool: ProcessPoolExecutor) -> dict[str, Any]:
    started = {
        method: [pool.submit(run, [*candidate.settings, *own], seed) for seed in seeds]
        for method, own in candidate.methods.items()
    }
    runs = {method: [one.result() for one in several] for method, several in started.items()}
    accuracy = {method: [one["accuracy"] for one in several] for method, several in runs.items()}
    gain = {
        method: [round(ours - theirs, 4) for ours, theirs in zip(values, accuracy["FixMatch"], strict=True)]
        for method, values in accuracy.items()
        if method != "FixMatch"
    }
    seconds = statistics.fmean(one["seconds"] for several in runs.values() for one in several)
    return {"accuracy": accuracy, "gain": gain, "seconds_of_a_run": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", default=",".join(CANDIDATES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for name in options.candidates.split(","):
            path, candidate = options.out / f"{name}.json", CANDIDATES[name]
            if path.exists():
                continue
            seeds = range(FIRST_SEED, FIRST_SEED + candidate.seeds)
            found = measured(candidate, seeds, pool)
            command = f"python benchmarks/demo_settings.py --candidates {name}"
            values = {"settings": candidate.settings, "seeds": list(seeds), **found, "origin": origin(command)}
            path.write_text(json.dumps(values, indent=1) + "\n")
            show(name, found)


def show(name: str, found: dict[str, Any]) -> None:
    means = {method: round(100 * statistics.fmean(values), 1) for method, values in found["accuracy"].items()}
    least = {method: round(100 * min(values), 1) for method, values in found["gain"].items()}
    print(name, means, "least gain", least, f"{found['seconds_of_a_run']} s a run", flush=True)


if __name__ == "__main__":
    main()
