"""Runs of a plan, several at once, on one device: long tails of CIFAR-10 from a start.

    DEBIASPL_DATA=data python -m benchmarks.long_tail results/long-tail/target-plan.txt --runs runs \\
        --lines results/long-tail/target.jsonl --together 8 --budget 500 --only lt100-

A line of the plan is a run, or a start of others; earlier lines begin first:

    tail-start: cifar10-lt100-10pct --method moco steps=20000 seed=100
    tail-search-a from tail-start: cifar10-lt100-10pct --length start seed=100 strength=0.5
    tail-0 from tail-start: cifar10-lt100-10pct --length start {best:tail-search-} seed=0

The words after the colon are those of ``debiaspl train --recipe``. ``{best:NAME}`` are the settings of the most
accurate of the runs whose names begin so; it waits for all of them. Each run that has ended becomes a line of --lines,
as JSON. What has a line is not run again, so another call does the rest. A start is trained when a run needs it and
--runs has no such folder; its weights stay there.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from debiaspl.debias import Debiaser
from debiaspl.debias.correction import at_least_float32, checked_counts
from debiaspl.debias.running import safe_log
from debiaspl.recipes import recipe as find
from debiaspl.training import Recipe, Run, train
from debiaspl.training.run import newest_checkpoint
from debiaspl.training.settings import parse_settings

PAUSE = 0.2
CORRECTION = "algorithm.correction."
"""Prefix of its tensors in a checkpoint."""
BEST = re.compile(r"\{best:(.+)\}")
SHARES = ("estimate", "kept", "joint")
"""Names of class shares, besides the prior, in the state of a correction."""


class ByCounts(Debiaser):
    """The paper's Debiaser, with margins on the labeled loss that come from the labels' counts, not from the prior."""

    log_shares: Tensor

    def __init__(
        self,
        num_classes: int,
        class_counts: Sequence[int],
        strength: float = 0.5,
        momentum: float = 0.99,
        labeled_strength: float = 1.0,
    ) -> None:
        super().__init__(num_classes, strength, momentum, labeled_strength)
        counts = checked_counts(class_counts)
        self.register_buffer("log_shares", (counts / counts.sum()).log(), persistent=False)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return at_least_float32(logits) + self.labeled_strength * self.log_shares


class MinusPrior(Debiaser):
    """The other form of a target: labels from softmax(f - strength (log prior - log target))."""

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        bias = safe_log(self.prior) - safe_log(self.target)
        return (at_least_float32(weak_logits.detach()) - self.strength * bias).softmax(-1)


@dataclass(frozen=True)
class Job:
    """A line of the plan."""

    name: str
    start: str
    """The job that it begins with, or nothing."""
    cell: str
    options: tuple[str, ...]
    """Options of ``debiaspl train`` for the recipe: length and method."""
    settings: tuple[str, ...]

    @property
    def compared(self) -> str | None:
        """What the names of the runs begin with whose best settings it uses."""
        matches = [match[1] for one in self.settings if (match := BEST.fullmatch(one))]
        return matches[0] if matches else None

    def recipe(self, runs: Path) -> Recipe:
        values = dict(zip(self.options[::2], self.options[1::2], strict=True))
        recipe = find(self.cell, values.get("--length"), values.get("--method"), load_files=True)
        start = [f"start={runs / self.start}"] if self.start else []
        return parse_settings(recipe, [*self.settings, *start], load_files=True)

    def command(self, runs: Path) -> str:
        start = [f"start={runs / self.start}"] if self.start else []
        settings = [word for one in (*self.settings, *start) for word in ("--set", one)]
        return shlex.join(["debiaspl", "train", "--recipe", self.cell, *self.options, *settings])


def read_plan(text: str) -> dict[str, Job]:
    jobs: dict[str, Job] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        head, _, body = line.partition(": ")
        name, _, start = (part.strip() for part in head.partition(" from "))
        words = body.split()
        if not words or name in jobs or (start and start not in jobs):
            raise SystemExit(f"line {number} of the plan: expected NEW-NAME [from EARLIER-NAME]: CELL SETTINGS ...")
        cut = 1
        while cut < len(words) and words[cut].startswith("--"):
            cut += 2
        job = Job(name, start, words[0], tuple(words[1:cut]), tuple(words[cut:]))
        if job.compared is not None and not any(each.startswith(job.compared) for each in jobs):
            raise SystemExit(f"line {number} of the plan: no line before it begins with {job.compared}")
        jobs[name] = job
    return jobs


def with_best(job: Job, jobs: dict[str, Job], lines: dict[str, dict[str, Any]]) -> Job:
    """The job with the settings of the best of the runs that it waits for; its own settings win."""
    if job.compared is None:
        return job
    rows = [line for name, line in lines.items() if name.startswith(job.compared)]
    best = jobs[max(rows, key=lambda row: row["accuracy"])["name"]]
    settings = (*best.settings, *(one for one in job.settings if not BEST.fullmatch(one)))
    return Job(job.name, job.start, best.cell, best.options, settings)


def line_of(job: Job, runs: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run that has ended: rows of ``confusion`` are true classes, columns predicted ones."""
    folder = runs / job.name
    results, log = json.loads((folder / "results.json").read_text()), Run(folder).log()
    line = {"name": job.name, "command": job.command(runs), "seed": results["recipe"]["seed"], **facts}
    line |= {name: results.get(name) for name in ("accuracy", "worst_recall", "recall", "confusion")}
    if results.get("recall"):
        line["mean_recall"] = sum(results["recall"]) / len(results["recall"])
    if isinstance(results.get("confusion"), list):
        columns = [sum(column) for column in zip(*results["confusion"], strict=True)]
        line["predicted"] = [round(count / sum(columns), 4) for count in columns]
    # Of the unlabeled images: how many there are of each class, pseudo-labels, and the model's shares at the end.
    line |= {name: results.get(name) for name in ("true_counts", "pseudo_labels", "pseudo_accuracy")}
    line |= {name: log[-1].get(name) for name in ("marginal", "prior", "kept") if log}
    saved = newest_checkpoint(folder / "checkpoint")
    if saved is not None:
        state = {name: value for name, value in saved.tensors.items() if name.startswith(CORRECTION)}
        tensors = {name.rpartition(".")[2]: value for name, value in state.items()}
        line |= {f"shares_{name}": tensors[name].tolist() for name in SHARES if name in tensors}
    return line | {"training_seconds": results["timing"]["seconds"], "device": results["timing"]["device"]}


