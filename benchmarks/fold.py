"""One fold of several recipes that differ in their correction alone, and are one run until it matters."""

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gain import KEPT, rounded
from debiaspl.data import Task, open_data
from debiaspl.debias import Correction
from debiaspl.training import Recipe
from debiaspl.training.checkpoint import Checkpoint, newest, own_memory, save
from debiaspl.training.evaluate import evaluate
from debiaspl.training.step import Step

CORRECTION, SEEN = "algorithm.correction.", "monitor."
"""What a variant may have of its own from the first step on: what a correction has learned, and what is to be seen."""
OWN = ("name", "about", "cost", "paper", "correction")
"""Of a recipe, what a variant may change."""
COMMON = ("step", "losses", "marginal", "accuracy")
"""What is to be seen of the common steps, whatever the correction."""
CHECKED = 8
"""First steps that every variant takes by itself, to be compared; on a GPU most of them are replayed."""


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
            alike = type(step.algorithm.correction).classifier is Correction.classifier
            common = COMMON if alike else COMMON[:-1]  # the accuracy is that of another classifier
            log = [{key: line[key] for key in common if key in line} for line in log]
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
        first, wanted = self.recipe.to_json(), recipe.to_json()
        if changed := [key for key in wanted if key not in OWN and wanted[key] != first[key]]:
            raise SystemExit(f"{recipe.name} changes {', '.join(changed)}, expected the correction alone.")
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
        evaluated = recipe.evaluate_every and number % recipe.evaluate_every == 0
        if number % recipe.log_every and number != recipe.steps and not evaluated:
            return
        if int(step.first_bad_step) >= 0:
            raise SystemExit(f"the loss of step {int(step.first_bad_step)} of {recipe.name} is not finite.")
        record = {key: value for key, value in step.monitor.summary().items() if key in KEPT}
        prior: Tensor | None = getattr(step.algorithm.correction, "prior", None)
        record |= {} if prior is None else {"prior": prior.tolist()}
        if evaluated:
            record["accuracy"] = evaluate(step.finished(), self.test).accuracy
        log.append({"step": number, **record})


def kept(step: Step) -> dict[str, Tensor]:
    """A state that later steps do not change."""
    return {name: own_memory(value) for name, value in step.state().items()}
