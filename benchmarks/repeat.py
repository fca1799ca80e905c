"""Run again what a result file records, and say whether the new numbers agree with the recorded ones.

    python -m benchmarks.repeat                                # every file, and the commands that make its first fold
    python -m benchmarks.repeat results/start/cifar10-40/cifar10-40-start.json --fold 3
    python -m benchmarks.repeat results/start/cifar10-40/cifar10-40-start.json --set steps=20     # a rehearsal

Trains the recipe that the file records, with each fold as the seed, and its start first. Nothing in a file is executed:
the commands in it are parsed. With --set the runs are not the recorded ones, and numbers are not compared.
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.results import FINEST, RESULTS, recorded_recipe, rows, start_recipe
from debiaspl._over_seeds import mean_interval
from debiaspl.training import Recipe, train
from debiaspl.training.settings import parse_settings


def planned(values: Mapping[str, Any], folds: Sequence[int], out: Path) -> Iterator[tuple[int | None, Path, Recipe]]:
    """Fold, folder and recipe of each run, in the order of training; a start has no fold. It has the seed of its fold
    where the recorded command sets one, and is shared by all folds otherwise."""
    recipe, start = recorded_recipe(values["recipe"]), start_recipe(values)
    if recipe.start and start is None:
        raise SystemExit("the file has no start_command, but its recipe has a start.")
    own_start = start is not None and "seed=" in values["start_command"]
    for place, fold in enumerate(folds):
        if start is not None:
            folder = out / (f"start-{fold}" if own_start else "start")
            if own_start or place == 0:
                yield None, folder, replace(start, seed=fold) if own_start else start
            yield fold, out / f"fold-{fold}", replace(recipe, seed=fold, start=str(folder))
        else:
            yield fold, out / f"fold-{fold}", replace(recipe, seed=fold)


def recorded_accuracy(values: Mapping[str, Any]) -> dict[int, float]:
    """By fold, in %."""
    return {int(fold.get("fold", place)): 100 * fold["accuracy"] for place, fold in enumerate(values["folds"])}


def next_interval(values: Sequence[float], finest: float = 0.0) -> tuple[float, float] | None:
    """The 95 % interval of one further run (a prediction interval); None for fewer than two values."""
    found = mean_interval(values, finest)
    if found is None:
        return None
    middle, half = sum(found) / 2, (found[1] - found[0]) / 2 * math.sqrt(len(values) + 1)
    return middle - half, middle + half


def compared(recorded: Mapping[int, float], now: Mapping[int, float]) -> list[str]:
    """A line for each new number, and one for all of them."""
    lines = []
    for fold, value in now.items():
        before = f"recorded {recorded[fold]:.2f} %, " if fold in recorded else "not recorded, "
        lines.append(f"fold {fold}: {before}now {value:.2f} %")
    interval = next_interval(list(recorded.values()), FINEST)
    if interval is None:
        return [*lines, "The file records one fold, which has no spread, so the numbers cannot be tested."]
    low, high = interval
    outside = [str(fold) for fold, value in now.items() if not low <= value <= high]
    where = f"Outside, in fold {', '.join(outside)}," if outside else "Within"
    words = f"the 95 % interval of a further run, by Student's t over {len(recorded)} folds: {low:.2f} to {high:.2f} %."
    return [*lines, f"{where} {words}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--fold", type=int, action="append", help="default: all that are recorded")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for a rehearsal, starts too")
    parser.add_argument("--out", type=Path, default=Path("runs/repeat"))
    parser.add_argument("--device")
    options = parser.parse_args()
    if options.file is None:
        for row in rows():
            print(f"{RESULTS.name}/{row.file}", *(f"    {one}" for one in row.commands), "", sep="\n")
        return
    values = json.loads(options.file.read_text())
    recorded, now = recorded_accuracy(values), dict[int, float]()
    for fold, folder, recipe in planned(values, options.fold or list(recorded), options.out / options.file.stem):
        changed = parse_settings(recipe, options.set)
        accuracy = train(changed, folder, resume=True, device=options.device)["accuracy"]
        if fold is not None:
            now[fold] = 100 * accuracy
    if options.set:
        print(f"Not compared, with {', '.join(options.set)}: {now}")
    else:
        print("\n".join(compared(recorded, now)))


if __name__ == "__main__":
    main()
