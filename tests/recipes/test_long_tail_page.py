"""docs/lab/debiasing.md: the table of what was tried on the long tail from a start, from results/long-tail."""

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean

from debiaspl.recipes import RECIPES
from debiaspl.recipes.results import computed
from debiaspl.recipes.results_page import RECIPE_WORDS, points
from debiaspl.report import over_seeds
from debiaspl.training import Recipe

START = "ours: start"
ROOT = Path(__file__).parents[2]
ALSO, ALIGNED = "labeled images also unlabeled", "alignment+debiaser"
RUNS = (
    ("search", "sf-none", "FixMatch"),
    ("second-search", "lt-search-fixmatch-3", "FixMatch"),
    ("second-search", "lt-search-fixmatch-0", f"FixMatch, {ALSO}"),
    ("third-search", "lt-search-fixmatch-3", f"FixMatch, threshold 0.98, {ALSO}"),
    ("fourth-search", "search-fixmatch-1", f"FixMatch, threshold 0.98, average 0.99, {ALSO}"),
    ("fourth-search", "long-fixmatch", f"FixMatch, threshold 0.98, average 0.99, {ALSO}"),
    ("search", "sd-1", "DebiasPL, strength 1"),
    ("second-search", "lt-search-debiaspl-2", f"DebiasPL, strength 1, {ALSO}"),
    ("fourth-search", "search-paper-1", f"DebiasPL, strength 1, average 0.99, {ALSO}"),
    ("search", "z-m1", "margins of the Debiaser alone"),
    ("second-search", "lt-search-debiaspl-5", f"margins of the Debiaser alone, {ALSO}"),
    ("third-search", "lt-search-margins-1", f"margins of the Debiaser alone, threshold 0.98, {ALSO}"),
    ("third-search", "lt-search-margins-3", f"margins of the Debiaser alone, threshold 0.98, margin 1.5, {ALSO}"),
    ("fourth-search", "search-margins-1", f"margins of the Debiaser alone, threshold 0.98, average 0.99, {ALSO}"),
    ("second-search", "lt-search-debiaspl-0", f"{ALIGNED}, {ALSO}"),
    ("second-search", "lt-search-debiaspl-1", f"{ALIGNED}, margin 1.5, {ALSO}"),
    ("second-search", "lt-search-debiaspl-4", f"{ALIGNED}, threshold 0.98, {ALSO}"),
    ("third-search", "lt-search-margins-4", f"{ALIGNED}, threshold 0.98, margin 1.5, {ALSO}"),
    ("fourth-search", "search-aligned-1", f"{ALIGNED}, threshold 0.98, margin 1.5, average 0.99, {ALSO}"),
    ("fourth-search", "long-aligned", f"{ALIGNED}, threshold 0.98, margin 1.5, {ALSO}"),
    ("third-search", "lt-search-margins-6", f"{ALIGNED}, threshold 0.98, learning rate 0.0075, {ALSO}"),
    ("third-search", "lt-search-margins-8", f"{ALIGNED}, threshold 0.98, {ALSO}, 3,000 steps"),
    ("second-search", "lt-search-debiaspl-3", f"{ALIGNED}, learning rate 0.03, {ALSO}"),
    ("second-search", "lt-long-debiaspl", f"{ALIGNED}, threshold 0.98, {ALSO}, 14,000 steps"),
    ("search", "sf-la", "logit adjustment"),
    ("search", "y-dala", "alignment+logit-adjustment"),
    ("second-search", "lt-search-adjusted-0", f"alignment+logit-adjustment, {ALSO}"),
    ("fourth-search", "search-adjusted-1", f"alignment+logit-adjustment, average 0.99, {ALSO}"),
)


