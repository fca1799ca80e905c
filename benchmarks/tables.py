"""Tables of docs/ that compare a few seeds: means, and the paired difference of each seed, computed from results/.

python -m benchmarks.tables            # prints them all; a test holds the pages to them
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import made_teachers, target, target_features
from debiaspl._over_seeds import markdown

RESULTS = Path(__file__).parent.parent / "results"


def read(path: str) -> dict[str, Any]:
    return json.loads((RESULTS / path).read_text())


def compared(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Of accuracies, 0 to 1, of the same seeds: the mean difference in points, and that of every seed."""
    gains = [100 * (own - other) for own, other in zip(ours, theirs, strict=True)]
    return f"{mean(gains):+.1f} ({', '.join(f'{gain:+.1f}' for gain in gains)})"


def percent(values: Sequence[float]) -> str:
    return f"{100 * mean(values):.1f}"


def students() -> str:
    """What the command hands out, beside its teacher."""
    shown = "ConSE", "+ FixMatch", "+ DebiasPL", "handed out"
    lines = [["photos", "ConSE is", *shown, "handed out - ConSE by class, each draw"]]
    for name, draws in read("zeroshot/students.json")["sets"].items():
        made = [draw["methods"] | {"handed out": draw["methods"][draw["handed out"]]} for draw in draws]
        each = [[one.get(method, one["ConSE alone"]) for one in made] for method in shown]
        cells = [
            " / ".join(percent([run[kind] / 100 for run in runs]) for kind in ("accuracy", "macro")) for runs in each
        ]
        macro = [[run["macro"] / 100 for run in runs] for runs in each]
        words = ", ".join(sorted({draw["verdict"] for draw in draws}))
        lines.append([name, words, *cells, compared(macro[3], macro[0])])
    return markdown(lines)


def choices() -> str:
    """Five true labels a class, alone and with ConSE."""
    header = "five true labels a class", "draws", "ConSE %", "labels alone %", "labels + ConSE %"
    lines = [[*header, "+ ConSE - alone, each draw", "handed out"]]
    for name, draws in read("zeroshot/verdict.json")["choices"].items():
        each = [[draw["accuracy"][key] for draw in draws] for key in ("teacher", "alone", "taught")]
        best = sum(draw["accuracy"][draw["handed out"]] == max(draw["accuracy"].values()) for draw in draws)
        words = f"the best in {best} of {len(draws)}"
        lines.append([name, str(len(draws)), *map(percent, each), compared(each[2], each[1]), words])
    return markdown(lines)


def graph() -> str:
    """Four labels a class, before anything is trained."""
    keys = "nearest mean", "graph, 10 neighbours, alpha 0.9", "graph, then ridge 0.003"
    shown = "nearest class mean %", "graph %", "graph, then the linear classifier %"
    lines = [["features", "draws", *shown, "graph - mean, each draw", "linear - graph, each draw"]]
    names = "EuroSAT, EfficientNet-lite0", "flowers, EfficientNet-lite0", "EuroSAT, own start"
    for name, one in zip(names, read("graph/search.json")["sets"], strict=True):
        mean_, spread, linear = each = [[value / 100 for value in one["runs"][key]] for key in keys]
        differences = compared(spread, mean_), compared(linear, spread)
        lines.append([name, str(len(linear)), *map(percent, each), *differences])
    return markdown(lines)


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("zeroshot.md", "students"): students,
    ("zeroshot.md", "choices"): choices,
    ("start.md", "graph"): graph,
    ("debiasing.md", "target"): target.table,
    ("debiasing.md", "target-features"): target_features.table,
    ("zeroshot.md", "made teachers"): made_teachers.table,
}
"""By page and by the name in the comment before the table."""


if __name__ == "__main__":
    for (page, name), table in TABLES.items():
        print(f"{page}\n\n<!-- table {name} -->\n\n{table()}")
