"""Every algorithm and every correction keeps its bits: a few steps end with weights that were noted down at 583f46c.

What is newer was noted down when it came. The digests belong to machines, as in ``test_bits``; elsewhere the test is
skipped. To note down those of another machine: check out 583f46c, copy this file into its ``tests/training``, and run
there ``python -m tests.training.test_algorithm_bits`` (with ``ATEN_CPU_CAPABILITY=avx2`` or ``default`` before it for
other instructions). Then copy ``algorithm_bits.json`` back.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch

from debiaspl import algorithms, debias
from debiaspl.data import FewLabels, Hints, Task, load
from debiaspl.training import Choice
from debiaspl.training.step import Step
from tests.training.test_bits import digest, machine
from tests.training.tiny import TINY, write_finished

NOTED = Path(__file__).with_name("algorithm_bits.json")
STEPS = 6
SURE = {"threshold": 0.6}
"""Some labels are kept from the first step on, and some are not."""

# Settings with which everything that an algorithm does comes to matter within a few steps.
ALGORITHMS: dict[str, dict[str, Any]] = {
    "supervised": {},
    "pseudolabel": SURE,
    "mean-teacher": {},
    "uda": SURE,
    "mixmatch": {},
    "remixmatch": {},
    "fixmatch": SURE,
    "contrastmatch": {**SURE, "memory": 48, "relations": 0.5, "key_decay": 0.9, "labels_from": 0.3},
    "flexmatch": {"threshold": 0.9},
    "freematch": {"decay": 0.9},
    "softmatch": {"decay": 0.9},
    "comatch": {**SURE, "memory": 48, "graph_threshold": 0.2},
    "crest": {"threshold": 0.1, "generations": 2},
    "adamatch": SURE,
    "abc": SURE,
    "acr": SURE,
    "paws": {"small_views": 0, "support_views": 1, "balanced_support": False},
    "taught": {"threshold": 0.5},
    "graph": {},
    "distill": {"labeled_weight": 0.5},
    "ride": SURE,
}
WITHOUT_PSEUDO_LABELS = "supervised", "mean-teacher"
STARTS: dict[str, dict[str, Any]] = {
    "moco": {"memory": 48},
    "simclr": {},
    "swav": {"prototypes": 16, "small_views": 1, "queue": 48},
}
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "fixmatch, separate": ("fixmatch", {**SURE, "joint": False}),
    "fixmatch, two views, CLD": ("fixmatch", {**SURE, "views": 2, "cld_weight": 0.3}),
    "fixmatch, CLD": ("fixmatch", {**SURE, "cld_weight": 0.3}),
    "fixmatch, paired views": ("fixmatch", {**SURE, "views": 2, "view_labels": "paired"}),
    "fixmatch, share of strong views": ("fixmatch", {**SURE, "joint": False, "strong_share": 0.5}),
    "crest, adopts corrected": ("crest", {"threshold": 0.1, "generations": 2, "adopt_corrected": True}),
    "abc, two views": ("abc", {**SURE, "views": 2, "joint": False}),
    "acr, two strong views": ("acr", {**SURE, "strong_views": 2}),
    "uda, annealing": ("uda", {**SURE, "annealing": "linear"}),
}
CORRECTIONS: dict[str, dict[str, Any]] = {
    "debiaser": {"labeled_strength": 0.3, "margin_strength": 0.7, "momentum": 0.9},
    "alignment": {"momentum": 0.9},
    "logit-adjustment": {},
    "logit-adjustment-posthoc": {},
    "ldam": {},
    "ldam-drw": {"begin": 0.5},
    "simpro": {"momentum": 0.9, "count_threshold": 0.1},
    "cdmad": {},
    "tau-norm": {},
    "causal-norm": {},
    "debiaser+tau-norm": {"momentum": 0.9},
    "alignment+ldam": {"momentum": 0.9},
}
Run = tuple[str, dict[str, Any], str, dict[str, Any]]
"""An algorithm and a correction, each with its settings."""
RUNS: dict[str, Run] = {f"{name}, none": (name, settings, "none", {}) for name, settings in ALGORITHMS.items()}
RUNS |= {
    f"{name}, debiaser": (name, settings, "debiaser", {})
    for name, settings in ALGORITHMS.items()
    if name not in WITHOUT_PSEUDO_LABELS
}
RUNS |= {name: (name, settings, "none", {}) for name, settings in STARTS.items()}
RUNS |= {name: (algorithm, settings, "debiaser", {"momentum": 0.5}) for name, (algorithm, settings) in OPTIONS.items()}
RUNS |= {
    f"{name}, alignment": (name, settings, "alignment", {"momentum": 0.9})
    for name, settings in {
        "crest+": {"threshold": 0.1, "generations": 2, "sampling_power": 1 / 3},
        "adamatch": {**SURE, "align_to_predictions": True},
    }.items()
}
RUNS |= {f"fixmatch, {name} with settings": ("fixmatch", SURE, name, own) for name, own in CORRECTIONS.items()}

TEMPORARY = TemporaryDirectory()


@cache
def finished_run() -> str:
    return str(write_finished(Path(TEMPORARY.name) / "teacher"))


@cache
def task() -> Task:
    """Four labels of every class; the hints of another model, which is sure of some images."""
    drawn = Task.of(load("digits"), FewLabels(4), seed=0)
    generator = torch.Generator().manual_seed(0)
    sure = torch.rand(len(drawn.unlabeled), generator=generator)
    return replace(drawn, hints=Hints(torch.randint(10, sure.shape, generator=generator), sure))


def trained(name: str) -> str:
    """A digest of the student, and of the network that the run would save."""
    algorithm, settings, correction, own = RUNS[name]
    if algorithm == "distill":
        settings = {**settings, "teacher_run": finished_run()}
    recipe = replace(TINY, steps=STEPS, algorithm=Choice(algorithm, settings), correction=Choice(correction, own))
    if algorithm == "ride":
        recipe = replace(recipe, network=Choice("experts", {"depth": 10, "width": 1}))
    given = task()
    if algorithm == "graph":  # its hints are those of the graph, over the features of a start
        recipe, given = replace(recipe, start=finished_run()), replace(given, hints=None)
    step = Step(recipe, given, torch.device("cpu"))
    for network in (step.student, step.average.model):
        network.head.weight.data.mul_(
            12
        )  # predicts several classes, and is sure of some images, from the first step on
    for number in range(recipe.steps):
        step(number)
    saved = {f"finished.{name}": value for name, value in step.finished().state_dict().items()}
    return digest({**step.student.state_dict(), **saved})


@pytest.mark.parametrize("name", RUNS)
def test_an_algorithm_keeps_its_bits(name):
    noted = json.loads(NOTED.read_text()).get(machine())
    if noted is None or name not in noted:
        pytest.skip("no bits of it are noted down for this processor and version of torch")
    assert trained(name) == noted[name]


def test_every_algorithm_and_correction_is_noted_down():
    used = list(RUNS.values())
    assert {name for name, *_ in used} >= {*algorithms.ALGORITHMS, *algorithms.HINTED, *algorithms.STARTS}
    assert {correction for _, _, correction, _ in used} >= set(debias.CORRECTIONS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    noted = json.loads(NOTED.read_text()) if NOTED.exists() else {}
    noted[machine()] = {name: trained(name) for name in RUNS}
    NOTED.write_text(json.dumps(noted, indent=1) + "\n")