def table() -> str:
    searches = {name: json.loads((ROOT / f"results/long-tail/{name}.json").read_text())["runs"] for name, _, _ in RUNS}
    lines = [("fold 100, one run each", "steps of the start", "accuracy %", "recall of the three rarest classes %")]
    for search, name, what in RUNS:
        run = searches[search][name]
        start = "14,000" if search == "search" else "40,000" if name.startswith("long-") else "20,000"
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
        assert ("average 0.99" in what) == ("average_decay=0.99 " in f"{command} ")
        for rate in ("0.03", "0.0075"):
            assert (f"learning rate {rate}" in what) == command.endswith(f"learning_rate={rate}")
        steps = next((number for number in ("14,000", "3,000") if f"{number} steps" in what), "6,000")
        assert f"steps={steps.replace(',', '')}" in command


def searched(*names: str) -> dict[tuple[str, frozenset[str]], float]:
    """Accuracy by method and settings, of the runs before the folds; a repeat counts once."""
    found = {}
    for name in names:
        for run, known in json.loads((ROOT / f"results/long-tail/{name}.json").read_text())["runs"].items():
            folds = re.findall(r"seed=(\d+)", known["command"])
            if "lt100-10pct-start" in known["command"] and folds[-1] == "100" and not run.startswith("long-"):
                settings = frozenset(known["command"].split(" --set ")[1:]) - {"evaluate_every=0"}
                plain = "-fixmatch" in known["command"] or "correction=none" in settings
                found["fixmatch" if plain else "", settings] = 100 * known["accuracy"]
    return found


def test_the_page_counts_what_alignment_and_the_length_change():
    found = searched("second-search", "third-search", "fourth-search")
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


CELL = ROOT / "results" / "start" / "cifar10-lt100-10pct"
KINDS = (
    ("-fixmatch", "FixMatch"),
    ("", "DebiasPL, strength 1"),
    ("-margins", "DebiasPL's margins, aligned labels"),
    ("-margins-unaligned", "DebiasPL's margins alone"),
    ("-fixmatch-adjusted", "alignment+logit-adjustment"),
)


def folds_of(ending: str, key: str = "accuracy") -> list[float]:
    folds = json.loads((CELL / f"cifar10-lt100-10pct-start{ending}.json").read_text())["folds"]
    assert [fold["fold"] for fold in folds] == [0, 1, 2]
    return [fold[key] for fold in folds]


def compared(ours: list[float], theirs: list[float]) -> str:
    """The mean difference of accuracies with its interval, in points."""
    runs = [[{"accuracy": value, "worst_recall": 0.0} for value in one] for one in (ours, theirs)]
    return over_seeds.with_interval(over_seeds.measured(*runs)["difference"])


def recorded(ending: str) -> Recipe:
    return Recipe.from_json(json.loads((CELL / f"cifar10-lt100-10pct-start{ending}.json").read_text())["recipe"])


def settings_of(ending: str) -> str:
    """In which the kinds differ, of what has run."""
    recipe = recorded(ending)
    shown = [recipe.algorithm.settings.get("threshold", 0.95), recipe.average_decay]
    correction = recipe.correction.settings
    shown += [correction.get("margin_strength", correction["strength"])] if "strength" in correction else []
    return ", ".join(f"{value:g}" for value in shown)


def folds_table() -> str:
    settings, rarest = "threshold, average, margin", "three rarest classes %"
    lines = [("accuracy %", settings, "fold 0", "fold 1", "fold 2", "mean", "- FixMatch (95 % t)", rarest)]
    for ending, what in KINDS:
        folds = folds_of(ending)
        against = compared(folds, folds_of("-fixmatch")) if ending != "-fixmatch" else "-"
        rare = mean(mean(recall[-3:]) for recall in folds_of(ending, "recall"))
        each = (f"{100 * value:.1f}" for value in (*folds, mean(folds)))
        lines.append((what, settings_of(ending), *each, against, f"{100 * rare:.0f}"))
    return over_seeds.markdown(lines)


def words() -> str:
    return " ".join((ROOT / "docs" / "lab" / "debiasing.md").read_text().split())


