"""Which photos to label next, in rounds of ten: ``debiaspl next`` beside least confidence and a random choice.

    python -m benchmarks.next_labels eurosat=EuroSAT/2750 flowers=flowers20 --work runs/first --out next_labels.json

The folders are those of benchmarks/first_labels.py. *next* and *least confidence* begin with one label a class
(on average) chosen by coverage, *random* with as many random ones. Rounds end at 85 %, or at 400 labels.
"""

from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch

from benchmarks.drawn import Drawn, encoded, parsed, record
from debiaspl.deploy.next import Learned, Pool
from debiaspl.features import choose

ENOUGH, MOST, EACH = 85.0, 400, 10
HOW = ("random", "least confidence", "next")


def rounds(path: Path, name: str, tail: bool, draw: int) -> list[dict[str, Any]]:
    """How many labels each choice needs, and the accuracy after each round."""
    photos, found = Drawn(path, tail, draw), []
    random = np.random.default_rng(draw).permutation(len(photos.truth)).tolist()
    first = choose(photos.features.numpy(), photos.classes).tolist()
    names = tuple(map(str, range(photos.classes)))
    for how in HOW:
        chosen, curve = random[: photos.classes] if how == "random" else list(first), []
        while True:
            probabilities = photos.probabilities(chosen)
            curve.append((len(chosen), photos.rated(chosen, probabilities)["accuracy"]))
            if curve[-1][1] >= ENOUGH or len(chosen) >= MOST:
                break
            if how == "next":
                learned = Learned(labels=len(chosen))
                pool = Pool(photos.features, torch.from_numpy(probabilities), names, learned)
                chosen += [pick.place for pick in pool.choose(EACH, {row: names[photos.truth[row]] for row in chosen})]
            else:
                order = (
                    np.argsort(probabilities.max(1), kind="stable").tolist() if how == "least confidence" else random
                )
                taken = set(chosen)
                chosen += [row for row in order if row not in taken][:EACH]
        found.append({"data": name, "tail": tail, "draw": draw, "order": how, "needed": len(chosen), "curve": curve})
    return found


def table(runs: list[dict[str, Any]]) -> str:
    """Labels needed, on average."""
    lines = [f"| folders | draws | {' | '.join(HOW)} |", "|" + " --- |" * (2 + len(HOW))]
    cells = [(name, tail) for name in dict.fromkeys(run["data"] for run in runs) for tail in (False, True)]
    for name, tail in [*cells, ("all", None)]:
        of = [run for run in runs if tail is None or (run["data"], run["tail"]) == (name, tail)]
        kind = "all" if tail is None else f"{name}, {'tail of 50 to 1' if tail else 'balanced'}"
        means = [f"{mean(run['needed'] for run in of if run['order'] == how):.0f}" for how in HOW]
        lines.append(f"| {kind} | {len(of) // len(HOW)} | {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options = parsed(__doc__).parse_args()
    paths, draws = encoded(options.sets, options.work), range(*map(int, options.draws.split(":")))
    cells = [(rounds, paths[name], name, tail, draw) for draw in draws for name in paths for tail in (False, True)]
    print(table(record(options.out, cells, options.jobs)))


if __name__ == "__main__":
    main()
