"""Result files from what ``benchmarks.plan`` brings back.

    python -m benchmarks.plan_results runs.json search 40-search- --commit 853c624 --about "..." \\
        --out results/start/fourth-search.json
    python -m benchmarks.plan_results runs.json folds 40-fixmatch- --start cifar10-pretrain --together 9 \\
        --commit 853c624 --out results/start/cifar10-40/cifar10-40-start-fixmatch.json

``search`` keeps every run whose name begins so, with its settings and curve. ``folds`` makes of the runs of one method
a file as benchmarks/gain.py writes it, for ``debiaspl results``: the runs differ in their seed and in the folder of
their start alone. ``--start`` is the run that they begin with, ``{seed}`` in it the seed: its seconds are added.
It is called as its recipe would write it, so that both commands in the file, typed one after the other, repeat a fold.
``--recipe`` files the folds under a recipe that was made of their settings later, ``--set`` adds what this one has
otherwise; the command must give, with the recipes as they are now, what was run.
Seconds are those of the processes, from start to end, timed while ``--together`` runs shared the device.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debiaspl.recipes import recipe as recipe_named
from debiaspl.recipes.results import computed
from debiaspl.training import Recipe

CURVE = ("step", "accuracy", "losses", "kept", "pseudo_accuracy", "health")
"""Of a line of the log of a search; a fold keeps all."""


def settings(command: str) -> list[str]:
    """Of a command, without those that a later one of the same name replaces."""
    last: dict[str, str] = {}
    for setting in re.findall(r"--set (\S+)", command):
        name = setting.partition("=")[0]
        last.pop(name, None)
        last[name] = setting
    return list(last.values())


def shown(run: dict[str, Any], *dropped: str, name: str | None = None) -> str:
    """The command as a user types it: a start is a folder of runs/."""
    kept = [re.sub(r"^start=.*/", "start=runs/", one) for one in settings(run["command"])]
    kept = [one for one in kept if one.partition("=")[0] not in dropped]
    return " ".join([f"debiaspl train --recipe {name or run['recipe']['name']}", *(f"--set {one}" for one in kept)])


def finished(runs: dict[str, Any], prefix: str, whole: bool = False) -> dict[str, Any]:
    """Runs whose names begin so, or with ``whole`` the one of that name."""
    named = [name for name in runs if (name == prefix if whole else name.startswith(prefix))]
    found = {name: runs[name] for name in named if runs[name]["results"]}
    if not found:
        beginning = "is" if whole else "begins with"
        raise SystemExit(f"no run whose name {beginning} {prefix} has ended. There are {', '.join(runs)}.")
    return found


def of_search(runs: dict[str, Any], prefixes: list[str]) -> dict[str, Any]:
    found = {name: run for prefix in prefixes for name, run in finished(runs, prefix).items()}
    return {
        name: {
            "command": shown(run),
            "accuracy": run["results"]["accuracy"],
            "recall": run["results"]["recall"],
            "seconds": run["process_seconds"],
            "log": [{key: line[key] for key in CURVE if key in line} for line in run["log"]],
        }
        for name, run in found.items()
    }


def repeatable(recipe: dict[str, Any], command: str) -> None:
    """Raise where the command, with the recipes as they are now, would run something else."""
    recorded = Recipe.from_json(recipe)
    now = recipe_named(recorded.name).with_settings(settings(command))
    both = computed(recorded).to_json(), computed(now).to_json()
    if differing := [name for name, value in both[0].items() if both[1][name] != value]:
        raise SystemExit(
            f"{command}\nis not what was run, in {', '.join(differing)}. Choose another --recipe, or --set it."
        )


def of_folds(
    runs: dict[str, Any], prefixes: list[str], start: str | None, name: str | None = None, more: Sequence[str] = ()
) -> dict[str, Any]:
    found = [run for prefix in prefixes for run in finished(runs, prefix).values()]
    found.sort(key=lambda run: run["recipe"]["seed"])
    if len(commands := {shown(run, "seed", "start") for run in found}) > 1:
        raise SystemExit("these runs are not folds of one method:\n" + "\n".join(sorted(commands)))
    folds = []
    for run in found:
        before = finished(runs, start.format(seed=run["recipe"]["seed"]), whole=True) if start else {}
        added = sum(one["process_seconds"] for one in before.values())
        folds.append(
            {
                "fold": run["recipe"]["seed"],
                "accuracy": run["results"]["accuracy"],
                "recall": run["results"]["recall"],
                "seconds": round(run["process_seconds"] + added, 1),
                "training_seconds": run["results"]["timing"]["seconds"],
                "log": [{key: value for key, value in line.items() if key != "seconds"} for line in run["log"]],
            }
        )
    recipe = found[0]["recipe"] | {"start": re.sub(r"^.+/", "runs/", found[0]["recipe"]["start"])}
    if name:  # the words are those of the recipe that was named
        recipe |= {"name": name, "about": "", "cost": ""}
    made: dict[str, Any] = {}
    if start:  # the command of the first fold's start, with which debiaspl repeat trains all of them
        (first,) = finished(runs, start.format(seed=found[0]["recipe"]["seed"]), whole=True).values()
        made["start_command"] = shown(first)
        recipe["start"] = f"runs/{first['recipe']['name']}"
    command = " ".join([shown(found[0], *(["start"] if start else []), name=name), *(f"--set {one}" for one in more)])
    repeatable(recipe, command)
    return {"recipe": recipe, "command": command, **made, "folds": folds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="the JSON file of benchmarks.plan")
    parser.add_argument("what", choices=("search", "folds"))
    parser.add_argument("names", nargs="+", help="how the names of the runs begin")
    parser.add_argument("--about", help="what was searched, and how it was chosen")
    parser.add_argument("--start", help="the run that folds begin with")
    parser.add_argument("--recipe", help="the recipe to file folds under; otherwise the one that was named")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE that this recipe has otherwise now")
    parser.add_argument("--together", type=int, default=1, help="runs that shared the device")
    parser.add_argument("--commit", required=True, help="of the code that ran")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    runs = json.loads(options.runs.read_text())
    found = [run["results"] for name in options.names for run in finished(runs, name).values()]
    versions = {key: value for key, value in found[0]["versions"].items() if key != "debiaspl"}
    made: dict[str, Any] = {"about": options.about} if options.about else {}
    made |= {"commit": options.commit, "device": found[0]["timing"]["device"], "together": options.together}
    made |= {"versions": versions}
    if options.what == "search":
        made["runs"] = of_search(runs, options.names)
    else:
        made |= of_folds(runs, options.names, options.start, options.recipe, options.set)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
