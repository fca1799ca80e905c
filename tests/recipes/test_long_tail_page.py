"""docs/lab/debiasing.md: the table of what was tried on the long tail from a start, from results/long-tail."""

import json
from pathlib import Path
from statistics import mean

from debiaspl.recipes.results_page import points
from debiaspl.report import over_seeds

ROOT = Path(__file__).parents[2]
ALSO, ALIGNED = "labeled images also unlabeled", "alignment+debiaser"
RUNS = (
    ("search", "sf-none", "FixMatch"),
    ("second-search", "lt-search-fixmatch-3", "FixMatch"),
    ("second-search", "lt-search-fixmatch-0", f"FixMatch, {ALSO}"),
    ("third-search", "lt-search-fixmatch-3", f"FixMatch, threshold 0.98, {ALSO}"),
    ("search", "sd-1", "DebiasPL, strength 1"),
    ("second-search", "lt-search-debiaspl-2", f"DebiasPL, strength 1, {ALSO}"),
    ("search", "z-m1", "margins of the Debiaser alone"),
    ("second-search", "lt-search-debiaspl-5", f"margins of the Debiaser alone, {ALSO}"),
    ("third-search", "lt-search-margins-1", f"margins of the Debiaser alone, threshold 0.98, {ALSO}"),
    ("third-search", "lt-search-margins-3", f"margins of the Debiaser alone, threshold 0.98, margin 1.5, {ALSO}"),
    ("second-search", "lt-search-debiaspl-0", f"{ALIGNED}, {ALSO}"),
    ("second-search", "lt-search-debiaspl-1", f"{ALIGNED}, margin 1.5, {ALSO}"),
    ("second-search", "lt-search-debiaspl-4", f"{ALIGNED}, threshold 0.98, {ALSO}"),
    ("third-search", "lt-search-margins-4", f"{ALIGNED}, threshold 0.98, margin 1.5, {ALSO}"),
    ("third-search", "lt-search-margins-6", f"{ALIGNED}, threshold 0.98, learning rate 0.0075, {ALSO}"),
    ("third-search", "lt-search-margins-8", f"{ALIGNED}, threshold 0.98, {ALSO}, 3,000 steps"),
    ("second-search", "lt-search-debiaspl-3", f"{ALIGNED}, learning rate 0.03, {ALSO}"),
    ("second-search", "lt-long-debiaspl", f"{ALIGNED}, threshold 0.98, {ALSO}, 14,000 steps"),
    ("search", "sf-la", "logit adjustment"),
    ("search", "y-dala", "alignment+logit-adjustment"),
    ("second-search", "lt-search-adjusted-0", f"alignment+logit-adjustment, {ALSO}"),
)


def table() -> str:
    searches = {name: json.loads((ROOT / f"results/long-tail/{name}.json").read_text())["runs"] for name, _, _ in RUNS}
    lines = [("fold 100, one run each", "steps of the start", "accuracy %", "recall of the three rarest classes %")]
    for search, name, what in RUNS:
        run = searches[search][name]
        start = "14,000" if search == "search" else "20,000"
        lines.append((what, start, points(100 * run["accuracy"])[1:], f"{100 * mean(run['recall'][-3:]):.0f}"))
    return over_seeds.markdown(lines)


def test_the_page_prints_what_was_tried():
    page = (ROOT / "docs" / "lab" / "debiasing.md").read_text()
    assert f"<!-- table long tail -->\n\n{table()}\n" in page


def test_what_the_table_calls_a_run_is_what_ran():
    for search, name, what in RUNS:
        if search == "search":
            continue
        command = json.loads((ROOT / f"results/long-tail/{search}.json").read_text())["runs"][name]["command"]
        assert (ALSO in what) == ("labeled_also_unlabeled=true" in command)
        assert (ALIGNED in what) == (f"correction={ALIGNED}" in command)
        assert ("threshold 0.98" in what) == ("threshold=0.98" in command)
        assert ("margin 1.5" in what) == ("margin_strength=1.5" in command)
        for rate in ("0.03", "0.0075"):
            assert (f"learning rate {rate}" in what) == command.endswith(f"learning_rate={rate}")
        steps = next((number for number in ("14,000", "3,000") if f"{number} steps" in what), "6,000")
        assert f"steps={steps.replace(',', '')}" in command


def test_the_page_counts_what_alignment_and_the_length_change():
    found = {}
    for name in ("second-search", "third-search"):
        runs = json.loads((ROOT / f"results/long-tail/{name}.json").read_text())["runs"]
        for run in runs.values():
            settings = frozenset(run["command"].split(" --set ")[1:]) - {"evaluate_every=0"}
            method = "fixmatch" if "-fixmatch" in run["command"] else ""
            found[method, settings] = 100 * run["accuracy"]
    changed = []
    for (_, settings), accuracy in found.items():
        if f"correction={ALIGNED}" in settings:
            alone = found.get(("", settings - {f"correction={ALIGNED}"} | {"correction=debiaser"}))
            changed += [] if alone is None else [accuracy - alone]
    page = " ".join((ROOT / "docs" / "lab" / "debiasing.md").read_text().split())
    assert len(changed) == 6
    assert (
        f"in six pairs of runs from {points(min(changed))[1:]} points less to {points(max(changed))[1:]} more than the "
        f"margins alone, less in {['none', 'one', 'two', 'three'][sum(value < 0 for value in changed)]}." in page
    )
    plain = [accuracy for (method, _), accuracy in found.items() if method]
    assert f"stays between {points(min(plain))[1:]} and {points(max(plain))[1:]} %" in page
    aligned = {f"correction={ALIGNED}", "threshold=0.98", "margin_strength=1"}
    by_length = {}
    for (_, settings), accuracy in found.items():
        if settings >= aligned and not any("learning_rate" in one for one in settings):
            by_length |= {one: accuracy for one in settings if one.startswith("steps=")}
    short, usual, long = (by_length[f"steps={steps}"] for steps in (3000, 6000, 14000))
    assert f"3,000 steps end {points(usual - short)[1:]} points below 6,000" in page
    assert f"14,000 end {points(usual - long)[1:]} points below" in page
