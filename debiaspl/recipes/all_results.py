"""Everything that is printed or measured, in one form: a line for every cell, method and recipe, measured or open, and
the paired difference of DebiasPL and FixMatch wherever both were run on the same folds."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from debiaspl.recipes import RECIPES
from debiaspl.recipes.long_tail import CELLS as LONG_TAIL
from debiaspl.recipes.method_names import ALGORITHMS, CORRECTIONS
from debiaspl.recipes.paper_tables import ELSEWHERE, MORE
from debiaspl.recipes.protocol_table import FOLDER, FROM_START, OURS, ProtocolRow, protocol_rows
from debiaspl.recipes.published import PROTOCOLS
from debiaspl.recipes.results import KINDS, MeasuredRow, described, rows
from debiaspl.recipes.results import METHODS as ENDINGS
from debiaspl.report.intervals import mean_interval

PAPER, STANDARD = "paper", "standard"
RAN = {"paper": "the paper's", "minutes": "ours: minutes", "start": "ours: start"}
"""What a recipe is called, by its kind in ``debiaspl.recipes.results``."""
PROTOCOL = "the protocol's"
OPEN, OTHER, NOT_HERE = "open", "other recipe", "not in debiaspl"
FINEST = 0.01
"""Points: one of 10,000 test images."""


@dataclass(frozen=True)
class Line:
    """One method in one cell, by one recipe."""

    group: str
    """``paper``, or ``standard`` for the standard long-tail protocols."""
    cell: str
    about: str
    method: str
    recipe: str
    """What was run, or would be: the paper's recipe, the protocol's, or one of ours, and what differs from it."""
    paper: float | None
    """The DebiasPL paper's number for this cell and method, whichever recipe we used."""
    others: tuple[str, ...]
    """Numbers of other sources, each with its source."""
    standing: str
    """``open``: not measured. ``reached`` or ``below``: the paper's own recipe beside the paper's number. ``other
    recipe``: measured with another one, so it is neither. ``not in debiaspl``: other sources' alone."""
    command: str
    """Runs it (again)."""
    ran: str = ""
    """Network, algorithm, correction and steps."""
    accuracy: tuple[float, ...] = ()
    """Of each fold, in %."""
    folds: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    together: int = 1
    gpu: str | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean: Student's t, 95 %; None for fewer than two folds."""
        return mean_interval(self.accuracy, FINEST)

    @property
    def minutes(self) -> float | None:
        """Mean of a fold's whole process."""
        return fmean(self.seconds) / 60 if self.seconds else None


@dataclass(frozen=True)
class Pair:
    """FixMatch and DebiasPL by one recipe, on the same folds."""

    cell: str
    about: str
    recipe: str
    folds: tuple[int, ...]
    fixmatch: float
    debiaspl: float
    differences: tuple[float, ...]
    """DebiasPL - FixMatch, in points, of each fold."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean difference: Student's t, 95 %; None for one fold."""
        return mean_interval(self.differences, FINEST)

    @property
    def verdict(self) -> str:
        if self.interval is None:
            return "not tested with one fold"
        low, high = self.interval
        return "DebiasPL better" if low > 0 else "FixMatch better" if high < 0 else "not significant"


def all_lines(places: Sequence[Path], standard: Path | None) -> list[Line]:
    """Every cell of the paper, then every cell of the standard protocols; ``places`` are results/gain and the like,
    ``standard`` is results/long-tail."""
    return [*(_of_paper(row) for row in rows(*places)), *_more(), *_standard(standard)]


def _of_paper(row: MeasuredRow) -> Line:
    method, _, changed = row.method.partition(", ")
    ran = f"{RAN[row.recipe]}, {changed}" if changed else RAN[row.recipe]
    name = row.cell + KINDS[row.recipe] + ENDINGS.get(method, "")
    others = tuple(
        _number(one.accuracy, one.spread, one.source)
        for one in ELSEWHERE
        if (one.cell, one.method) == (row.cell, method)
    )
    own = row.recipe == "paper" and not changed
    standing = OPEN if not row.accuracy else row.standing if own else OTHER if row.paper is not None else ""
    return Line(
        PAPER,
        row.cell,
        about(row.cell),
        method,
        ran,
        row.paper,
        others,
        standing,
        _command(row.file, name),
        row.ran or described(RECIPES[name]),
        row.accuracy,
        row.folds,
        row.seconds,
        row.together,
        row.gpu,
    )