def test_the_page_prints_three_folds():
    assert f"<!-- table long tail folds -->\n\n{folds_table()}\n" in (ROOT / "docs/lab/debiasing.md").read_text()
    plain, paper, margins, alone, adjusted = (folds_of(ending) for ending, _ in KINDS)
    assert all(fixmatch < debiaspl for fixmatch, debiaspl in zip(plain, paper, strict=True))
    assert f"aligned labels by {compared(margins, paper)}, the margins alone by {compared(alone, paper)}" in words()
    assert f"is as good**: {compared(adjusted, margins)} against the margins with aligned labels" in words()
    assert f"{compared(adjusted, paper)} against DebiasPL." in words()
    assert max(map(mean, (paper, margins, alone, adjusted))) < 0.792, "the page says that no mean reaches the paper's"


def test_other_pages_say_the_same_of_the_three_folds():
    plain, paper, margins, alone, adjusted = ([100 * value for value in folds_of(ending)] for ending, _ in KINDS)
    start, cifar10, readme = (
        " ".join((ROOT / page).read_text().split()) for page in ("docs/start.md", "docs/cifar10.md", "README.md")
    )
    each = "{:.1f}, {:.1f} and {:.1f}".format(*margins)
    assert f"without its debiased labels have {mean(alone):.1f} %" in start
    assert f"instead {mean(margins):.1f} % ({each}), the recipe `cifar10-lt100-10pct-start-margins`" in start
    assert f"does as well ({mean(adjusted):.1f} %)" in start
    assert [settings_of(ending).split(",")[0] for ending in ("-fixmatch", "")] == ["0.98", "0.95"]
    assert "FixMatch has a threshold of 0.98 and DebiasPL 0.95" in start
    assert f"gives {mean(paper):.1f} % with DebiasPL and {mean(plain):.1f} % without" in cifar10
    assert f"is not the paper's method, give {mean(margins):.1f} %, and logit adjustment with alignment" in cifar10
    assert f"without a Debiaser, {mean(adjusted):.1f} %." in cifar10
    said = f"reach {mean(margins):.1f} %; logit adjustment {mean(adjusted):.1f}."
    assert said in readme
    earlier = (
        json.loads((CELL / f"cifar10-lt100-10pct-start{ending}-earlier.json").read_text())["folds"][0]["accuracy"]
        for ending in ("", "-fixmatch")
    )
    assert "had {:.1f} % on fold 0, and {:.1f} % without the Debiaser".format(*(100 * one for one in earlier)) in start


def test_the_page_says_that_fold_0_had_been_run_before():
    runs = json.loads((ROOT / "results/long-tail/search.json").read_text())["runs"]
    before = [f"{100 * runs[name]['accuracy']:.1f}" for name in ("fold-d0", "fold-f0", "z-dala-f0")]
    assert "DebiasPL {} %, logit adjustment {} %, with alignment {} %".format(*before) in words()


def test_the_page_says_what_a_fold_takes():
    runs = json.loads((ROOT / "results/long-tail/fourth-search.json").read_text())["runs"]
    start, run = (runs[name]["seconds"] for name in ("long-pretrain-100", "long-aligned"))
    assert f"the start took {start:.0f} s" in words()
    assert f"the run from it {run:.0f} s" in words()
    assert start + run < 300, "less than five minutes"
    assert {round(seconds / 60) for ending, _ in KINDS for seconds in folds_of(ending, "seconds")} == {16}


