"""What docs/add-on.md and the pages that link to it say of the matrix on digits, computed from its accuracies."""

from statistics import mean

import pytest
from scipy.stats import ttest_rel

from benchmarks.tables import Matrix, compared, matrix, percent, read
from tests.benchmarks.test_tables import told, words

PAGE = words("add-on.md")
NAMES = {
    "pseudolabel": "Pseudo-Label",
    "mean-teacher": "Mean Teacher",
    "mixmatch": "MixMatch",
    "remixmatch": "ReMixMatch",
    "fixmatch": "FixMatch",
    "softmatch": "SoftMatch",
    "comatch": "CoMatch",
    "crest": "CReST",
    "adamatch": "AdaMatch",
}


def p_values(table: Matrix, baseline: str) -> dict[str, float]:
    pairs = {name: row for name, row in table.items() if {"none", "own", "debiaser"} <= set(row)}
    return {name: ttest_rel(row["debiaser"], row[baseline]).pvalue for name, row in pairs.items()}


def named(p: dict[str, float], level: float) -> list[str]:
    return [NAMES[name] for name, value in p.items() if value < level]


def listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def test_what_is_said_of_the_debiaser_against_no_correction_holds():
    table = matrix()
    p = p_values(table, "none")
    gains = {name: 100 * (mean(table[name]["debiaser"]) - mean(table[name]["none"])) for name in p}
    better = [gain for gain in gains.values() if gain > 0]
    count = f"{len(better)} of {len(p)} algorithms"
    assert f"better on average for {count}, by {min(better):.1f} to {max(better):.1f} points" in PAGE
    assert f"significant for five: {listed(named(p, 0.05))}." in PAGE
    assert {name for name, gain in gains.items() if gain < 0} == {"flexmatch", "paws"}
    assert min(p["flexmatch"], p["paws"]) > 0.05
    assert f"FlexMatch is {-gains['flexmatch']:.1f} points worse with it and PAWS {-gains['paws']:.1f} points" in PAGE
    assert told(table["fixmatch"]["debiaser"], table["fixmatch"]["none"], "{mean} points ({interval})") in PAGE
    said = f"{count} are better on average than without a correction, {len(named(p, 0.05))} of them significantly"
    assert said in words("experiments.md")
    plain = [f"{100 * mean(table[name]['none']):.1f}" for name in ("mean-teacher", "remixmatch", "supervised")]
    assert "({} and {} % against {})".format(*plain) in PAGE


def test_what_is_said_of_many_tests_holds():
    """By Bonferroni; where nothing is built in, both tables have the same test."""
    none, own = (p_values(matrix(), baseline) for baseline in ("none", "own"))
    every = len(none) + sum(none[name] != own[name] for name in none)
    sure = listed(named(none, 0.05 / len(none)))
    for p, tests in ((none, every), (own, len(own)), (own, every)):
        assert listed(named(p, 0.05 / tests)) == sure
    said = f"After a correction for {len(none)} tests (Bonferroni) only {sure} remain; so too for all {every} tests"
    assert said in PAGE


@pytest.mark.parametrize("name", ["remixmatch", "softmatch", "comatch", "adamatch"])
def test_what_is_said_of_published_alignments_holds(name):
    row = matrix()[name]
    ours, own = row["debiaser"], row["own"]
    seeds = [
        f"{word} on {count}"
        for word, count in (
            ("better", sum(one > other for one, other in zip(ours, own, strict=True))),
            ("worse", sum(one < other for one, other in zip(ours, own, strict=True))),
            ("equal", sum(one == other for one, other in zip(ours, own, strict=True))),
        )
        if count
    ]
    assert compared(ours, own)[0].endswith("n.s.")
    shown = told(ours, own, "{mean} points (95 % interval {interval}), ").replace("+0.0 points", "0.0 points")
    assert f"{NAMES[name]} {shown}{seeds[0]} seeds, {seeds[1]}." in PAGE
    if name == "softmatch":
        value, interval = told(own, row["none"], "{mean}|{interval}").split("|")
        assert f"which adds {value.lstrip('+')} points here ({interval})" in PAGE
        again = read("digits-matrix/softmatch-alignment.json")["algorithms"]["softmatch"]
        assert again["own"] == own
        value, interval = told(again["alignment"], ours, "{mean}|{interval}").replace("+", "").split("|")
        assert f"it has {percent(again['alignment'])} %" in PAGE
        assert f"worse than that by {value} points ({interval}), on 5 of 5 seeds" in PAGE
        assert compared(again["alignment"], ours)[2] == "5 of 5"
        assert ttest_rel(again["alignment"], ours).pvalue > 0.05 / 20


def test_what_is_said_of_the_earlier_measurement_holds():
    now, (earlier, again) = matrix(), (found["algorithms"] for found in read("digits-matrix/earlier.json").values())
    distinct = {
        tuple(runs) for row in again.values() for runs in row.values()
    }  # own is none, where nothing is built in
    assert f"in all {sum(map(len, distinct))} runs" in PAGE
    moved = []
    for name, row in again.items():
        assert row == now[name]
        gains = (
            [one - other for one, other in zip(*(each[name][key] for key in ("debiaser", "none")), strict=True)]
            for each in (earlier, now)
        )
        moved += [abs(one - other) for one, other in zip(*gains, strict=True)]
    assert f"moved by up to {100 * max(moved):.1f} points" in PAGE
    none, own = p_values(earlier, "none"), p_values(earlier, "own")
    before, after = (set(named(p, 0.05)) for p in (none, p_values(now, "none")))
    assert before - after == {"FixMatch", "CoMatch", "AdaMatch"}
    assert (
        f"significant both times are those of {listed([name for name in NAMES.values() if name in before & after])};"
        in PAGE
    )
    assert own["comatch"] < 0.05
    assert compared(earlier["comatch"]["debiaser"], earlier["comatch"]["own"])[2] == "0 of 5"
    assert mean(earlier["flexmatch"]["debiaser"]) > mean(earlier["flexmatch"]["none"])
    tests = len(none) + sum(none[name] != own[name] for name in none)
    assert named(none, 0.05 / tests) == ["Pseudo-Label", "Mean Teacher"]
    shares = [f"{100 * mean(each['softmatch']['own']):.1f} %" for each in (earlier, now)]
    assert "own alignment, {} before, is {} now".format(*shares) in PAGE


def test_the_seeds_are_those_of_the_demo():
    """Not another sample: pages say that these tables do not confirm each other."""
    demo = read("demo-10-seeds/results.json")["methods"]["FixMatch"]["accuracy"]["per_seed"]
    assert demo[:5] == matrix()["fixmatch"]["none"]
    assert "FixMatch without a correction has the same numbers as in [the demo](demo.md), seed by seed" in PAGE
    assert "here and in the next two sections, and FixMatch has those of the demo" in words("debiasing.md")
