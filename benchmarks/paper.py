"""The paper's own recipes at full length: from run folders to results/paper, and from there to docs/reproduction.md.

    python -m benchmarks.paper keep cifar10-40-debiaspl runs/cifar10-40-0 [runs/cifar10-40-1 ...] --commit 583f46c
    python -m benchmarks.paper page     # the table and the figure of docs/reproduction.md, from results/

A run that has not ended is kept too, as what it is: at step N of its recipe.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.results import RESULTS, ROOT
from tools.marks import filled

PAGE, FIGURE = ROOT / "docs" / "reproduction.md", ROOT / "docs" / "reproduction.png"
KEPT = ("step", "accuracy", "kept", "pseudo_accuracy", "distance", "seconds")
"""Of the lines of the log with an accuracy: the share of labels kept, how many are right, and how far the prior is from
even shares (total variation)."""
ROWS = (
    ("cifar10-40", "CIFAR-10, 4 labels a class", {"debiaspl": "94.6 ± 1.3", "fixmatch": "86.1"}),
    ("cifar10-lt100-10pct", "CIFAR-10-LT, 100 to 1, 10 % labeled", {"debiaspl": "79.2", "fixmatch": "67.3"}),
    ("cifar10-lt200-10pct-balanced", "CIFAR-10, labels 200 to 1, 10 %", {"debiaspl": "83.5", "fixmatch": "72.1"}),
)
"""Cell, its name in the paper, and the paper's accuracy by method."""
SHOWN = (24_576, 40_960, 65_536, 98_304, 163_840, 229_376, 237_568, 311_296, 409_600, 524_288)
"""Steps of the table of the curve."""
SHORT = (
    ("minutes: short recipe, three at once", "gain/cifar10-40/cifar10-40-minutes.json", 0.0, 136.3 / 60),
    ("start: features first", "start/cifar10-40/cifar10-40-start.json", 299 / 60, 84 / 60),
)
"""Name, file, and minutes of the GPU before and with labels; those of the start are of runs that had the GPU alone, as
results/start/fourth-search.json says."""
SHORTS = (
    ("minutes", "4 a class", "gain/cifar10-40/cifar10-40-minutes"),
    ("minutes", "long tail, 100 to 1, a tenth", "gain/cifar10-lt100-10pct/cifar10-lt100-10pct-minutes"),
    (
        "minutes",
        "200 to 1, a tenth; unlabeled images balanced",
        "gain/cifar10-lt200-10pct-balanced/cifar10-lt200-10pct-balanced-minutes",
    ),
    ("start", "4 a class", "start/cifar10-40/cifar10-40-start"),
    ("start", "long tail, 100 to 1, a tenth", "start/cifar10-lt100-10pct/cifar10-lt100-10pct-start"),
)
"""Length, labels, and where their results are."""
NAMES = {"debiaspl": "DebiasPL", "fixmatch": "FixMatch"}


def kept_fold(run: Path) -> dict[str, Any]:
    """What one run folder says, ended or not."""
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    fold: dict[str, Any] = {
        "fold": json.loads((run / "config.json").read_text())["recipe"]["seed"],
        "step": log[-1]["step"],
        "ended": (run / "results.json").exists(),
        "log": [{key: line[key] for key in KEPT if key in line} for line in log if "accuracy" in line],
    }
    if fold["ended"]:
        results = json.loads((run / "results.json").read_text())
        fold |= {key: results[key] for key in ("accuracy", "recall", "confusion")}
        fold |= {"seconds": results["timing"]["seconds"], "device": results["timing"]["device"]}
        fold |= {"versions": results["versions"]}
    elif fold["log"]:
        fold["accuracy"] = fold["log"][-1]["accuracy"]
    return fold


def keep(name: str, runs: list[Path], commit: str, together: int) -> Path:
    """Write results/paper/NAME.json."""
    recipe = json.loads((runs[0] / "config.json").read_text())["recipe"]
    folds = sorted((kept_fold(run) for run in runs), key=lambda fold: int(fold["fold"]))
    seed = "" if len(folds) > 1 else f" --set seed={recipe['seed']}"
    kept = {
        "command": f"debiaspl train --recipe {recipe['name']}{seed}",
        "commit": commit,
        "device": next((fold["device"] for fold in folds if "device" in fold), "NVIDIA H200"),
        "together": together,
        "recipe": recipe,
        "folds": folds,
    }
    path = RESULTS / "paper" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept) + "\n")
    return path


def cell_of(name: str) -> dict[str, Any] | None:
    path = RESULTS / "paper" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(all_cells: bool = True) -> str:
    """A row for every cell and method, or for those that were run."""
    lines = ["| labels | method | paper % | ours % | runs | hours a run |", "| --- | --- | --- | --- | --- | --- |"]
    for cell, title, paper in ROWS:
        for method, published in paper.items():
            kept = cell_of(f"{cell}-{method}")
            if kept is None and not all_cells:
                continue
            lines.append(f"| {title} | {NAMES[method]} | {published} | {_ours(kept)} |")
    return "\n".join(lines) + "\n"