class Device:
    """The runs that are under way, and what has ended."""

    def __init__(self, options: argparse.Namespace, jobs: dict[str, Job]) -> None:
        self.jobs, self.runs, self.path = jobs, Path(options.runs).resolve(), Path(options.lines)
        self.options, self.began = options, time.monotonic()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.since: dict[str, float] = {}
        self.failed: set[str] = set()
        text = self.path.read_text() if self.path.exists() else ""
        self.lines = {line["name"]: line for line in map(json.loads, text.splitlines())}

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def trained(self, name: str) -> bool:
        return Run(self.runs / name).results_path.exists()

    def waiting(self) -> list[str]:
        """The runs that a call has to make, in the order of the plan."""
        starts = {job.start for job in self.jobs.values()}
        wanted = [name for name in self.jobs if name not in starts and name.startswith(self.options.only)]
        return [name for name in wanted if name not in self.lines and name not in self.failed]

    def next(self) -> Job | None:
        """The first job that can begin now: a run, or the start that it needs."""
        waiting = self.waiting()
        for name in waiting:
            job = self.jobs[name]
            prefix = job.compared
            if name in self.running or job.start in self.failed:
                continue
            if prefix is not None and any(one.startswith(prefix) for one in waiting):
                continue
            if prefix is not None and not any(one.startswith(prefix) for one in self.lines):
                continue
            if not job.start or self.trained(job.start):
                return with_best(job, self.jobs, self.lines)
            if job.start not in self.running:
                return self.jobs[job.start]
        return None

    def begin(self, job: Job) -> None:
        self.say(f"{job.name} begins")
        self.runs.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.long_tail", "--run", json.dumps(astuple(job)), "--runs", self.runs]
        with (self.runs / f"{job.name}.txt").open("ab") as output:
            environment = {"OMP_NUM_THREADS": "2", **os.environ}
            process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output, env=environment)
        self.running[job.name], self.since[job.name] = process, time.monotonic()

    def collect(self) -> None:
        """Write a line for each run that has ended since."""
        for name, process in list(self.running.items()):
            if process.poll() is None:
                continue
            del self.running[name]
            if not self.trained(name):
                self.failed.add(name)
                self.say(f"{name} failed or was stopped: {(self.runs / f'{name}.txt').read_text()[-1500:]}")
                continue
            seconds = round(time.monotonic() - self.since[name], 1)
            facts = {"commit": self.options.commit, "seconds": seconds, "together": self.options.together}
            line = line_of(with_best(self.jobs[name], self.jobs, self.lines), self.runs, facts)
            self.lines[name] = line
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self.say(f"{name}: {100 * line['accuracy']:.2f} %, {seconds:.0f} s")

    def carry_out(self) -> None:
        spent = False
        while True:
            self.collect()
            elapsed = time.monotonic() - self.began
            if not spent and elapsed > min(self.options.budget, self.options.deadline):
                spent = True
                self.say("the budget is spent: nothing begins any more")
            while not spent and len(self.running) < self.options.together and (job := self.next()) is not None:
                self.begin(job)
            if not self.running:
                break
            if elapsed > self.options.deadline:
                for process in self.running.values():
                    process.terminate()  # a run saves its state
                for process in self.running.values():
                    process.wait()
            time.sleep(PAUSE)
        self.say(f"{len(self.lines)} lines; {len(self.waiting())} runs of the plan are left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, nargs="?")
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--lines", type=Path, help="file of the lines, which new ones are added to")
    parser.add_argument("--together", type=int, default=1, help="runs at once")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which nothing begins")
    parser.add_argument("--deadline", type=float, default=float("inf"), help="seconds after which runs are stopped")
    parser.add_argument("--only", default="", help="runs whose names begin so")
    parser.add_argument("--commit", help="recorded in the lines")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        name, start, cell, words, settings = json.loads(options.run)
        job = Job(name, start, cell, tuple(words), tuple(settings))
        train(job.recipe(options.runs), options.runs / job.name, resume=True)
        return
    if options.plan is None or options.lines is None:
        parser.error("expected a plan and --lines")
    if options.together > 1 and shutil.which("nvidia-cuda-mps-control"):
        # Kernels of several processes then run at the same time. If it runs already, this says so and does nothing.
        subprocess.run(["nvidia-cuda-mps-control", "-d"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    Device(options, read_plan(options.plan.read_text())).carry_out()


if __name__ == "__main__":
    main()
