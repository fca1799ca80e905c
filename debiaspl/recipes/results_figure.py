"""Accuracy against minutes, of FixMatch and DebiasPL in every cell that was measured, as an SVG beside docs/results.md.

Written by hand, so that the same results give the same bytes on every machine: a test compares them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from statistics import fmean

from debiaspl.recipes.all_results import Line

COLOURS = {"FixMatch": "#0072b2", "DebiasPL": "#d55e00"}
COLUMNS, WIDTH, HEIGHT = 2, 430, 250
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 40, 44
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200)


def minutes_figure(lines: Sequence[Line]) -> str:
    """A panel for every cell, one mark for the mean of every recipe, a line from its worst fold to its best."""
    cells: dict[str, list[Line]] = {}
    for line in lines:
        if line.method in COLOURS and line.minutes:
            cells.setdefault(line.about, []).append(line)
    height = math.ceil(len(cells) / COLUMNS) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * WIDTH}" height="{height}" '
        f'viewBox="0 0 {COLUMNS * WIDTH} {height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, (about, found) in enumerate(cells.items()):
        parts.append(f'<g transform="translate({place % COLUMNS * WIDTH} {place // COLUMNS * HEIGHT})">')
        parts += [*_panel(about, found), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(about: str, lines: list[Line]) -> Iterator[str]:
    papers = {line.method: line.paper for line in lines if line.paper is not None}
    values = [*(value for line in lines for value in line.accuracy), *papers.values()]
    low, high = 5 * math.floor(min(values) / 5), min(5 * math.ceil((max(values) + 1) / 5), 100)
    times = [line.minutes for line in lines if line.minutes]
    first, last = min(*times, 1.0) / 1.15, max(*times, 2.0) * 1.15

    def x(minutes: float) -> float:
        return LEFT + math.log(minutes / first) / math.log(last / first) * (WIDTH - LEFT - RIGHT)

    def y(accuracy: float) -> float:
        return TOP + (high - accuracy) / (high - low) * (HEIGHT - TOP - BOTTOM)

    yield _text(6, 16, about, "start", ' font-weight="bold"')
    for tick in range(low, high + 1, 5 if high - low <= 25 else 10):
        yield _rule(LEFT, WIDTH - RIGHT, y(tick), 'stroke="#d3d9df"')
        yield _text(LEFT - 6, y(tick) + 4, str(tick), "end")
    for minute in TICKS:
        if first <= minute <= last:
            yield _text(x(minute), HEIGHT - BOTTOM + 16, f"{minute:g}", "middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "minutes a fold; accuracy in %", "middle")
    for method, paper in papers.items():
        yield _rule(LEFT, WIDTH - RIGHT, y(paper), f'stroke="{COLOURS[method]}" stroke-dasharray="2 3"')
        at, anchor = (LEFT + 2, "start") if method == "FixMatch" else (WIDTH - RIGHT, "end")
        yield _text(at, y(paper) - 4, f"paper: {method} {paper:.1f}", anchor)
    for line in lines:
        yield from _mark(line, x(line.minutes or 1), y)
    for place, (method, colour) in enumerate(COLOURS.items()):
        yield f'<circle cx="{LEFT + 5 + 90 * place}" cy="28" r="4" fill="{colour}"/>'
        yield _text(LEFT + 13 + 90 * place, 32, method, "start")


def _mark(line: Line, at: float, y: Callable[[float], float]) -> Iterator[str]:
    colour = COLOURS[line.method]
    top, bottom = y(max(line.accuracy)), y(min(line.accuracy))
    told = escape(f"{line.method}, {line.recipe}: {fmean(line.accuracy):.1f} %, {len(line.accuracy)} folds")
    yield f'<path d="M{at:.1f} {top:.1f}V{bottom:.1f}" stroke="{colour}" stroke-width="2" stroke-opacity="0.5"/>'
    middle = y(fmean(line.accuracy))
    yield f'<circle cx="{at:.1f}" cy="{middle:.1f}" r="4" fill="{colour}"><title>{told}</title></circle>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#1a1f26"{more}>{escape(text)}</text>'


def _rule(left: float, right: float, at: float, look: str) -> str:
    return f'<path d="M{left} {at:.1f}H{right}" {look}/>'
