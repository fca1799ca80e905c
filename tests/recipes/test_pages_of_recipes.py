"""Pages say what lies in results/: the tables of recipes, and the sentences about them, computed from the files."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from debiaspl.data.splits import mismatch
from debiaspl.recipes import RECIPES
from debiaspl.recipes.results import rows, table
from debiaspl.recipes.results_page import RECIPE_WORDS, points
from debiaspl.report import over_seeds

LONGER = ", steps=60000"
ROOT = Path(__file__).parents[2]


def ablation_table() -> str:
    against = "worst class", "- FixMatch (95 % t)", "worst seed", "better on"
    lines = [("corrected", "one label a class", *against, "long tail", *against)]
    files = [ROOT / "results" / "ablation" / f"{name}.json" for name in ("digits-10", "digits-lt20-10pct")]
    both = [json.loads(file.read_text())["variants"] for file in files]
    assert [len(variants) for variants in both] == [8, 8]
    for variants in zip(*both, strict=True):
        cells = [variants[0]["variant"]]
        for variant, (plain, *_) in zip(variants, both, strict=True):
            runs = [[{**run, "worst_recall": run["worst"]} for run in one["runs"]] for one in (variant, plain)]
            found = over_seeds.measured(*runs)["difference"]
            least = f"{100 * min(found['per_seed']):+.1f}"
            compared = over_seeds.with_interval(found), least, f"{found['better_on']} of {len(runs[0])}"
            own = ("-",) * 3 if variant is plain else compared
            cells += [f"{100 * variant['accuracy']:.1f}", f"{100 * variant['worst']:.0f}", *own]
        lines.append(tuple(cells))
    return over_seeds.markdown(lines)


def test_the_page_prints_the_ablation():
    assert f"<!-- table ablation -->\n\n{ablation_table()}\n" in (ROOT / "docs" / "lab" / "debiasing.md").read_text()


def test_the_page_prints_the_thresholds():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "lab" / "debiasing.md").read_text().split("<!-- table thresholds -->")[1].split("\n\n")[1]
    expected: dict[float, list[str]] = {}
    for name in ("digits-10", "digits-lt20-10pct"):
        cells = json.loads((root / "results" / "thresholds" / f"{name}.json").read_text())["cells"]
        for variant in ("none", "strength 0.5", "strength 0.5, before", "strength 1"):
            for cell in cells:
                if cell["variant"] == variant:
                    accuracy = 100 * mean(found["accuracy"] for found in cell["runs"])
                    expected.setdefault(cell["threshold"], []).append(f"{accuracy:.1f}")
    assert page.splitlines()[2:] == ["| " + " | ".join([str(key), *row]) + " |" for key, row in expected.items()]


def test_the_page_prints_what_was_measured():
    """docs/lab/debiasing.md: every measured row, and no other."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "lab" / "debiasing.md").read_text().split("<!-- table gain -->")[1].split("\n\n")[1]
    known = [row for row in rows(root / "results" / "gain") if row.accuracy]
    assert page.splitlines()[2:] == ["| " + " | ".join(cells) + " |" for cells in table(known)]


def longer_table() -> str:
    lengths = "FixMatch, 30,000", "60,000", "DebiasPL, 30,000", "60,000"
    lines = [("", "folds", *lengths, "difference at 60,000 (95 % t)", "by fold")]
    found = {(row.cell, row.method): row.accuracy for row in rows(ROOT / "results" / "gain") if row.accuracy}
    for cell in ("cifar10-lt100-10pct", "cifar10-40"):
        each = [found[cell, f"{method}{ending}"] for method in ("FixMatch", "DebiasPL") for ending in ("", LONGER)]
        means = [f"{mean(accuracy):.1f}" for accuracy in each]
        lines.append((cell, str(len(each[0])), *means, *against(each[3], each[1])[2:]))
    return over_seeds.markdown(lines)


def test_the_page_says_what_twice_the_steps_bring():
    assert f"<!-- table longer -->\n\n{longer_table()}\n" in (ROOT / "docs" / "lab" / "debiasing.md").read_text()


PAPER_COLUMNS = "paper: FixMatch", "paper: DebiasPL"