def test_the_page_says_how_many_settings_each_kind_had():
    counts = dict.fromkeys(("fixmatch", "debiaspl", "alone", "aligned", "adjusted"), 0)
    found = searched("search", "second-search", "third-search", "fourth-search")
    for method, settings in found:
        if method:
            counts["fixmatch"] += not any(one.startswith("algorithm=") for one in settings)
        elif f"correction={ALIGNED}" in settings:
            counts["aligned"] += 1
        elif "correction=alignment+logit-adjustment" in settings:
            counts["adjusted"] += 1
        elif not any(one.startswith(("correction=", "algorithm=")) for one in settings - {"correction=debiaser"}):
            counts["alone" if "strength=0" in settings else "debiaspl"] += 1
    assert (
        "FixMatch had {fixmatch} settings on fold 100, DebiasPL {debiaspl}, its margins {alone} alone and {aligned} "
        "with aligned labels, and alignment with logit adjustment {adjusted}."
    ).format(**counts) in words()
    both = counts["alone"] + counts["aligned"]
    said = f"FixMatch had {counts['fixmatch']}, DebiasPL {counts['debiaspl']}, its margins {both}, and alignment with "
    assert f"{said}logit adjustment {counts['adjusted']};" in RECIPE_WORDS[START]


def test_the_recipes_are_what_was_best_on_fold_100():
    for ending, what in (("-fixmatch", "FixMatch, "), ("", "DebiasPL, "), ("-margins", ALIGNED)):
        found = {}
        for search, name, told in RUNS:
            if told.startswith(what) and not name.startswith("long-"):
                run = json.loads((ROOT / f"results/long-tail/{search}.json").read_text())["runs"][name]
                found[run["command"]] = run["accuracy"]
        typed = re.findall(r"--set (\S+)", max(found, key=lambda command: found[command]))
        best = RECIPES["cifar10-lt100-10pct-start"].with_settings(typed)
        if ending == "-fixmatch":
            best = RECIPES["cifar10-lt100-10pct-start-fixmatch"].with_settings(typed)
        recipe = RECIPES[f"cifar10-lt100-10pct-start{ending}"]
        assert computed(best) == replace(computed(recipe), start="runs/lt-pretrain-100")
        assert computed(recorded(ending)) == computed(recipe), "the folds"


PROTOCOL = (
    ("-fixmatch", "FixMatch"),
    ("", "DebiasPL, strength 1"),
    ("-margins", "DebiasPL's margins alone"),
    ("-abc", "ABC with DebiasPL, strength 1"),
    ("-simpro", "SimPro"),
)


def test_the_page_prints_the_standard_protocol():
    lines = [("accuracy %, one fold", "as the labels", "labels right %", "reversed", "labels right %")]
    last: dict[tuple[str, str], tuple[float, list[float]]] = {}
    for ending, what in PROTOCOL:
        cells = []
        for unlabeled in ("", "-reversed"):
            path = ROOT / f"results/long-tail/cifar10-lt-500-4000-g100{unlabeled}-start{ending}.json"
            (fold,) = json.loads(path.read_text())["folds"]
            last[ending, unlabeled] = 100 * fold["accuracy"], fold["recall"]
            cells += [f"{100 * fold['accuracy']:.1f}", f"{100 * fold['log'][-1]['pseudo_accuracy']:.0f}"]
        lines.append((what, *cells))
    page = (ROOT / "docs/lab/debiasing.md").read_text()
    assert f"<!-- table protocol -->\n\n{over_seeds.markdown(lines)}\n" in page
    more, less = (last["", there][0] - last["-fixmatch", there][0] for there in ("", "-reversed"))
    assert f"DebiasPL is {points(more)[1:]} points above FixMatch" in words()
    assert f"it is {points(less)[1:]} points *below*" in words()
    trucks = (f"{100 * last[ending, '-reversed'][1][-1]:.0f}" for ending in ("-fixmatch", ""))
    assert "from {} % of the trucks to {} %".format(*trucks) in words()
    kept = {}
    for ending in ("-fixmatch", ""):
        path = ROOT / f"results/long-tail/cifar10-lt-500-4000-g100-reversed-start{ending}.json"
        last_line = json.loads(path.read_text())["folds"][0]["log"][-1]
        kept[ending] = last_line["pseudo_labels"][-1], last_line["pseudo_right_labels"][-1]
    assert kept[""][0] == kept[""][1]
    assert f"kept {kept[''][0]:,} labels of trucks, all right, FixMatch {kept['-fixmatch'][0]:,}." in words()
