"""What the label page says of its labels: does the interval hold the accuracy, and are wrong labels shown again?

    python -m benchmarks.label_estimates eurosat=EuroSAT/2750 flowers=flowers20 --draws 0:20 --work runs/first \
        --out label_estimates.json

The folders are those of benchmarks/first_labels.py, and the photos are asked for by the page's own code. After 50 and
100 labels its estimate is compared with the accuracy of ``features.fit`` on all other photos, and its interval with the
exact one of the random labels alone. In the first five draws also with the accuracy after ten more labels, and of 200
labels 5 % are then made wrong.
"""

from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from benchmarks.drawn import Drawn, encoded, parsed, record
from debiaspl._measures import exact_interval
from debiaspl.deploy.next import Pool
from debiaspl.features.estimate import LEVEL, estimate, held_out, suspects
from debiaspl.features.shares import PHOTOS, RANDOM
from debiaspl.label.guide import EVERY, SHOWN, Guide

SIZES, MANY, WRONG = (50, 100), 200, 0.05
MORE_DRAWS = 5


def asked_by_the_page(photos: Drawn, count: int) -> dict[int, str]:
    """Photos in their order, and how each was chosen."""
    files = tuple(map(str, range(len(photos.truth))))
    table = SimpleNamespace(answers={}, asked={})
    everything = list(range(len(files))), Pool(photos.features), {}
    guide = Guide(lambda keys, watch: everything, files, table, tuple(map(str, range(photos.classes))), count=EVERY)
    while guide.learn():
        pass
    asked: dict[int, str] = {}
    while len(asked) < count:
        asked |= dict(guide.choose(set(asked)))
        table.answers = {files[row]: str(photos.truth[row]) for row in asked}
    return asked


def estimated(path: Path, name: str, tail: bool, draw: int) -> list[dict[str, Any]]:
    photos, found = Drawn(path, tail, draw, PHOTOS), []
    more = draw < MORE_DRAWS
    asked = asked_by_the_page(photos, MANY if more else max(SIZES))
    rows = list(asked)
    at_random = torch.tensor([asked.get(row) == RANDOM for row in range(len(photos.truth))])
    for size in SIZES:
        labels = torch.from_numpy(photos.given(rows[:size]))
        held = held_out(photos.table, labels, at_random)
        said = estimate(photos.table, labels, photos.classes, at_random, held)
        checked = held.right[at_random[held.rows]]
        low, high = exact_interval(int(checked.sum()), len(checked), LEVEL)
        accuracy = photos.rated(rows[:size])["accuracy"] / 100
        row = {"data": name, "tail": tail, "draw": draw, "labels": size}
        values = {"accuracy": accuracy, "said": said.accuracy, "low": said.low, "high": said.high}
        values |= {"crosscheck": float(held.right.double().mean()), "exact_width": high - low}
        if more:
            then = photos.rated(rows[: size + EVERY])["accuracy"] / 100
            values |= {"gain": then - accuracy, "said_gain": said.gain}
        found.append(row | {key: round(value, 4) for key, value in values.items()})
    if more:
        found.append(
            {"data": name, "tail": tail, "draw": draw, "labels": MANY} | second_look(photos, rows, at_random, draw)
        )
    return found


def second_look(photos: Drawn, rows: list[int], at_random: torch.Tensor, draw: int) -> dict[str, int]:
    """How many of the wrong labels are among the first that are shown again."""
    random = np.random.default_rng(draw)
    wrong = random.choice(rows, round(WRONG * len(rows)), replace=False)
    labels = photos.given(rows)
    labels[wrong] = (labels[wrong] + random.integers(1, photos.classes, len(wrong))) % photos.classes
    given = torch.from_numpy(labels)
    shown = suspects(photos.features, held_out(photos.table, given, at_random))[:SHOWN]
    return {"wrong": len(wrong), "shown": len(shown), "found": len({one.row for one in shown} & set(wrong.tolist()))}


def table(runs: list[dict[str, Any]]) -> str:
    columns = (
        "folders",
        "draws",
        "labels",
        "accuracy",
        "estimate",
        "cross-check",
        "holds it",
        "width",
        "random labels alone",
    )
    lines = [f"| {' | '.join((*columns, 'gain of ten', 'expected'))} |", "|" + " --- |" * (len(columns) + 2)]
    for name, tail, size in dict.fromkeys((run["data"], run["tail"], run["labels"]) for run in runs):
        own = [run for run in runs if (run["data"], run["tail"], run["labels"]) == (name, tail, size)]
        if "said" in own[0]:
            holds = mean(run["low"] <= run["accuracy"] <= run["high"] for run in own)
            widths = [mean(run["high"] - run["low"] for run in own), mean(run["exact_width"] for run in own)]
            shares = [mean(run[key] for run in own) for key in ("accuracy", "said", "crosscheck")]
            cells = [f"{100 * share:.1f}" for share in (*shares, holds, *widths)]
            gains = [f"{100 * mean(run[key] for run in own if 'gain' in run):.1f}" for key in ("gain", "said_gain")]
            lines.append(
                f"| {name}, {'tail' if tail else 'balanced'} | {len(own)} | {size} | {' | '.join(cells + gains)} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    options = parsed(__doc__).parse_args()
    paths, draws = encoded(options.sets, options.work), range(*map(int, options.draws.split(":")))
    cells = [(estimated, paths[name], name, tail, draw) for draw in draws for name in paths for tail in (False, True)]
    runs = record(options.out, cells, options.jobs)
    print(table(runs))
    planted = [run for run in runs if "wrong" in run]
    print(f"wrong labels among the {SHOWN} shown: {mean(run['found'] / run['wrong'] for run in planted):.2f}")


if __name__ == "__main__":
    main()