def against(ours: Sequence[float], theirs: Sequence[float]) -> list[str]:
    """Means, the paired difference with its interval, and every fold; in %."""
    runs = [[{"accuracy": value / 100, "worst_recall": 0.0} for value in one] for one in (ours, theirs)]
    by_fold = ", ".join(points(own - other) for own, other in zip(ours, theirs, strict=True))
    interval = over_seeds.with_interval(over_seeds.measured(*runs)["difference"])
    return [f"{mean(theirs):.1f}", f"{mean(ours):.1f}", interval, by_fold]


def cifar10_table() -> str:
    """The recipes for minutes, in columns that say what was run."""
    about = {
        "cifar10-40": "4 a class",
        "cifar10-lt100-10pct": "long tail, 100 to 1, a tenth",
        "cifar10-lt200-10pct-balanced": "long tail, 200 to 1, a tenth; unlabeled images balanced, 45,000 "
        "(the paper does not say how many)",
    }
    ran = "contrastmatch", "contrastmatch + Debiaser + labeled margin"
    lines = [("labels", "folds", *ran, "difference (95 % t)", "by fold", *PAPER_COLUMNS)]
    found = {(row.cell, row.method): row for row in rows(ROOT / "results" / "gain") if row.recipe == "minutes"}
    for cell, text in about.items():
        plain, debiased = (found[cell, method] for method in ("FixMatch", "DebiasPL"))
        folds = str(len(plain.accuracy))
        lines.append((text, folds, *against(debiased.accuracy, plain.accuracy), str(plain.paper), str(debiased.paper)))
    return over_seeds.markdown(lines)


def test_the_page_of_cifar10_says_what_was_measured():
    assert f"<!-- table cifar10 -->\n\n{cifar10_table()}\n" in (ROOT / "docs" / "cifar10.md").read_text()
    for path in (ROOT / "results" / "gain").glob("*/*-minutes.json"):
        ran = json.loads(path.read_text())["recipe"]
        assert (ran["algorithm"]["name"], ran["network"]["name"]) == ("contrastmatch", "resnet9")
        assert (ran["correction"]["name"], ran["correction"]["settings"]["labeled_strength"]) == ("debiaser", 1.0)
    protocol = RECIPES["cifar10-lt200-10pct-balanced"].protocol
    labels = np.repeat(np.arange(10), 5000)
    assert len(mismatch(labels, seed=0, **protocol.settings).unlabeled) == 45_000


def test_the_page_of_cifar10_says_for_whom_settings_were_searched():
    runs = [
        run["run"]
        for path in (ROOT / "results" / "gain-tuning").glob("*.json")
        for run in json.loads(path.read_text())["runs"]
    ]
    debiased = [run for run in runs if "correction=none" not in run and "fixmatch" not in run]
    words = " ".join((ROOT / "docs" / "cifar10.md").read_text().split())
    assert f"{len(debiased)} of its {len(runs)} tuning runs had the Debiaser" in words
    assert f"{len(debiased)} of {len(runs)} runs had the Debiaser" in RECIPE_WORDS["ours: minutes"]


def started(cell: str, ending: str = "") -> list[float]:
    root = Path(__file__).parents[2] / "results" / "start" / cell
    folds = json.loads((root / f"{cell}-start{ending}.json").read_text())["folds"]
    return [100 * fold["accuracy"] for fold in folds]


STARTED = "cifar10-40", "cifar10-250", "cifar10-lt100-10pct", "eurosat-40"


def start_table() -> str:
    about = (
        *("CIFAR-10, 4 a class", "CIFAR-10, 25 a class", "CIFAR-10, long tail, 100 to 1, a tenth"),
        "EuroSAT, 4 a class",
    )
    ran = "contrastmatch from a start", "with the Debiaser, strength 1"
    lines = [("labels", "folds", *ran, "difference (95 % t)", "by fold", *PAPER_COLUMNS)]
    papers = {(row.cell, row.method): row.paper for row in rows()}
    for cell, text in zip(STARTED, about, strict=True):
        plain, debiased = started(cell, "-fixmatch"), started(cell)
        paper = (str(papers[cell, method] or "-") for method in ("FixMatch", "DebiasPL"))
        lines.append((text, str(len(plain)), *against(debiased, plain), *paper))
    return over_seeds.markdown(lines)


