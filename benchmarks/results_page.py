"""docs/results.md and its figure, from results/ and the published numbers: python -m benchmarks.results_page"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.published import ELSEWHERE, NOTES, PROTOCOL_SOURCES, PUBLISHED, SOURCES, VOID
from benchmarks.results import FINEST, ROOT, Pair, Row, about, pairs, papers, points, rows
from benchmarks.results_figure import minutes_figure
from debiaspl._over_seeds import MIN_PAIRS, markdown, mean_interval, sign_flip
from debiaspl.recipes.cells import CELLS, Cell

MARK = "<!-- made by: python -m benchmarks.results_page -->\n"
READ = """Top-1 % on the test set, of the averaged weights after the last step; no epoch is selected. A fold is a seed:
other labeled images and other initial weights; but all folds of CIFAR-10 with few labels share one start. Minutes are
those of a fold's whole process, with its start; where several runs shared the GPU, each took longer. The paper trains
DebiasPL for 2^19 steps, half of FixMatch's own length. In its main CIFAR-10 table FixMatch is marked as copied from
other papers (CoMatch, FixMatch or CReST); 72.1, with balanced unlabeled images, is not.
"""
LENGTHS = """* **paper**: the settings, network and length of the paper, or of the protocol. Only these numbers can be
  compared with the paper's.
* **minutes**: ResNet-9, contrastmatch (FixMatch with a contrastive loss), fewer steps, and with the Debiaser a margin
  on labeled images, which the paper does not have. Settings were chosen on fold 100, where 50 of 55 runs had the
  Debiaser.
* **start**: begins with features learned without labels. Settings were chosen on fold 100, which has the same images
  for the test as other folds; 4 labels a class: 32 runs with the Debiaser and 32 without, nothing by folds 3 to 5; long
  tail: contrastmatch had 9 settings, with the Debiaser 5, margins 18, alignment with logit adjustment 6. 500/4000:
  none was searched there.
* **margins** is the Debiaser that widens margins while no label is debiased: not the paper's method.
"""
REPEAT = """## Repeat a result

    python -m benchmarks.repeat                         # every file, with the commands that make its first fold
    python -m benchmarks.repeat results/start/cifar10-40/cifar10-40-start.json --fold 3

