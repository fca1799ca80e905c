"""``debiaspl results --page docs/results.md``: all results as Markdown, which is that page of the docs."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from debiaspl.recipes.all_results import OPEN, PAPER, PROTOCOL, RAN, STANDARD, Line, Pair, all_pairs
from debiaspl.recipes.long_tail import CELLS as LONG_TAIL
from debiaspl.recipes.paper_tables import NOTES, SOURCES
from debiaspl.recipes.published import PROTOCOLS
from debiaspl.recipes.published import SOURCES as PROTOCOL_SOURCES
from debiaspl.recipes.results import METHODS
from debiaspl.recipes.results_page import READ, RECIPE_WORDS, SHARED, TITLE, each_fold
from debiaspl.report.over_seeds import markdown

MARK = "<!-- made by: debiaspl results --page docs/results.md --overwrite -->\n"
"""The first line of the Markdown."""
REPEAT = """## Repeat a result

    debiaspl repeat results/start/cifar10-40/cifar10-40-start.json             # all recorded folds
    debiaspl repeat results/start/cifar10-40/cifar10-40-start.json --fold 3    # one of them
    debiaspl repeat results/start/cifar10-40/cifar10-40-start.json --fold 3 --set steps=20 --set-start steps=20

It trains the recipe that the file records, with each fold as the seed; if the file has the command of a start, the
start is trained first. Then it prints the recorded and the new number of each fold, and whether the new one lies within
the interval that contains 95 % of further runs: m ± t s √(1 + 1/n), for n recorded folds with mean m and standard
deviation s. A file with one fold has no such interval; both numbers are printed. With settings that change what is
computed, as in the third line, numbers are not compared. `--set start=RUN` uses a start that exists already. Another
GPU or version of PyTorch rounds differently, so a fold does not give exactly the same number again; the commit,
versions and device of the recorded runs are in the file. `results.json` of any run can be repeated too.
"""


def text(lines: Sequence[Line], figure: str = "results.svg") -> str:
    """docs/results.md; ``figure`` is the file of ``minutes_figure``."""
    known = [line for line in lines if line.accuracy]
    parts = [
        f"# {TITLE}\n",
        "This page is made from `results/` and from the tables in `debiaspl/recipes`. The same with filters, every "
        "open cell, the commands and a chart of accuracy against minutes, as one file that works offline:\n\n"
        "    debiaspl results --page results.html\n",
        f"{READ}\n",
        "## Recipes\n",
        "".join(f"* **{name}**: {words}\n" for name, words in RECIPE_WORDS.items()),
        f"## Accuracy against minutes\n\n![Accuracy against minutes, a panel for each cell.]({figure})\n",
        "*What to see: whether a recipe's DebiasPL mark is above its FixMatch mark; higher and further left is "
        "better.* A mark is the mean of a recipe's folds; its line goes from the worst fold to the best. Dotted: the "
        "paper's number, which for FixMatch is mostly copied from other papers.\n",
        "## The paper's cells\n",
        "Measured rows. Paper is the paper's number for the cell and method, whichever recipe we used; only rows with "
        "the paper's recipe are called reached or below. Open cells of the paper: "
        f"{_open(lines)}; the HTML page lists them, each with its command.\n",
        markdown([_HEADER, *(_cells(line) for line in known if line.group == PAPER)]),
        "".join(f"\n{note}\n" for note in _notes(known)),
        "## DebiasPL against FixMatch, fold by fold\n",
        f"{SHARED}\n",
        markdown([_PAIRS, *(_pair_cells(pair) for pair in all_pairs(lines))]),
        "## What others report for the paper's cells\n",
        markdown([("cell", "method", "the paper", "other numbers"), *_elsewhere(lines)]),
        "".join(f"* {name}: {words}.\n" for name, words in SOURCES.items()),
        "## Standard long-tail protocols\n",
        "The DebiasPL paper has no numbers for these. Open: a recipe of FixMatch or DebiasPL that was not measured. "
        "Our own numbers have their folds in brackets.\n",
        *(_protocol(protocol, lines) for protocol in PROTOCOLS),
        "".join(f"* {name}: {words}.\n" for name, words in PROTOCOL_SOURCES.items()),
        REPEAT,
    ]
    return MARK + "\n".join(parts)


_HEADER = ("cell", "method", "recipe", "paper %", "ours %", "t interval", "folds", "worst fold", "minutes", "")
_PAIRS = ("cell", "recipe", "folds", "FixMatch", "DebiasPL", "mean difference", "t interval", "each fold", "")


def _cells(line: Line) -> tuple[str, ...]:
    shared = f", {line.together} at once" if line.together > 1 else ""
    return (
        line.about,
        line.method,
        line.recipe,
        "-" if line.paper is None else f"{line.paper:.1f}",
        f"{fmean(line.accuracy):.1f}",
        _between(line.interval, ".1f"),
        str(len(line.accuracy)),
        f"{min(line.accuracy):.1f}",
        "-" if line.minutes is None else f"{line.minutes:.1f}{shared}",
        line.standing,
    )


def _pair_cells(pair: Pair) -> tuple[str, ...]:
    return (
        pair.about,
        pair.recipe,
        str(len(pair.folds)),
        f"{pair.fixmatch:.1f}",
        f"{pair.debiaspl:.1f}",
        f"{fmean(pair.differences):+.1f}",
        _between(pair.interval, "+.1f"),
        each_fold(pair),
        pair.verdict,
    )


def _between(interval: tuple[float, float] | None, form: str) -> str:
    return "-" if interval is None else f"{interval[0]:{form}} to {interval[1]:{form}}"


def _notes(lines: Sequence[Line]) -> Iterator[str]:
    for cell, note in NOTES.items():
        for line in lines:
            if line.cell == cell:
                yield f"{line.about}: {note}"
                break


def _open(lines: Sequence[Line]) -> str:
    count = sum(line.group == PAPER and line.standing == OPEN and line.recipe == RAN["paper"] for line in lines)
    return f"{count} by the paper's own recipe"


def _elsewhere(lines: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    for line in lines:
        if line.group == PAPER and line.others and line.recipe == RAN["paper"]:
            yield line.about, line.method, f"{line.paper:.1f}", "; ".join(line.others)


def _protocol(protocol: str, lines: Sequence[Line]) -> str:
    """Methods by cells, of one N1/M1."""
    names = {
        cell.name: f"g{cell.gamma}{'' if cell.unlabeled == 'consistent' else f', {cell.unlabeled}'}"
        for cell in LONG_TAIL
        if f"{cell.labeled_max}/{cell.unlabeled_max}" == protocol
    }
    here = [line for line in lines if line.group == STANDARD and line.cell in names]
    methods = dict.fromkeys(line.method for line in here)
    table = [("method", *names.values())]
    table += [
        (
            method,
            *(
                "; ".join(_in_cell([line for line in here if (line.cell, line.method) == (cell, method)]))
                for cell in names
            ),
        )
        for method in methods
    ]
    return f"### {protocol}, {PROTOCOLS[protocol].upper().replace('CIFAR', 'CIFAR-')}\n\n{markdown(table)}"


def _in_cell(lines: list[Line]) -> Iterator[str]:
    yield from (lines[0].others if lines else ())
    for line in lines:
        if line.accuracy:
            ours = f"ours{line.recipe.removeprefix(PROTOCOL)}" if line.recipe.startswith(PROTOCOL) else line.recipe
            folds = f"{len(line.accuracy)} fold{'s' if len(line.accuracy) > 1 else ''}"
            yield f"**{fmean(line.accuracy):.1f}** ({ours}, {folds})"
        elif line.standing == OPEN and line.method in METHODS:
            yield "open"