def test_pages_print_what_runs_from_a_start_have_reached():
    assert f"<!-- table start -->\n\n{start_table()}\n" in (ROOT / "docs" / "start.md").read_text()
    plain, debiased, interval, _ = against(started("cifar10-40"), started("cifar10-40", "-fixmatch"))
    mean_, low, _, high, doubt = re.findall(r"[+-]?[\d.]+|to|n\.s\.", interval)
    assert doubt == "n.s."
    words = " ".join((ROOT / "docs" / "cifar10.md").read_text().split())
    assert f"forty labels give {debiased} %, the mean of three folds, and {plain} % without debiasing" in words
    assert f"{mean_[1:]} points that is not significant (95 % interval {low} to {high})" in words
    for cell in STARTED:
        ran = json.loads((ROOT / "results" / "start" / cell / f"{cell}-start.json").read_text())["recipe"]
        assert ran["algorithm"]["name"] == "contrastmatch"
        assert ran["correction"]["settings"]["strength"] == 1.0


def test_pages_tell_the_search_from_a_start():
    root = Path(__file__).parents[2]
    search = json.loads((root / "results" / "start" / "third-search.json").read_text())
    found = {name: f"{100 * run['accuracy']:.1f}" for name, run in search["runs"].items()}
    for method in ("debiaspl", "fixmatch"):  # the same eight settings, and the same are the best
        own = {name: run["accuracy"] for name, run in search["runs"].items() if name.startswith(f"search-{method}-")}
        assert len(own) == 8
        assert max(own, key=own.__getitem__) == f"search-{method}-5"
    page = " ".join((root / "docs" / "cifar10.md").read_text().split())
    plain, debiased = ([found[f"search-{method}-{place}"] for place in (5, 4)] for method in ("fixmatch", "debiaspl"))
    assert f"FixMatch falls from {plain[0]} to {plain[1]} % and DebiasPL from {debiased[0]} to {debiased[1]} %" in page
    assert f"forty labels give {mean(started('cifar10-40')):.1f} %" in page
    for name, rate in (("cifar10-40-start", 0.0075), ("cifar10-250-start", 0.015)):  # forty labels: a later search
        assert (RECIPES[name].first_classifier, RECIPES[name].learning_rate) == ("graph", rate)
    seconds = sum(
        RECIPES[name].steps * search["alone"][f"{name}, ms a step"] / 1000
        for name in ("cifar10-pretrain", "cifar10-40-start")
    )
    begun = sum(
        log[0][1] for log in search["alone"]["log"].values()
    )  # with the first 250 steps, from the first line on
    assert 5.5 < (seconds + begun) / 60 < 6.5


def test_the_page_compares_a_start_with_an_encoder():
    root = Path(__file__).parents[2]
    lines = (
        (root / "docs" / "start.md").read_text().split("<!-- table encoder -->")[1].split("\n\n")[1].splitlines()[2:]
    )
    shown = {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}
    runs = json.loads((root / "results" / "graph" / "eurosat-encoder.json").read_text())["runs"]
    encoder = {name.replace("supervised", "labels alone"): f"{100 * run['accuracy']:.1f}" for name, run in runs.items()}
    assert {name: cells[0] for name, cells in shown.items()} == encoder
    assert shown["FixMatch"][1] == f"{started('eurosat-40', '-fixmatch')[0]:.1f}"
    assert shown["DebiasPL, first classifier from the graph"][1] == f"{started('eurosat-40')[0]:.1f}"
    start = json.loads((root / "results" / "start" / "eurosat-40" / "eurosat-40-start.json").read_text())
    assert start["folds"][0]["fold"] == 0
    for run in runs.values():  # the same labels, and the same test images
        assert run["recipe"]["seed"] == 0
        assert run["recipe"]["protocol"] == start["recipe"]["protocol"]
        assert (sum(run["labels"]), run["test"]) == (40, 2700)


def test_the_page_says_what_the_graph_costs():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "start.md").read_text()
    large = json.loads((root / "results" / "graph" / "large.json").read_text())
    seconds, memory = sum(large["seconds"].values()), large["memory_beside_gib"]
    assert (
        f"{large['vectors'][0]:,} vectors of {large['vectors'][1]:,} numbers take {seconds:.0f} s and {memory:.1f} GiB"
        in page
    )
