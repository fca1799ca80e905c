"""benchmarks/tables.py: pages show its tables, and what they say of them holds."""

import json
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchmarks.tables import RESULTS, TABLES, accuracies, compared, read

DOCS = Path(__file__).parent.parent.parent / "docs"


def page(name: str) -> str:
    (path,) = DOCS.rglob(name)  # pages may be sorted into folders
    return path.read_text()


def words(name: str) -> str:
    return " ".join(page(name).split())


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_pages_show_the_tables_that_the_results_give(name, table):
    assert f"<!-- table {table} -->\n\n{TABLES[name, table]()}\n" in page(name)


def test_a_difference_is_that_of_a_paired_t_test():
    ours, theirs = np.random.default_rng(0).normal(0.8, 0.05, (2, 6))
    low, high = ttest_rel(ours, theirs).confidence_interval(0.95)
    doubt = " n.s." if low <= 0 <= high else ""
    shown = f"{100 * (ours - theirs).mean():+.1f} ({100 * low:+.1f} to {100 * high:+.1f}){doubt}"
    better = f"{(ours > theirs).sum()} of 6"
    assert compared(ours, theirs) == [shown, f"{100 * (ours - theirs).min():+.1f}", better]


def test_seeds_that_all_differ_by_one_image_prove_nothing():
    assert compared([0.501] * 3, [0.5] * 3, finest=0.001)[0].endswith("n.s.")


def thresholds(name: str) -> dict[tuple[str, float], list[float]]:
    cells = read(f"thresholds/{name}.json")["cells"]
    return {(cell["variant"], cell["threshold"]): accuracies(cell["runs"]) for cell in cells}


def told(ours: list[float], theirs: list[float], form: str = "{mean} points ({interval})") -> str:
    shown, *_ = compared(ours, theirs)
    value, _, interval = shown.removesuffix(" n.s.").partition(" (")
    return form.format(mean=value, interval=interval.rstrip(")"))


def test_what_is_said_of_thresholds_holds():
    said = words("debiasing.md")
    one, tail = thresholds("digits-10"), thresholds("digits-lt20-10pct")
    each = 0.5, 0.8, 0.95, 0.99
    for cells in (one, tail):
        gains = [compared(cells["strength 0.5", value], cells["none", value])[0] for value in each]
        assert not [gain for gain in gains if gain.endswith("n.s.")]
        assert max(mean(cells["none", value]) for value in each) == mean(cells["none", 0.5])
        assert mean(cells["strength 0.5", 0.95]) > mean(cells["none", 0.5])
    assert told(tail["strength 0.5", 0.95], tail["none", 0.5]) in said
    form = "not significant with one label a class ({mean}, {interval})"
    assert told(one["strength 0.5", 0.95], one["none", 0.5], form) in said
    after, before = "strength 0.5", "strength 0.5, before"
    kept = {value: compared(tail[after, value], tail[before, value])[0] for value in each}
    assert [value for value, shown in kept.items() if not shown.endswith("n.s.")] == [0.8]
    assert told(tail[after, 0.8], tail[before, 0.8], "{mean} points ({interval}) at 0.8") in said
    for value in (0.95, 0.99):
        assert told(tail[after, value], tail[before, value], "{mean} ({interval}) at " + str(value)) in said
    assert told(tail[after, 0.5], tail[before, 0.5], "({mean}, {interval})") in said
    kept = {value: compared(one[after, value], one[before, value])[0] for value in each}
    assert [value for value, shown in kept.items() if not shown.endswith("n.s.")] == [0.99]
    assert told(one[after, 0.99], one[before, 0.99], "significant at 0.99 alone ({mean}, {interval})") in said


def test_what_is_said_of_low_thresholds_holds():
    said = words("debiasing.md")
    both = thresholds("digits-10"), thresholds("digits-lt20-10pct")
    found = {
        (place, variant, value): compared(cells[variant, value], cells[variant, 0.95])[0]
        for place, cells in enumerate(both)
        for variant in ("none", "strength 0.5")
        for value in (0.5, 0.8)
    }
    assert len(found) == 8
    assert [key for key, shown in found.items() if not shown.endswith("n.s.")] == [(1, "strength 0.5", 0.8)]
    high = [compared(cells["strength 0.5", 0.99], cells["strength 0.5", 0.95])[0] for cells in both]
    assert [shown.split()[0] for shown in high] == ["-6.4", "-4.5"]
    assert not [shown for shown in high if shown.endswith("n.s.")]
    tail = both[1]
    value, interval = told(tail["strength 1", 0.5], tail["strength 0.5", 0.5], "{mean}|{interval}").split("|")
    assert f"{value.lstrip('-')} points below strength 0.5 ({interval})" in said


def test_what_is_said_of_momenta_holds():
    said, cells = words("debiasing.md"), read("stability/digits-10.json")["cells"]
    runs = {(cell["momentum"], cell["strength"]): accuracies(cell["runs"]) for cell in cells}
    plain = runs.pop((None, 0.0))
    assert len(plain) == 4
    others = [compared(own, plain)[0] for own in runs.values()]
    others += [compared(own, runs[0.99, strength])[0] for (_, strength), own in runs.items()]
    assert all(shown.endswith("n.s.") for shown in others)
    assert "With four seeds nothing here is significant" in said
    lower = [compared(runs[0.999, strength], runs[0.99, strength])[0].split()[0] for strength in (0.25, 0.5, 1.0, 2.0)]
    assert (max(lower), min(lower)) == ("-5.6", "-1.8")  # as texts
    assert "by 1.8 to 5.6 points" in said


def test_what_is_said_of_moco_beside_holds():
    said = words("start.md")
    runs = json.loads((RESULTS / "beside" / "digits-10.json").read_text())["runs"]
    plain, *others = ([value / 100 for value in run["accuracy"]] for run in runs.values())
    for own in others:
        assert compared(own, plain)[0].endswith("n.s.")
        value, interval = told(own, plain, "{mean}|{interval}").split("|")
        assert value in said
        assert interval in said


def test_what_is_said_of_students_of_a_teacher_at_chance_holds():
    cells = read("zeroshot/eurosat-frozen.json")["confidence"].values()
    reached = [run["accuracy"] for cell in cells for name in ("FixMatch", "DebiasPL") for run in cell[name]["runs"]]
    judged = read("zeroshot/verdict.json")["students"]["eurosat"]["from ConSE"]
    reached += [value for student in judged.values() if isinstance(student, dict) for value in student["runs"]]
    assert len(reached) == 42
    assert max(reached) < 0.2
    assert "no student reaches 20 %" in words("zeroshot.md")
    assert "no student reaches 20 %" in " ".join((DOCS.parent / "README.md").read_text().split())
