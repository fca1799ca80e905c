"""Tables of docs/ that compare means over seeds: paired differences with intervals, computed from results/.

python -m benchmarks.tables            # prints them all; a test holds the pages to them
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from debiaspl.report import over_seeds
from debiaspl.report.intervals import mean_interval

RESULTS = Path(__file__).parent.parent / "results"
IMAGES = 2000
"""The most that benchmarks/verdict.py looks at."""
T = f"({over_seeds.INTERVAL})"


def read(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / path).read_text())
    return found


def compared(ours: Sequence[float], theirs: Sequence[float], finest: float = 0.0) -> list[str]:
    """Of accuracies, 0 to 1, of the same seeds: the difference in points with its interval, its worst seed, and on how
    many it is above 0. ``finest`` is one image: that all seeds differ by the same proves no smaller spread."""
    differences = [own - other for own, other in zip(ours, theirs, strict=True)]
    interval = mean_interval(differences, finest)
    assert interval is not None
    significant = not interval[0] <= 0 <= interval[1]
    shown = over_seeds.with_interval({"mean": mean(differences), "interval": interval, "significant": significant})
    return [shown, f"{100 * min(differences):+.1f}", f"{sum(value > 0 for value in differences)} of {len(ours)}"]


def percent(values: Sequence[float]) -> str:
    return f"{100 * mean(values):.1f}"


def accuracies(runs: Sequence[dict[str, Any]]) -> list[float]:
    return [run["accuracy"] for run in runs]


def zeroshot(name: str) -> str:
    """Students by the confidence that is asked of ConSE."""
    header = "confidence", "labels", "of these right %", "classes with labels", "seeds", "+ FixMatch %", "+ DebiasPL %"
    lines = [[*header, f"DebiasPL - FixMatch {T}", "worst seed"]]
    for confidence, cell in read(f"zeroshot/{name}-frozen.json")["confidence"].items():
        plain, ours = (accuracies(cell[method]["runs"]) for method in ("FixMatch", "DebiasPL"))
        classes, right = sum(count > 0 for count in cell["labels"]), f"{100 * cell['labels_right']:.1f}"
        line = [confidence, f"{sum(cell['labels']):,}", right, str(classes), str(len(plain)), percent(plain)]
        lines.append([*line, percent(ours), *compared(ours, plain)[:2]])
    return over_seeds.markdown(lines)


def students() -> str:
    """Frozen students with a random first classifier, and with that of the graph."""
    header = "labels", "seeds", "FixMatch %", "with the graph %", "DebiasPL %", "with the graph %"
    what = f"graph - random, FixMatch {T}", f"the same, DebiasPL {T}", f"DebiasPL - FixMatch, with the graph {T}"
    lines = [[*header, *what]]
    order = [f"{method}, {first}" for method in ("FixMatch", "DebiasPL") for first in ("random", "graph")]
    for name, kinds in read("zeroshot/verdict.json")["students"].items():
        for kind, cell in kinds.items():
            if "skipped" not in cell:
                each = [cell[key]["runs"] for key in order]
                pairs = (1, 0), (3, 2), (3, 1)
                differences = [compared(each[ours], each[theirs], 1 / IMAGES)[0] for ours, theirs in pairs]
                lines.append([f"{name} {kind}", str(len(each[0])), *map(percent, each), *differences])
    return over_seeds.markdown(lines)


def choices() -> str:
    """Five true labels a class, alone and with ConSE."""
    header = "five true labels a class", "draws", "ConSE %", "labels alone %", "labels + ConSE %"
    lines = [[*header, f"+ ConSE - alone {T}", "handed out"]]
    for name, draws in read("zeroshot/verdict.json")["choices"].items():
        each = [[draw["accuracy"][key] for draw in draws] for key in ("teacher", "alone", "taught")]
        best = sum(draw["accuracy"][draw["handed out"]] == max(draw["accuracy"].values()) for draw in draws)
        words = f"the best in {best} of {len(draws)}"
        lines.append([name, str(len(draws)), *map(percent, each), compared(each[2], each[1])[0], words])
    return over_seeds.markdown(lines)


def graph() -> str:
    """Four labels a class, before anything is trained."""
    keys = "nearest mean", "graph, 10 neighbours, alpha 0.9", "graph, then ridge 0.003"
    shown = "nearest class mean %", "graph %", "graph, then the linear classifier %"
    lines = [["features", "draws", *shown, f"graph - mean {T}", f"linear - graph {T}"]]
    names = "EuroSAT, EfficientNet-lite0", "flowers, EfficientNet-lite0", "EuroSAT, own start"
    for name, one in zip(names, read("graph/search.json")["sets"], strict=True):
        mean_, spread, linear = each = [[value / 100 for value in one["runs"][key]] for key in keys]
        differences = compared(spread, mean_)[0], compared(linear, spread)[0]
        lines.append([name, str(len(linear)), *map(percent, each), *differences])
    return over_seeds.markdown(lines)


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("zeroshot.md", "cifar10"): lambda: zeroshot("cifar10"),
    ("zeroshot.md", "eurosat"): lambda: zeroshot("eurosat"),
    ("zeroshot.md", "students"): students,
    ("zeroshot.md", "choices"): choices,
    ("start.md", "graph"): graph,
}
"""By page and by the name in the comment before the table."""


if __name__ == "__main__":
    for (page, name), table in TABLES.items():
        print(f"{page}\n\n<!-- table {name} -->\n\n{table()}")