def _more() -> Iterator[Line]:
    for more in MORE:
        ran = described(RECIPES[more.recipe].with_settings(more.settings))
        yield Line(PAPER, more.recipe, more.about, more.method, RAN["paper"], more.paper, (), OPEN, more.command, ran)


def _standard(folder: Path | None) -> Iterator[Line]:
    found = [row for protocol in PROTOCOLS for row in protocol_rows(protocol, folder)]
    for cell in LONG_TAIL:
        here = [row for row in found if row.cell == cell.name]
        names = dict.fromkeys([*(row.method for row in here), "FixMatch", "DebiasPL"])
        for method in names:
            others = tuple(
                _number(row.accuracy, row.spread, row.source)
                for row in here
                if row.method == method and row.source != OURS
            )
            yield from _standard_lines(cell.name, method, others, [row for row in here if row.method == method])


def _standard_lines(cell: str, method: str, others: tuple[str, ...], here: list[ProtocolRow]) -> Iterator[Line]:
    own = [row for row in here if row.source == OURS]
    for row in own:
        changed = row.where.split(", ")[:-1]  # the last is the number of folds
        begun = changed[:1] == [FROM_START]
        ran = ", ".join([RAN["start"], *changed[1:]] if begun else [PROTOCOL, *changed])
        measured = row.ran, row.folds, row.numbers, row.seconds, row.together, row.gpu
        yield Line(STANDARD, cell, about(cell), method, ran, None, others, "", _command(row.file, cell), *measured)
    if not own:
        typed = _typed(cell, method)
        standing, ran = (OPEN, PROTOCOL) if typed else (NOT_HERE, "")
        settings = [part for part in typed.split() if "=" in part]
        what = described(RECIPES[typed.split()[3]].with_settings(settings)) if typed else ""
        yield Line(STANDARD, cell, about(cell), method, ran, None, others, standing, typed, what)


def _typed(cell: str, method: str) -> str:
    """The command of a method that debiaspl has, or nothing."""
    train = f"debiaspl train --recipe {cell}"
    if method in ("DebiasPL", "FixMatch"):
        return train + ENDINGS[method]
    for part, names in (("algorithm", ALGORITHMS), ("correction", CORRECTIONS)):
        for name, title in names.items():
            if title == method:
                return f"{train}{'-fixmatch' if part == 'algorithm' else ''} --set {part}={name}"
    return ""


def about(cell: str) -> str:
    """A cell in words."""
    known = {one.name: one.about for one in LONG_TAIL}
    return known.get(cell) or RECIPES[cell].about.rpartition(": ")[0]


def _number(accuracy: float, spread: float | None, source: str) -> str:
    return f"{accuracy:.1f}{'' if spread is None else f' ± {spread:.1f}'} {source}"


def _command(file: str | None, name: str) -> str:
    """Of a result file, to repeat it; of what is open, to run it."""
    if file is None:
        return f"debiaspl train --recipe {name}"
    here = os.path.relpath(file)
    return f"debiaspl repeat {shlex.quote(file if here.startswith('..') else here)}"


def all_pairs(lines: Sequence[Line]) -> list[Pair]:
    """DebiasPL and FixMatch wherever both were measured, on the folds that both have. What is set of the correction
    alone, such as its strength, FixMatch does not have: then DebiasPL stands beside plain FixMatch."""
    plain = {(line.cell, line.recipe): line for line in lines if line.method == "FixMatch" and line.accuracy}
    return [
        pair
        for line in lines
        if line.method == "DebiasPL" and line.accuracy
        for other in [plain.get((line.cell, _without_correction(line)))]
        if other is not None and (pair := _pair(line, other)).folds
    ]


def _without_correction(line: Line) -> str:
    first, *changes = line.recipe.split(", ")
    recipe = RECIPES[line.cell]
    return ", ".join([first, *(one for one in changes if recipe.owner(one.partition("=")[0]) != "correction")])


def _pair(debiased: Line, plain: Line) -> Pair:
    ours = dict(zip(debiased.folds, debiased.accuracy, strict=True))
    theirs = dict(zip(plain.folds, plain.accuracy, strict=True))
    folds = tuple(fold for fold in ours if fold in theirs)
    return Pair(
        debiased.cell,
        debiased.about,
        debiased.recipe,
        folds,
        fmean(theirs[fold] for fold in folds) if folds else 0.0,
        fmean(ours[fold] for fold in folds) if folds else 0.0,
        tuple(round(ours[fold] - theirs[fold], 2) for fold in folds),
    )


def standard_folder(places: Sequence[Path]) -> Path | None:
    """results/long-tail, beside the first of these."""
    return next((place.parent / FOLDER for place in places[:1]), None)
