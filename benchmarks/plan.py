"""Many runs that share a device, some of which begin with others: a plan is a text file, a line a run.

    python -m benchmarks.plan plan.txt --runs runs --out runs.json --together 6 --seconds 550

    start: cifar10-pretrain
    search-a after start: cifar10-40-start start={runs}/start seed=100 steps=8000
    search-b after start: cifar10-40-start start={runs}/start seed=100 steps=8000 learning_rate=0.015
    fold-0 after search-a,search-b: cifar10-40-start start={runs}/start {best:search-} steps=20000 seed=0

A run is ``debiaspl train --recipe`` with these settings. ``{best:NAME}`` are the settings of the most accurate of the
runs whose names begin so. A name that begins with ``!`` has the device for itself. After --seconds, what is under way
is stopped, which saves it, and nothing begins; the same command goes on from there. The JSON file has every run's
recipe, results, curve and seconds, of all calls together.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gain import KEPT, rounded


@dataclass(frozen=True)
class Job:
    name: str
    after: tuple[str, ...]
    recipe: str
    settings: tuple[str, ...]
    alone: bool


def read_plan(text: str) -> list[Job]:
    jobs: list[Job] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        head, _, body = line.partition(":")
        name, _, after = (part.strip() for part in head.partition(" after "))
        recipe, *settings = body.split()
        names = tuple(one.strip() for one in after.split(",") if one.strip())
        known = {job.name for job in jobs}
        if missing := [one for one in names if not any(each.startswith(one) for each in known)]:
            raise SystemExit(f"{name} comes after {missing[0]}, which no line before it names.")
        jobs.append(Job(name.removeprefix("!"), names, recipe, tuple(settings), name.startswith("!")))
    return jobs


def results(folder: Path) -> dict[str, Any] | None:
    path = folder / "results.json"
    return json.loads(path.read_text()) if path.exists() else None


def ready(job: Job, jobs: list[Job], runs: Path) -> bool:
    needed = [one for one in jobs if one.name.startswith(job.after)] if job.after else []
    return all(results(runs / one.name) for one in needed if one is not job)


def settings_of(job: Job, jobs: list[Job], runs: Path) -> list[str]:
    made: list[str] = []
    for setting in job.settings:
        if found := re.fullmatch(r"\{best:(.+)\}", setting):
            candidates = [one for one in jobs if one.name.startswith(found[1])]
            best = max(candidates, key=lambda one: (results(runs / one.name) or {})["accuracy"])
            made += settings_of(best, jobs, runs)
        else:
            made.append(setting.replace("{runs}", str(runs)))
    return made


def begin(job: Job, jobs: list[Job], runs: Path) -> subprocess.Popen[bytes]:
    chosen = [part for setting in settings_of(job, jobs, runs) for part in ("--set", setting)]
    command = ["debiaspl", "train", "--recipe", job.recipe, *chosen]
    (runs / f"{job.name}.command").write_text(" ".join(command))
    with (runs / f"{job.name}.output").open("ab") as output:
        program = [sys.executable, "-m", *command, "--out", str(runs / job.name), "--resume"]
        return subprocess.Popen(program, stdout=output, stderr=output)


def carry_out(jobs: list[Job], runs: Path, together: int, seconds: float) -> None:
    began, running, failed = time.monotonic(), dict[str, subprocess.Popen[bytes]](), set[str]()
    since: dict[str, float] = {}

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)

    def ended(name: str) -> None:
        """Add the seconds of a process that has ended to those of its run."""
        path = runs / f"{name}.seconds"
        path.write_text(f"{process_seconds(runs, name) + time.monotonic() - since[name]:.1f}")

    while True:
        for name, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[name]
            ended(name)
            found = results(runs / name)
            if found:
                say(f"{name}: {100 * found['accuracy']:.2f} %, {found['timing']['seconds']:.0f} s of training")
            else:
                failed.add(name)
                say(f"{name} has failed: {(runs / f'{name}.output').read_text()[-600:]}")
        over = time.monotonic() - began > seconds
        waiting = [job for job in jobs if job.name not in running and job.name not in failed]
        waiting = [] if over else [job for job in waiting if not results(runs / job.name) and ready(job, jobs, runs)]
        by_itself = any(job.alone for job in jobs if job.name in running)
        for job in waiting:
            if by_itself or len(running) >= together or (job.alone and running):
                break
            say(f"{job.name} begins")
            running[job.name], since[job.name] = begin(job, jobs, runs), time.monotonic()
            by_itself = job.alone
        if not running:
            return
        if over:
            for process in running.values():
                process.send_signal(signal.SIGTERM)
            for name, process in running.items():
                process.wait()
                ended(name)
                say(f"{name} was stopped at the end of the time")
            return
        time.sleep(0.2)


def process_seconds(runs: Path, name: str) -> float:
    """Of all processes of a run that have ended: it may have been stopped and resumed."""
    path = runs / f"{name}.seconds"
    return float(path.read_text()) if path.exists() else 0.0


def collected(jobs: list[Job], runs: Path) -> dict[str, Any]:
    """Of every run that has begun."""
    found: dict[str, Any] = {}
    for job in jobs:
        folder = runs / job.name
        if not (folder / "log.jsonl").exists():
            continue
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        kept = (*KEPT, "seconds", "health", "prior")
        found[job.name] = {
            "command": (runs / f"{job.name}.command").read_text(),
            "recipe": json.loads((folder / "config.json").read_text())["recipe"],
            "results": results(folder),
            "process_seconds": process_seconds(runs, job.name),
            "log": [{key: rounded(line[key]) for key in kept if key in line} for line in lines],
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file")
    parser.add_argument("--together", type=int, default=1, help="runs that share the device")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which nothing begins")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    jobs = read_plan(options.plan.read_text())
    carry_out(jobs, options.runs, options.together, options.seconds)
    options.out.write_text(json.dumps(collected(jobs, options.runs)) + "\n")


if __name__ == "__main__":
    main()
