"""``debiaspl results --protocol 500/4000``: published numbers and our own, one table for one N1/M1."""

from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from textwrap import wrap
from typing import Any

from debiaspl.recipes.long_tail import CELLS, Cell
from debiaspl.recipes.method_names import DEBIASPL, FIXMATCH, MARGINS, MARGINS_WORDS, method_name
from debiaspl.recipes.published import PROTOCOLS, PUBLISHED, SOURCES
from debiaspl.recipes.result_files import SEARCH, json_files, read_result, shown_path
from debiaspl.recipes.results import changes, checked, described, fold_numbers
from debiaspl.training import Recipe, RunError

FOLDER = "long-tail"
"""Of results/, for runs of ``debiaspl.recipes.long_tail``."""
OURS = "ours"
FROM_START = "from a start"
"""What ``where`` says first of our short recipes."""
FROM_START_WORDS = (
    "our short recipe, not the protocol's: features learned without labels on ResNet-9 (40,000 steps), then FixMatch "
    "with a contrast (contrastmatch, 6,000 steps; ABC has no contrast). Settings are those of a similar long tail, 100 "
    "to 1 and 10 % labeled; none was searched here"
)
FIRST = (FIXMATCH, DEBIASPL)
"""Of our own rows."""
SHORT = {"consistent": "", "uniform": "unif.", "reversed": "rev."}
METHOD_COLUMNS = 24


@dataclass(frozen=True)
class ProtocolRow:
    """A number of a cell, published or our own."""

    cell: str
    method: str
    accuracy: float
    """Mean, in %."""
    source: str
    """A key of ``published.SOURCES``, or ``ours``."""
    where: str
    """The table that it is from; for our own, what differs from the recipe, and the number of folds."""
    spread: float | None = None
    """Published standard deviation."""
    folds: tuple[float, ...] = ()
    """Of our own, each in %."""
    numbers: tuple[int, ...] = ()
    """The seed of each fold."""
    seconds: tuple[float, ...] = ()
    """Of each fold, from the start of its process to its end."""
    together: int = 1
    """Runs that shared the GPU."""
    gpu: str | None = None
    file: str | None = None
    """Where our own were read."""
    ran: str = ""
    """What was run, in words."""


def cells_of(protocol: str) -> list[Cell]:
    """The cells of N1/M1."""
    found = [cell for cell in CELLS if f"{cell.labeled_max}/{cell.unlabeled_max}" == protocol]
    if not found:
        raise RunError(f"there is no protocol {protocol!r}. Expected N1/M1, one of {', '.join(PROTOCOLS)}.")
    return found


def protocol_rows(protocol: str, folder: Path | None) -> list[ProtocolRow]:
    """Published rows, then our own from this folder: ``*.json`` and ``*/*.json``, as benchmarks/gain.py writes them."""
    names = {cell.name for cell in cells_of(protocol)}
    found = [
        ProtocolRow(row.cell, row.method, row.accuracy, row.source, row.table, row.spread)
        for row in PUBLISHED
        if row.cell in names
    ]
    paths = [] if folder is None else json_files(folder)
    own = [_own(path) for path in paths if SEARCH not in path.stem]
    here = [row for row in own if row.cell in names]
    order = {method: place for place, method in enumerate(FIRST)}
    return found + sorted(here, key=lambda row: (order.get(row.method, 2), row.method, row.where, row.cell))


def _own(path: Path) -> ProtocolRow:
    try:
        measured: dict[str, Any] = read_result(path)
        checked(measured)
        recipe = Recipe.from_json(measured["recipe"])
        cell = recipe.name.removesuffix("-fixmatch").removesuffix("-start")
        if cell not in {cell.name for cell in CELLS}:
            raise ValueError(f"{recipe.name} is not a recipe of a standard long-tail protocol")
        settings = [setting for setting in measured["command"].split() if "=" in setting]
        apart = [
            text for text in changes(recipe, settings) if text.partition("=")[0] not in ("algorithm", "correction")
        ]
        folds = tuple(round(100 * fold["accuracy"], 2) for fold in measured["folds"])
        number = f"{len(folds)} fold{'s' if len(folds) > 1 else ''}"
        begun = [FROM_START] if recipe.start else []
        return ProtocolRow(
            cell,
            method_name(recipe),
            mean(folds),
            OURS,
            ", ".join([*begun, *apart, number]),
            folds=folds,
            numbers=fold_numbers(measured["folds"]),
            seconds=tuple(fold["seconds"] for fold in measured["folds"]),
            together=measured["together"],
            gpu=measured["device"],
            file=shown_path(path),
            ran=described(recipe),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        told = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RunError(
            f"{path} cannot be read as results of benchmarks/gain.py on a standard long-tail protocol: {told}. "
            "Measure it again, or remove it."
        ) from error


def protocol_table(protocol: str, found: list[ProtocolRow]) -> tuple[list[str], list[list[str]], list[str]]:
    """Header, lines and notes of a printed table of at most 80 columns: a line for each method of a source, a column
    for each cell that has a number. Cells of header and lines may have several lines themselves."""
    names = {row.cell for row in found}
    shown = [cell for cell in cells_of(protocol) if cell.name in names]
    of: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in found:
        key = row.source, row.method, row.where if row.source == OURS else ""
        of.setdefault(key, {})[row.cell] = f"{row.accuracy:.1f}"
    variants = sorted({where for source, _, where in of if source == OURS})
    for method in FIRST:
        if (OURS, method) not in {(source, known) for source, known, _ in of}:
            of[OURS, method, ""] = {cell.name: "open" for cell in shown}
    lines = [
        [
            "\n".join(wrap(method, METHOD_COLUMNS, break_on_hyphens=False)),
            *(numbers.get(cell.name, "") for cell in shown),
            f"{source} {variants.index(where) + 1}" if where else source,
        ]
        for (source, method, where), numbers in of.items()
    ]
    header = ["method", *(f"g{cell.gamma}\n{SHORT[cell.unlabeled]}" for cell in shown), "source"]
    notes = [f"{source}: {about}." for source, about in SOURCES.items() if any(row.source == source for row in found)]
    notes += [f"{OURS} {number}: {where}." for number, where in enumerate(variants, start=1)]
    if any(where.startswith(FROM_START) for where in variants):
        notes.append(f"{FROM_START}: {FROM_START_WORDS}.")
    if any(MARGINS in method for _, method, _ in of):
        notes.append(f"{MARGINS_WORDS}.")
    if any("open" in numbers.values() for numbers in of.values()):
        notes.append(f"open: not measured. To run one: debiaspl train --recipe {shown[0].name}")
    return header, lines, notes
