"""What pages say of intervals, of searches and of earlier runs, computed from the files in results/."""

import json
from pathlib import Path
from statistics import mean

import numpy as np

from debiaspl.recipes import RECIPES
from debiaspl.recipes.results_page import points
from debiaspl.report.intervals import mean_interval

ROOT = Path(__file__).parents[2]


def test_the_page_says_what_the_parts_do_not_show():
    page = " ".join((ROOT / "docs" / "lab" / "debiasing.md").read_text().split())
    both = []
    for name in ("digits-10", "digits-lt20-10pct"):
        found = json.loads((ROOT / "results" / "ablation" / f"{name}.json").read_text())["variants"][:4]
        plain, labels, margin, whole = (np.array([100 * run["accuracy"] for run in one["runs"]]) for one in found)
        pairs = whole - labels, whole - margin, labels - margin, whole - labels - margin + plain
        both.append([(np.mean(each), *mean_interval(each.tolist())) for each in pairs])
    balanced, tail = both
    assert "{:+.1f} points over labels alone (95 % interval {:+.1f} to {:+.1f})".format(*tail[0]) in page
    assert "{:+.1f} over the margin alone ({:+.1f} to {:+.1f})".format(*tail[1]) in page
    assert "labels alone ({:+.1f}, {:+.1f} to {:+.1f}) or".format(*balanced[0]) in page
    assert "the margin alone ({:+.1f}, {:+.1f} to {:+.1f})".format(*balanced[1]) in page
    assert "{:.1f} points lower ({:+.1f} to {:+.1f})".format(*balanced[2]) in page
    assert "{:.1f} on the long tail ({:+.1f} to {:+.1f})".format(*tail[2]) in page
    assert "{:.1f} points more than their sum, which is not significant ({:+.1f} to {:+.1f})".format(*tail[3]) in page
    mean_, low, high = (-value for value in balanced[3])
    assert f"{mean_:.1f} points less ({high:.1f} to {low:.1f})" in page


def test_pages_say_what_came_before_the_runs_from_a_start():
    """How many runs of each method the earlier searches had, and what folds 0 to 2 gave in the second one."""
    first, second = (
        json.loads((ROOT / "results" / "start" / name).read_text()) for name in ("search.json", "second-search.json")
    )
    tuned = ["correction=none" not in run["settings"] for run in first["tunes"]["runs"]]
    runs = {name: run for name, run in second["runs"].items() if "recipe" in run}
    tuned += [run["recipe"]["correction"]["name"] != "none" for run in runs.values() if run["recipe"]["seed"] == 100]
    before = [
        f"{100 * mean(runs[f'{letter}{fold}']['log'][-1]['accuracy'] for fold in range(3)):.1f}" for letter in "pdf"
    ]
    assert {runs[f"{letter}{fold}"]["recipe"]["steps"] for letter in "pdf" for fold in range(3)} == {26_000}
    pages = [" ".join((ROOT / page).read_text().split()) for page in ("docs/start.md", "docs/results.md")]
    third, fourth, fifth = (
        [name for name in json.loads((ROOT / "results" / "start" / file).read_text())["runs"] if "search-" in name]
        for file in ("third-search.json", "fourth-search.json", "fifth-search.json")
    )
    for both in (third, fifth):
        assert sum("fixmatch" in name for name in both) == len(both) / 2
    ours = sum(tuned) + len(third + fifth) // 2
    theirs = len(tuned) - sum(tuned) + len(third + fifth) // 2 + len(fourth)
    assert ours == theirs
    assert f"{len(fourth)} runs ([fourth search](../results/start/fourth-search.json))" in pages[0]
    assert f"both had {len(fifth) // 2} runs more" in pages[0]
    assert f"That makes {ours} runs each in all" in pages[0]
    assert f"by now with {ours} of each" in pages[1]
    for page in pages:
        assert f"with {sum(tuned)} runs of DebiasPL and {len(tuned) - sum(tuned)} of FixMatch" in page
        assert "no clean test" in page.lower()
    for page in pages[:1]:
        assert "(experimental code, 26,000 steps)" in page
        assert f"{before[0]} and {before[1]} %" in page
        assert f"{before[2]} %" in page


def test_pages_say_what_six_folds_of_forty_labels_gave():
    """The best of the fifth search is the recipe of both; folds 3 to 5 have it, folds 0 to 2 what was best before."""
    folder = ROOT / "results" / "start"
    search = json.loads((folder / "fifth-search.json").read_text())["runs"]
    best = {}
    for method in ("debiaspl", "fixmatch"):
        name = max((name for name in search if method in name), key=lambda name: search[name]["accuracy"])
        assert search[name]["command"].endswith("--set learning_rate=0.0075 --set average_decay=0.99")
        best[method] = f"{100 * search[name]['accuracy']:.1f} %"
    for name in ("cifar10-40-start", "cifar10-40-start-fixmatch"):
        assert (RECIPES[name].learning_rate, RECIPES[name].average_decay) == (0.0075, 0.99)
    cell = folder / "cifar10-40"
    files = {
        (ending, when): json.loads((cell / f"cifar10-40-start{ending}{when}.json").read_text())["folds"]
        for ending in ("", "-fixmatch")
        for when in ("", "-earlier")
    }
    differences = []
    for when, numbers in (("-earlier", [0, 1, 2]), ("", [3, 4, 5])):
        ours, theirs = files["", when], files["-fixmatch", when]
        assert [fold["fold"] for fold in ours] == [fold["fold"] for fold in theirs] == numbers
        differences += [100 * (own["accuracy"] - other["accuracy"]) for own, other in zip(ours, theirs, strict=True)]
    page = " ".join((ROOT / "docs" / "start.md").read_text().split())
    assert f"{best['fixmatch']} for FixMatch and {best['debiaspl']} for DebiasPL" in page
    assert min(differences) > 0
    least, most = (points(value)[1:] for value in (min(differences), max(differences)))
    assert f"on each of these six folds, by {least} to {most} points" in page
    low, high = mean_interval(differences)
    assert f"{points(mean(differences))} points ({points(low)} to {points(high)})" in page
    curves = [
        [line["accuracy"] for line in fold["log"] if "accuracy" in line]
        for when in ("-earlier", "")
        for fold in files["", when]
    ]
    last = [points(100 * (curve[-1] - curve[-2]))[1:] for curve in curves]
    assert f"still gaining {min(last)} to {max(last)} points in the last 2,500 steps" in page
    earlier = (100 * mean(fold["accuracy"] for fold in files[ending, "-earlier"]) for ending in ("-fixmatch", ""))
    assert (
        "{:.1f} % and with the Debiaser {:.1f} %, by fold {}, {}, {}.".format(
            *earlier, *(points(value) for value in differences[:3])
        )
        in page
    )


def test_differences_read_the_same_whatever_their_last_bits_are():
    assert [points(value) for value in (73.11 - 69.46, 3.65, -3.65, 0.0)] == ["+3.7", "+3.7", "-3.7", "+0.0"]
