"""Tables of README and docs, from results/. After a new measurement: python -m tools.readme

A row of results is one line of ``ROWS``: what was measured, its page, and the accuracies of FixMatch and of DebiasPL,
seed by seed, as the files in results/ have them.
"""

import json
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from debiaspl.report import over_seeds
from tools.marks import ROOT, filled

Pair = tuple[Sequence[float], Sequence[float]]
"""Accuracies of 0 to 1, of FixMatch and of DebiasPL, for the same seeds."""


class Row(NamedTuple):
    what: str
    page: str
    read: Callable[[], Pair]


def result(path: str) -> Any:
    return json.loads((ROOT / "results" / path).read_text())


def demo(folder: str) -> Callable[[], Pair]:
    def read() -> Pair:
        methods = result(f"{folder}/results.json")["methods"]
        return methods["FixMatch"]["accuracy"]["per_seed"], methods["DebiasPL"]["accuracy"]["per_seed"]

    return read


def folds(fixmatch: str, debiaspl: str) -> Callable[[], Pair]:
    """Two files of benchmarks/branches.py, benchmarks/gain.py or benchmarks/plan.py."""

    def read() -> Pair:
        files = result(fixmatch)["folds"], result(debiaspl)["folds"]
        theirs, ours = ({one["fold"]: one["accuracy"] for one in file} for file in files)
        if theirs.keys() != ours.keys():
            raise ValueError(f"{fixmatch} has folds {sorted(theirs)}, {debiaspl} {sorted(ours)}; expected the same")
        return [theirs[fold] for fold in sorted(theirs)], [ours[fold] for fold in sorted(theirs)]

    return read


def minutes(cell: str) -> Callable[[], Pair]:
    return folds(f"gain/{cell}/{cell}-minutes-fixmatch.json", f"gain/{cell}/{cell}-minutes.json")


def photos(data: str, kind: str, labels: int) -> Callable[[], Pair]:
    def read() -> Pair:
        runs = [
            run
            for run in sorted(result("photos/cells.json")["runs"], key=lambda run: run["draw"])
            if (run["data"], run["kind"], run["labels"]) == (data, kind, labels)
        ]
        theirs, ours = ([r["macro"] / 100 for r in runs if r["method"] == name] for name in ("FixMatch", "DebiasPL"))
        return theirs, ours

    return read


def zero_shot() -> Pair:
    """Of the students that ``debiaspl zeroshot`` trains: they begin with a graph."""
    cell = result("zeroshot/verdict.json")["students"]["cifar10"]["from ConSE"]
    return cell["FixMatch, graph"]["runs"], cell["DebiasPL, graph"]["runs"]


START = "start/cifar10-40/cifar10-40-start"
TAIL = "start/cifar10-lt100-10pct/cifar10-lt100-10pct-start"
ROWS = (
    Row("digits, 1 label a class", "docs/demo.md", demo("demo-10-seeds")),
    Row("CIFAR-10, 4 labels a class", "docs/cifar10.md", minutes("cifar10-40")),
    Row("same, features learned first", "docs/start.md", folds(f"{START}-fixmatch.json", f"{START}.json")),
    Row("CIFAR-10, long tail, features first", "docs/start.md", folds(f"{TAIL}-fixmatch.json", f"{TAIL}.json")),
    Row("EuroSAT photos, 5 labels a class", "docs/own-photos.md", photos("eurosat", "balanced", 5)),
    Row("same, long tail, labels at random", "docs/own-photos.md", photos("eurosat", "long tail, random labels", 5)),
    Row("CIFAR-10, no labels, 2,000 images", "docs/zeroshot.md", zero_shot),
)


def results() -> str:
    lines = [("data", "seeds", "FixMatch %", "DebiasPL %", "difference (95 % interval)")]
    for row in ROWS:
        theirs, ours = row.read()
        runs = [[{"accuracy": value, "worst_recall": 0.0} for value in each] for each in (ours, theirs)]
        means = (f"{100 * fmean(each):.1f}" for each in (theirs, ours))
        difference = over_seeds.with_interval(over_seeds.measured(*runs)["difference"])
        lines.append((f"[{row.what}]({row.page})", str(len(ours)), *means, difference))
    return over_seeds.markdown(lines)


def speed() -> str:
    measured = result("speed/h200.json")
    lines = [("one training step", "ms", "speed-up"), ("usual code", f"{measured['baseline_ms']:.1f}", "1")]
    names = {"joint": "default", "faithful": "weak views in a separate batch", "fast": "fast mode"}
    lines += [(text, f"{measured[f'{mode}_ms']:.1f}", str(measured[f"{mode}_ratio"])) for mode, text in names.items()]
    return over_seeds.markdown(lines)


def add_on() -> str:
    """The matrix of digits: each algorithm alone, as published, with the Debiaser, and this against the published."""
    measured = result("digits-matrix/results.json")
    against = "Debiaser - own (95 % t)", "worst seed", "better on"
    lines = [("algorithm", "seeds", "alone %", "own %", "Debiaser %", *against)]
    for name, row in measured["algorithms"].items():
        if not {"none", "own", "debiaser"} <= set(row["corrections"]):
            continue
        cells = [row["corrections"][key]["accuracy"]["per_seed"] for key in ("none", "own", "debiaser")]
        alone, own, ours = ([{"accuracy": value, "worst_recall": 0.0} for value in cell] for cell in cells)
        difference = over_seeds.measured(ours, own)["difference"]
        means = [f"{100 * fmean(cell):.1f}" for cell in cells]
        if own == alone:
            means[1] = "= alone"
        better = f"{difference['better_on']} of {len(measured['seeds'])}"
        least = f"{100 * min(difference['per_seed']):+.1f}"
        lines.append((name, str(len(measured["seeds"])), *means, over_seeds.with_interval(difference), least, better))
    return over_seeds.markdown(lines)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"results": results, "speed": speed},
    "docs/add-on.md": {"add-on": add_on},
}
"""Page -> its tables."""


def texts() -> dict[str, str]:
    """The pages with their tables."""
    return {
        page: filled((ROOT / page).read_text(), {name: made() for name, made in tables.items()})
        for page, tables in TABLES.items()
    }


if __name__ == "__main__":
    for page, text in texts().items():
        (ROOT / page).write_text(text)
