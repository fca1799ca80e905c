"""docs/demo.md: what it says of the demo, compared with what was measured."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl.recipes.demo import BALANCED
from debiaspl.report import Comparison
from debiaspl.report.intervals import mean_interval
from debiaspl.training import Recipe
from debiaspl.training.monitor import true_counts
from debiaspl.training.tasks import task_of
from tests.report.stored import comparison_of

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "demo.md").read_text()


def gains(folder: str) -> list[float]:
    """Of DebiasPL over FixMatch in points, a seed each, as recorded."""
    written = json.loads((ROOT / "results" / folder / "results.json").read_text())
    return [100 * value for value in written["methods"]["DebiasPL"]["difference"]["per_seed"]]


TEN, TAIL = (
    [gains(folder) for folder in (f"demo-{name}", f"demo-range/default{end}", f"demo-range/avx2{end}")]
    for name, end in (("10-seeds", ""), ("long-tail", "-long-tail"))
)
"""With the vector instructions of the machine that recorded the tables, and with two other sets."""


def stored(folder: str) -> Comparison:
    """A demo again. The true classes of its images, which its file does not tell, are those that its recipe gives."""
    values = json.loads((ROOT / "results" / folder / "results.json").read_text())
    recipe = Recipe.from_json(values["recipe"])
    return comparison_of(
        values, [true_counts(task_of(replace(recipe, seed=seed)).unlabeled) for seed in values["seeds"]]
    )


@pytest.mark.parametrize("folder", ["demo", "demo-10-seeds", "demo-long-tail"])
def test_the_table_is_what_was_measured(folder):
    table = stored(folder).to_markdown()
    assert (ROOT / "results" / folder / "table.md").read_text() == table
    if folder == "demo":  # four seeds of the ten
        low, high = mean_interval(gains(folder))
        assert f"not significant (95 % interval {low:+.1f} to {high:+.1f})" in " ".join(PAGE.split())
    else:
        assert f"<!-- table {folder} -->\n\n{table}\n" in PAGE


def test_the_long_tail_of_the_demo_says_what_it_does_not_show():
    """Neither a gain over the supervised baseline nor a better worst class."""
    words, shown = " ".join(PAGE.split()), []
    for folder in ("demo-long-tail", "demo-range/default-long-tail", "demo-range/avx2-long-tail"):
        methods = json.loads((ROOT / "results" / folder / "results.json").read_text())["methods"]
        ours, labels = (methods[name]["accuracy"]["per_seed"] for name in ("DebiasPL", "supervised"))
        gains = [100 * (own - other) for own, other in zip(ours, labels, strict=True)]
        low, high = mean_interval(gains)
        assert low < 0 < high
        worst = [f"{100 * methods[name]['worst_recall']['mean']:.1f} %" for name in ("DebiasPL", "supervised")]
        shown.append((", ".join(f"{gain:+.1f}" for gain in gains), f"{low:+.1f} to {high:+.1f}", *worst))
    here, *others = shown
    assert f"by seed {here[0]} points (95 % interval {here[1]}) here, {others[0][0]} and {others[1][0]} with" in words
    assert f"Its worst class is worse than the baseline's, {here[2]} against {here[3]}" in words


def test_what_varies_between_processors_is_what_was_measured():
    """The sentence holds for every set of vector instructions; the quoted tables are one of them."""
    words, first = " ".join(PAGE.split()), [each[:4] for each in TEN]
    moved = max(max(seed) - min(seed) for seed in zip(*TEN, strict=True))
    for name, each in zip(("AVX512, the table above", "DEFAULT", "AVX2"), TEN, strict=True):
        assert f"{name}: {in_words(each, ' points (95 % interval ')}, worst seed {min(each):+.1f}" in words
    assert f"Over the first four it gains {spread(first)} points" in words
    assert f"better on {most_and_least(TEN)} of 10" in words
    assert f"better on {most_and_least(first)} of 4" in words
    assert f"moves by up to {moved:.1f} points" in words
    shown = zip(("AVX512", "DEFAULT", "AVX2"), TAIL, (" (", " (", " points ("), strict=True)
    tail = ", ".join(
        f"{name} {in_words(each, between)}"
        for name, each, between in sorted(shown, key=lambda row: statistics.fmean(row[1]))
    )
    assert f"better on {most_and_least(TAIL)} of 4 with each set of vector instructions: {tail}" in words


def test_fixmatch_on_the_long_tail_of_the_demo_is_below_the_baseline_but_not_everywhere_significantly():
    found = {}
    for folder in ("demo-long-tail", "demo-range/default-long-tail", "demo-range/avx2-long-tail"):
        methods = json.loads((ROOT / "results" / folder / "results.json").read_text())["methods"]
        labels, plain = (methods[name]["accuracy"]["per_seed"] for name in ("supervised", "FixMatch"))
        found[folder] = [100 * (one - other) for one, other in zip(labels, plain, strict=True)]
    assert min(map(statistics.fmean, found.values())) > 0
    (open_,) = [name for name, each in found.items() if mean_interval(each)[0] < 0]
    assert open_ == "demo-range/avx2-long-tail"
    low, high = mean_interval(found[open_])
    mean = statistics.fmean(found[open_])
    said = f"with AVX2 not significantly ({mean:.1f} points, 95 % interval {low:+.1f} to {high:+.1f})"
    assert said in " ".join(PAGE.split())


def in_words(each: list[float], between: str) -> str:
    """A mean gain and its interval."""
    low, high = mean_interval(each)
    doubt = ", not significant" if low <= 0 <= high else ""
    return f"{statistics.fmean(each):.1f}{between}{low:+.1f} to {high:+.1f}{doubt})"


def spread(runs: list[list[float]]) -> str:
    means = [statistics.fmean(each) for each in runs]
    return f"{min(means):.1f} to {max(means):.1f}"


def most_and_least(runs: list[list[float]]) -> str:
    better = sorted({sum(value > 0 for value in each) for each in runs})
    return str(better[0]) if len(better) == 1 else f"{better[0]} to {better[-1]}"


def test_the_choice_of_settings_is_what_was_measured():
    chosen, other = (
        json.loads((ROOT / "results" / "demo-settings" / f"threshold-{value}.json").read_text())
        for value in (0.95, 0.6)
    )
    count, words = len(other["seeds"]), " ".join(PAGE.split())
    assert chosen["seeds"] == list(range(100, 116))
    assert chosen["seeds"][:count] == other["seeds"]
    least = {method: 100 * min(values) for method, values in chosen["gain"].items()}
    assert max(least, key=lambda method: least[method]) == "strength 2"
    assert f"the largest gain on its worst seed, {least['strength 2']:.1f} points" in words
    for method in ("FixMatch", "strength 2"):
        ours, theirs = (100 * statistics.fmean(one["accuracy"][method][:count]) for one in (chosen, other))
        assert f"{theirs:.1f} % instead of {ours:.1f} %" in words
    assert BALANCED.correction.settings == {"strength": 2}
