"""Recipes that are one for a while: trained once so far, then each by itself. One JSON file a variant, as gain.py has.

    python benchmarks/branches.py --out results/gain/cifar10-40 --variant cifar10-40-minutes \
        --variant cifar10-40-minutes-fixmatch --variant "cifar10-40-minutes strength=1"

A variant is a recipe and what it changes there. Before pseudo-labels are learned from (labels_from), what is learned
depends on no correction, so that all of these are the same run until then. That is checked, not believed: the first
steps of each variant, taken by itself, must give the bits of the first one's. A fold then ends where ``debiaspl train``
ends, for less. Its seconds are those of the start-up, of the common steps and of its own.

Folds that are done are not done again when the command is repeated, and with --kept neither are common steps.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gain import KEPT, command, rounded
from debiaspl.data import Task, open_data
from debiaspl.recipes import recipe as find
from debiaspl.training import Recipe
from debiaspl.training.checkpoint import Checkpoint, newest, own_memory, save
from debiaspl.training.evaluate import evaluate
from debiaspl.training.step import Step

CORRECTION, SEEN = "algorithm.correction.", "monitor."
"""What a variant may have of its own from the first step on: what a correction has learned, and what is to be seen."""
COMMON = ("step", "losses", "marginal", "accuracy")
"""What is to be seen of the common steps, whatever the correction."""
CHECKED = 8
"""First steps that every variant takes by itself, to be compared; on a GPU most of them are replayed."""


class Variant:
    """A recipe with changes, by the text that names both."""

    def __init__(self, text: str) -> None:
        self.recipe, *self.settings = text.split()
        self.name = "-".join((self.recipe, *self.settings))

    def of(self, fold: int, settings: list[str]) -> Recipe:
        return find(self.recipe).with_settings([*settings, *self.settings, f"seed={fold}"])


class Fold:
    """The common steps of one fold, and then its variants."""

    def __init__(self, recipe: Recipe, began: float, device: torch.device) -> None:
        self.recipe, self.device = recipe, device
        whole = open_data(recipe.data, recipe.image_size, recipe.stream)
        self.task = Task.of(whole, recipe.protocol.build("protocol"), recipe.seed, recipe.validation)
        self.test = self.task.test.to(device)
        self.early = self._first_steps(recipe)
        self.start_up = time.time() - began

    def common(self, length: int, folder: Path | None) -> None:
        found = newest(folder) if folder else None
        if found is not None and found.facts["recipe"] == self.recipe.to_json():
            self.length, self.state = found.step, dict(found.tensors)
            self.log, self.seconds = found.facts["log"], found.facts["seconds"]
            return
        began, step, self.log = time.perf_counter(), Step(self.recipe, self.task, self.device), []
        for number in range(1, length + 1):
            step(number - 1)
            self._look(step, number, self.log)
        self.length, self.state, self.seconds = length, kept(step), time.perf_counter() - began
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            facts = {"recipe": self.recipe.to_json(), "log": self.log, "seconds": self.seconds}
            save(folder, Checkpoint(length, self.state, facts))

    def variant(self, recipe: Recipe) -> dict[str, Any]:
        self._check(recipe)
        began, step, log = time.perf_counter(), Step(recipe, self.task, self.device), list(self.log)
        if recipe.correction != self.recipe.correction:
            log = [{key: line[key] for key in COMMON if key in line} for line in log]
        needed = step.state()
        step.load({name: value for name, value in self.state.items() if name in needed or name.startswith(SEEN)})
        for number in range(self.length + 1, recipe.steps + 1):
            step(number - 1)
            self._look(step, number, log)
        found = evaluate(step.finished(), self.test)
        trained = self.seconds + time.perf_counter() - began
        return {
            "fold": recipe.seed,
            "accuracy": found.accuracy,
            "recall": found.recall,
            "seconds": round(self.start_up + trained, 1),
            "training_seconds": round(trained, 1),
            "log": [{key: rounded(value) for key, value in line.items()} for line in log],
        }

    def _check(self, recipe: Recipe) -> None:
        found = self._first_steps(recipe)
        both = [name for name in self.early if name in found or not name.startswith((CORRECTION, SEEN))]
        other = [name for name in both if not name.startswith(SEEN) and not torch.equal(found[name], self.early[name])]
        if other:
            raise SystemExit(f"{recipe.name} differs from the first steps on, in {', '.join(other[:3])}.")
        if lacking := [name for name in found if name.startswith(CORRECTION) and name not in self.early]:
            raise SystemExit(f"{recipe.name} has learned {', '.join(lacking)} by then: name it, or its like, first.")

    def _first_steps(self, recipe: Recipe) -> dict[str, Tensor]:
        step = Step(recipe, self.task, self.device)
        for number in range(CHECKED):
            step(number)
        return kept(step)

    def _look(self, step: Step, number: int, log: list[dict[str, Any]]) -> None:
        recipe = step.recipe
        if number % recipe.log_every and number != recipe.steps:
            return
        record = {key: value for key, value in step.monitor.summary().items() if key in KEPT}
        prior: Tensor | None = getattr(step.algorithm.correction, "prior", None)
        record |= {} if prior is None else {"prior": prior.tolist()}
        if recipe.evaluate_every and number % recipe.evaluate_every == 0:
            record["accuracy"] = evaluate(step.finished(), self.test).accuracy
        log.append({"step": number, **record})


def kept(step: Step) -> dict[str, Tensor]:
    """A state that later steps do not change."""
    return {name: own_memory(value) for name, value in step.state().items()}


def part(options: argparse.Namespace, variant: Variant, fold: int) -> Path:
    """Where one fold of a variant waits for the others."""
    return Path(options.out / f"{variant.name}.fold{fold}.part")


def one_fold(options: argparse.Namespace) -> None:
    missing = [variant for variant in options.variants if not part(options, variant, options.fold).exists()]
    if not missing:
        return
    recipe = options.variants[0].of(options.fold, options.settings)
    fold = Fold(recipe, options.began, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    share = recipe.algorithm.settings["labels_from"]
    fold.common(int(share * recipe.steps), options.kept and options.kept / f"{recipe.name}-{options.fold}")
    for variant in missing:
        measured = fold.variant(variant.of(options.fold, options.settings))
        part(options, variant, options.fold).write_text(json.dumps(measured))
        shown = f"{100 * measured['accuracy']:.2f} % in {measured['seconds']:.0f} s"
        print(f"{variant.name} fold {options.fold}: {shown}", flush=True)


def run(options: argparse.Namespace, fold: int) -> None:
    program = [sys.executable, *sys.argv, "--fold", str(fold), "--began", str(time.time())]
    if subprocess.run(program, check=False).returncode:
        raise SystemExit(f"fold {fold} has failed; what is done stays in {options.out}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", dest="variants", action="append", type=Variant, required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for all")
    parser.add_argument("--folds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--together", type=int, default=1, help="folds that share the device")
    parser.add_argument("--sharing", type=int, help="runs that share the device, where others do too")
    parser.add_argument("--commit", default=None, help="where the code comes from, if this is no checkout")
    parser.add_argument("--kept", type=Path, help="a folder for the common steps")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fold", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.fold is not None:
        return one_fold(options)

    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    folds = range(options.first, options.first + options.folds)
    with ThreadPoolExecutor(options.together) as pool:
        list(pool.map(lambda fold: run(options, fold), folds))
    for variant in options.variants:
        parts = [part(options, variant, fold) for fold in folds]
        measured = {
            "recipe": variant.of(options.first, options.settings).to_json(),
            "command": " ".join(command(variant.recipe, options.first, [*options.settings, *variant.settings])),
            "common_with": options.variants[0].name,
            "commit": options.commit or commit or "unknown",
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
            "together": options.sharing or options.together,
            "versions": {"torch": torch.__version__, "python": platform.python_version()},
            "folds": [json.loads(path.read_text()) for path in parts],
        }
        (options.out / f"{variant.name}.json").write_text(json.dumps(measured) + "\n")
        for path in parts:
            path.unlink()


if __name__ == "__main__":
    main()