The second trains the recipe that the file records and says whether the new number lies within the interval of one
further run. Another GPU or version of PyTorch rounds differently.
"""


def text(found: Sequence[Row]) -> str:
    """docs/results.md."""
    measured = [_measured(row) for row in found if not _earlier(row)]
    parts = [
        "# All results\n",
        f"This page is made from `results/` and from `benchmarks/published.py`.\n\n{READ}",
        f"## Lengths\n\n{LENGTHS}",
        "## Accuracy against minutes\n\n![Accuracy against minutes, a panel for each cell.](results.svg)\n",
        "*What to see: whether the mark with the Debiaser is above the one without; higher and further left is "
        "better.* A mark is the mean of a recipe's folds; its line goes from the worst fold to the best. Dotted: the "
        "paper's number, which for FixMatch is mostly copied from other papers.\n",
        "## The paper's cells\n",
        markdown([("cell", "method", "paper", "other numbers", "ours, paper's recipe"), *_paper(found)]),
        *(f"{about(cell)}: {note}\n" for cell, note in NOTES.items()),
        "".join(f"* {name}: {words}.\n" for name, words in SOURCES.items()),
        "All rows of the paper's tables, with commands: [systems](reference/systems.md).\n",
        "## Measured\n",
        markdown([("cell", "method", "recipe", "mean %", "each fold", "minutes"), *measured]),
        "## With the Debiaser and without, fold by fold\n",
        "With the minutes recipe, the first half of a fold is the same for both, bit for bit: pseudo-labels are used "
        f"only after it. With fewer than {MIN_PAIRS} folds nothing is tested: they show what they are.\n",
        markdown([("cell", "recipe", "without", "with", "mean difference", "each fold"), *_pairs(found)]),
        "## Standard long-tail protocols\n",
        "The DebiasPL paper has no numbers for these. Our own are bold, with their folds. They are short runs from a "
        "start (40,000 steps of features on ResNet-9, then 6,000), not the protocol's recipe. Published numbers of the "
        "protocols that we have not run are in `benchmarks/published.py`.\n",
        *(_protocol(*protocol, found) for protocol in protocols() if _has_run(protocol[1], found)),
        "".join(f"* {name}: {words}.\n" for name, words in PROTOCOL_SOURCES.items()),
        "".join(f"* {source}'s {method}: {words}.\n" for (source, method), words in VOID.items()),
        REPEAT,
    ]
    return MARK + "\n".join(parts)


def _paper(found: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for cell, numbers in papers().items():
        others = [one for one in ELSEWHERE if one.cell == cell]
        for method in dict.fromkeys([*numbers, *(one.method for one in others)]):
            own = [row for row in found if (row.cell, row.length, row.method) == (cell, "paper", method)]
            yield (
                about(cell),
                method,
                f"{numbers[method]:.1f}" if method in numbers else "",
                "; ".join(_number(one.accuracy, one.spread, one.source) for one in others if one.method == method),
                "; ".join(_own(row) for row in own) or ("open" if method in numbers else ""),
            )


def _earlier(row: Row) -> bool:
    """Made by a recipe that was changed much since: such a file is a record, and no result of a recipe of today."""
    return "earlier recipe" in row.recipe


def _measured(row: Row) -> tuple[str, ...]:
    shared = f", {row.together} at once" if row.together > 1 else ""
    each = ", ".join(f"{value:.1f}" for value in row.accuracy)
    return row.cell, row.method, row.recipe, f"{fmean(row.accuracy):.1f}", each, f"{row.minutes:.1f}{shared}"


def _pairs(found: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for pair in pairs([row for row in found if not _earlier(row)]):
        means = f"{pair.plain:.1f}", f"{pair.debiased:.1f}", difference(pair)
        yield pair.row.cell, pair.row.recipe, *means, ", ".join(map(points, pair.differences))


def difference(pair: Pair) -> str:
    """The mean difference; from six folds on with its interval and the p value of the sign-flip test."""
    shown = points(fmean(pair.differences))
    if len(pair.differences) < MIN_PAIRS:
        return shown
    low, high = mean_interval(pair.differences, FINEST) or (0.0, 0.0)
    return f"{shown} ({points(low)} to {points(high)}, p = {sign_flip(pair.differences):.2g})"


def protocols() -> list[tuple[str, list[Cell]]]:
    """``500/4000, CIFAR-10`` and its cells."""
    found: dict[str, list[Cell]] = {}
    for cell in CELLS.values():
        if cell.protocol.name == "two-tails":
            sizes = cell.protocol.settings
            title = f"{sizes['labeled_max']}/{sizes['unlabeled_max']}, {cell.data.upper().replace('CIFAR', 'CIFAR-')}"
            found.setdefault(title, []).append(cell)
    return list(found.items())


def _has_run(cells: Sequence[Cell], found: Sequence[Row]) -> bool:
    return bool({cell.name for cell in cells} & {row.cell for row in found})


def _protocol(title: str, cells: Sequence[Cell], found: Sequence[Row]) -> str:
    """Methods by cells."""
    names = {cell.name: cell.name.partition("-g")[2].replace("-", ", ") for cell in cells}
    names = {name: f"g{text}" for name, text in names.items()}
    numbers: dict[str, dict[str, list[str]]] = {}
    for one in PUBLISHED:
        if one.cell in names:
            shown = _number(one.accuracy, one.spread, one.source) + (" (void)" if one.void else "")
            numbers.setdefault(one.method, {}).setdefault(one.cell, []).append(shown)
    for row in found:
        if row.cell in names:
            numbers.setdefault(row.method, {}).setdefault(row.cell, []).append(_own(row))
    lines = [(method, *("; ".join(by_cell.get(cell, ())) for cell in names)) for method, by_cell in numbers.items()]
    return f"### {title}\n\n{markdown([('method', *names.values()), *lines])}"


def _own(row: Row) -> str:
    folds = f"{len(row.accuracy)} fold{'s' if len(row.accuracy) > 1 else ''}"
    return f"**{fmean(row.accuracy):.1f}** ({', '.join([row.recipe, folds])})"


def _number(accuracy: float, spread: float | None, source: str) -> str:
    return f"{accuracy:.1f}{'' if spread is None else f'±{spread:.1f}'} {source}"


def write(folder: Path) -> None:
    found = rows()
    (folder / "results.md").write_text(text(found))
    (folder / "results.svg").write_text(minutes_figure(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs")
    write(parser.parse_args().folder)
