"""Accuracy against minutes, with the Debiaser and without, in every measured cell: docs/results.svg.

Written by hand, so that the same results give the same bytes on every machine: a test compares them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from statistics import fmean

from benchmarks.results import Row, about, papers

COLOURS = {"without": "#0072b2", "with the Debiaser": "#d55e00"}
METHODS = {"FixMatch": "without", "contrastmatch": "without"}
METHODS |= dict.fromkeys(("DebiasPL", "contrastmatch+debiaser"), "with the Debiaser")
COLUMNS, WIDTH, HEIGHT = 2, 430, 250
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 40, 44
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)


def minutes_figure(found: Sequence[Row]) -> str:
    """A panel for every cell, one mark for the mean of every recipe, a line from its worst fold to its best."""
    cells: dict[str, list[Row]] = {}
    for row in found:
        if row.method in METHODS:
            cells.setdefault(row.cell, []).append(row)
    height = math.ceil(len(cells) / COLUMNS) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * WIDTH}" height="{height}" '
        f'viewBox="0 0 {COLUMNS * WIDTH} {height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, (cell, rows) in enumerate(cells.items()):
        parts.append(f'<g transform="translate({place % COLUMNS * WIDTH} {place // COLUMNS * HEIGHT})">')
        parts += [*_panel(cell, rows), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(cell: str, rows: list[Row]) -> Iterator[str]:
    paper = papers().get(cell, {})
    values = [*(value for row in rows for value in row.accuracy), *paper.values()]
    low, high = 5 * math.floor(min(values) / 5), min(5 * math.ceil((max(values) + 1) / 5), 100)
    times = [row.minutes for row in rows]
    first, last = min(*times, 1.0) / 1.15, max(*times, 2.0) * 1.15

    def x(minutes: float) -> float:
        return LEFT + math.log(minutes / first) / math.log(last / first) * (WIDTH - LEFT - RIGHT)

    def y(accuracy: float) -> float:
        return TOP + (high - accuracy) / (high - low) * (HEIGHT - TOP - BOTTOM)

    yield text(6, 16, about(cell), "start", ' font-weight="bold"')
    for tick in range(low, high + 1, 5 if high - low <= 25 else 10):
        yield rule(LEFT, WIDTH - RIGHT, y(tick), 'stroke="#d3d9df"')
        yield text(LEFT - 6, y(tick) + 4, str(tick), "end")
    for minute in TICKS:
        if first <= minute <= last:
            yield text(x(minute), HEIGHT - BOTTOM + 16, f"{minute:g}", "middle")
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "minutes a fold; accuracy in %", "middle")
    for method, number in paper.items():
        yield rule(LEFT, WIDTH - RIGHT, y(number), f'stroke="{COLOURS[METHODS[method]]}" stroke-dasharray="2 3"')
        at, anchor = (LEFT + 2, "start") if method == "FixMatch" else (WIDTH - RIGHT, "end")
        yield text(at, y(number) - 4, f"paper: {method} {number:.1f}", anchor)
    for row in rows:
        yield from _mark(row, x(row.minutes), y)
    for place, (method, colour) in enumerate(COLOURS.items()):
        yield f'<circle cx="{LEFT + 5 + 90 * place}" cy="28" r="4" fill="{colour}"/>'
        yield text(LEFT + 13 + 90 * place, 32, method, "start")


def _mark(row: Row, at: float, y: Callable[[float], float]) -> Iterator[str]:
    colour = COLOURS[METHODS[row.method]]
    top, bottom = y(max(row.accuracy)), y(min(row.accuracy))
    label = escape(f"{row.method}, {row.recipe}: {fmean(row.accuracy):.1f} %, {len(row.accuracy)} folds")
    yield f'<path d="M{at:.1f} {top:.1f}V{bottom:.1f}" stroke="{colour}" stroke-width="2" stroke-opacity="0.5"/>'
    middle = y(fmean(row.accuracy))
    yield f'<circle cx="{at:.1f}" cy="{middle:.1f}" r="4" fill="{colour}"><title>{label}</title></circle>'


def text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#1a1f26"{more}>{escape(text)}</text>'


def rule(left: float, right: float, at: float, look: str) -> str:
    return f'<path d="M{left} {at:.1f}H{right}" {look}/>'