def short() -> str:
    """Our short recipes: contrastmatch without and with the Debiaser, fold by fold."""
    lines = ["| length | labels | contrastmatch, by fold | with the Debiaser | mean difference |", "|" + " --- |" * 5]
    for length, title, file in SHORTS:
        plain, ours = (
            {fold["fold"]: fold["accuracy"] for fold in json.loads((RESULTS / name).read_text())["folds"]}
            for name in (f"{file}-fixmatch.json", f"{file}.json")
        )
        cells = [", ".join(f"{100 * each[fold]:.1f}" for fold in sorted(ours)) for each in (plain, ours)]
        gain = 100 * fmean(ours[fold] - plain[fold] for fold in ours)
        lines.append(_row([f"`{length}`", title, *cells, f"{gain:+.1f}"]))
    return "\n".join(lines) + "\n"


def _ours(kept: dict[str, Any] | None) -> str:
    if kept is None:
        return "not run at full length |  | "
    ended = [fold for fold in kept["folds"] if fold["ended"]]
    if not ended:
        fold = max(kept["folds"], key=lambda fold: int(fold["step"]))
        reached = f"{100 * fold['accuracy']:.2f} at step {fold['step']:,} of {kept['recipe']['steps']:,}"
        return f"{reached} | 0 | "
    numbers = ", ".join(f"{100 * fold['accuracy']:.2f}" for fold in ended)
    mean = f"{100 * fmean(fold['accuracy'] for fold in ended):.2f} ({numbers})" if len(ended) > 1 else numbers
    hours = fmean(fold["seconds"] for fold in ended) / 3600
    alone = "" if kept["together"] == 1 else f", {kept['together']} at once"
    return f"{mean} | {len(ended)} | {hours:.1f}{alone} "


def curve() -> str:
    """Some evaluations of the run that has ended, as a table."""
    kept = cell_of("cifar10-40-debiaspl")
    assert kept is not None
    log = kept["folds"][0]["log"]
    lines = [min(log, key=lambda line: abs(int(line["step"]) - step)) for step in SHOWN]
    columns = {
        "step": [f"{line['step'] / 1000:.0f}k" for line in lines],
        "minutes": [f"{line['seconds'] / 60:.0f}" for line in lines],
        "accuracy %": [f"{100 * line['accuracy']:.1f}" for line in lines],
        "labels kept %": [f"{100 * line['kept']:.0f}" for line in lines],
        "of these right %": [f"{100 * line['pseudo_accuracy']:.1f}" for line in lines],
        "prior from even shares": [f"{line['distance']:.3f}" for line in lines],
    }
    rows = [[name, *values] for name, values in columns.items()]
    return "\n".join([_row(rows[0]), "|" + " --- |" * len(rows[0]), *map(_row, rows[1:])]) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def curves() -> list[tuple[str, list[float], list[float]]]:
    """Name, minutes and accuracy of every curve of the figure."""
    found = []
    for method, name in NAMES.items():
        kept = cell_of(f"cifar10-40-{method}")
        for fold in [] if kept is None else kept["folds"]:
            minutes = [line["seconds"] / 60 for line in fold["log"]]
            found.append((f"the paper's recipe, {name}", minutes, [100 * line["accuracy"] for line in fold["log"]]))
    for name, file, start, minutes in SHORT:
        kept = json.loads((RESULTS / file).read_text())
        log = [line for line in kept["folds"][0]["log"] if "accuracy" in line]
        places = [start + minutes * line["step"] / kept["recipe"]["steps"] for line in log]
        found.append((name, places, [100 * line["accuracy"] for line in log]))
    return found


def draw(path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name, minutes, accuracy in curves():
        axes.plot(minutes, accuracy, label=name, lw=1.4)
    axes.axhline(94.6, color="k", lw=0.8, ls=":", label="the paper: 94.6")
    ticks = [0.2, 0.5, 1, 2, 5, 10, 20, 50]
    axes.set(xlabel="minutes on one H200", ylabel="test accuracy, %", ylim=(20, 100), xscale="log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_title("CIFAR-10, 4 labels a class", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    keeping = parts.add_parser("keep")
    keeping.add_argument("name", help="CELL-METHOD")
    keeping.add_argument("runs", nargs="+", type=Path)
    keeping.add_argument("--commit", required=True)
    keeping.add_argument("--together", type=int, default=1, help="runs that shared the GPU")
    parts.add_parser("page")
    options = parser.parse_args()
    if options.part == "keep":
        print(keep(options.name, options.runs, options.commit, options.together))
        return
    draw(FIGURE)
    PAGE.write_text(filled(PAGE.read_text(), {"paper": table(), "curve": curve(), "short": short()}))


if __name__ == "__main__":
    main()
