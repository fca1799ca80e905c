"""Tables of README and docs, from results/. After a new measurement: python -m tools.readme"""

import json
from collections.abc import Callable
from statistics import fmean
from typing import Any

from benchmarks.paper import table as paper
from debiaspl._over_seeds import markdown
from tools.marks import ROOT, filled

FOLDERS = {"balanced": "balanced", "long tail, random labels": "long tail"}
"""Kinds of folders in results/photos/cells.json, as README calls them."""


def result(path: str) -> Any:
    return json.loads((ROOT / "results" / path).read_text())


def photos() -> str:
    """Photos with five labels a class: the labels alone, and the tool."""
    lines = [("5 labels a class", "labels alone %", "debiaspl %", "by class: alone %", "debiaspl %")]
    runs = result("photos/cells.json")["runs"]
    for data, name in (("eurosat", "EuroSAT, 10 classes"), ("flowers", "flowers, 20 classes")):
        for kind, shown in FOLDERS.items():
            cell = [run for run in runs if (run["data"], run["kind"], run["labels"]) == (data, kind, 5)]
            pairs = [
                [run[measure] for run in cell if run["method"] == method]
                for measure, ours in (("accuracy", "photos"), ("macro", "classes"))
                for method in ("logistic regression", ours)
            ]
            means = [f"{fmean(values):.1f}" for values in pairs]
            lines.append((f"{name}, {shown}", *means))
    return markdown(lines)


def speed() -> str:
    measured = result("speed/h200.json")
    lines = [("one training step", "ms", "speed-up"), ("usual code", f"{measured['baseline_ms']:.1f}", "1")]
    names = {"joint": "default", "faithful": "weak views in a separate batch", "fast": "fast mode"}
    lines += [(text, f"{measured[f'{mode}_ms']:.1f}", str(measured[f"{mode}_ratio"])) for mode, text in names.items()]
    return markdown(lines)


def add_on() -> str:
    """The matrix of digits: each algorithm alone, as published, and with the Debiaser."""
    measured = result("digits-matrix/results.json")
    lines = [("algorithm", "alone %", "own %", "Debiaser %", "Debiaser - own", "worst seed", "better on")]
    for name, row in measured["algorithms"].items():
        if not {"none", "own", "debiaser"} <= set(row["corrections"]):
            continue
        alone, own, ours = (row["corrections"][key]["accuracy"]["per_seed"] for key in ("none", "own", "debiaser"))
        gains = [100 * (one - other) for one, other in zip(ours, own, strict=True)]
        means = [f"{100 * fmean(cell):.1f}" for cell in (alone, own, ours)]
        if own == alone:
            means[1] = "= alone"
        better = f"{sum(gain > 0 for gain in gains)} of {len(gains)}"
        lines.append((name, *means, f"{fmean(gains):+.1f}", f"{min(gains):+.1f}", better))
    return markdown(lines)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"photos": photos, "paper": lambda: paper(all_cells=False), "speed": speed},
    "docs/lab/notebook.md": {"add-on": add_on},
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
