"""The findings of a report in plain words, each with the next thing to do."""

from typing import Any

import numpy as np

from debiaspl._measures import EVEN, LEVEL, Finding, told
from debiaspl._over_seeds import MIN_PAIRS, in_brackets
from debiaspl.report.runs.methods import Method, differences, what_was_tested

FEW = 50
"""Up to this many images of a class, a count is given instead of a share."""
MUCH = 0.1
"""Pseudo-labels are called biased from this distance to the shares they should have."""


def run_findings(methods: list[Method], names: list[str]) -> list[Finding]:
    """Features that collapse; and, of runs that have ended, the best method, its pseudo-labels and its worst class."""
    ended, features = [method for method in methods if method.ended()], _features(methods)
    if not ended:
        return [*features, *_starts(methods)]
    best = max(ended, key=lambda method: (method.accuracy() or {})["mean"])
    unfair = differences(ended)
    found = [*features, _accuracy(best, ended, bool(unfair)), *_pseudo_labels(best, ended), _worst(best, names)]
    if unfair:
        differ = f"These runs differ in more than the method: {'; '.join(unfair)}."
        todo = "Give them the same settings (--set) and seeds before you compare the methods."
        found.insert(0, Finding(differ, todo, "accuracy"))
    return found


def _starts(methods: list[Method]) -> list[Finding]:
    """Runs that have ended, with no label to measure them."""
    return [
        Finding(
            f"{run.name} has learned features of {run.results['unlabeled']:,} images without labels. It has no "
            "classifier, so there is no accuracy.",
            f"Start a run with labels from it: debiaspl train PHOTOS --set start={run.folder}",
            "training",
        )
        for method in methods
        for run in method.runs
        if run.results is not None
    ]


def _features(methods: list[Method]) -> list[Finding]:
    """Warnings that the runs have logged about their features: the first one of each method and kind."""
    found: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for method in methods:
        for run in method.runs:
            for record in run.log:
                if said := record.get("warning"):
                    found.setdefault((method.title, said["kind"]), []).append((run, said))
    runs = {method.title: len(method.runs) for method in methods}
    findings = []
    for (title, _), several in found.items():
        run, said = several[0]
        more = f" This holds for {len(several)} of {runs[title]} runs." if runs[title] > 1 else ""
        whose = f"{title}, seed {run.recipe.seed}: " if sum(runs.values()) > 1 else ""
        findings.append(Finding(f"{whose}{said['fact']}{more}", said["todo"], "health"))
    return findings


def _accuracy(best: Method, ended: list[Method], unfair: bool) -> Finding:
    found = best.accuracy()
    assert found is not None
    images, measured_on = best.ended()[0]["test"], what_was_tested(best.ended()[0])
    seeds = f", the mean of {found['seeds']} seeds" if found["seeds"] > 1 else ""
    who = f"The nearest class mean, on features of {best.title}," if best.is_start else best.title
    fact = f"{who} recognises {100 * found['mean']:.1f} % of {images:,} {measured_on}{seeds}"
    others = [method for method in ended if method is not best]
    # The best one is found by looking at every pair.
    pairs = len(ended) * len(others) // 2
    chances = []
    for other in others:
        difference = best.difference(other)
        if difference is not None:
            side = "above" if difference["mean"] >= 0 else "below"
            fact += f"; {abs(100 * difference['mean']):.1f} points {side} {other.title}"
            if difference["p"] is not None:
                chances.append(min(1.0, pairs * difference["p"]))
                fact += f" ({told(chances[-1])})"
            elif len(difference["per_seed"]) > 1:
                fact += f" ({in_brackets(difference)})"
    if not others and best.is_start:
        todo = f"Start a run with labels from it: --set start={best.runs[0].folder}"
    elif not others:
        todo = "To compare, train the same recipe with --method fixmatch, and with --method supervised."
    elif unfair:
        todo = "The difference may come from these other settings, not from the method."
    elif found["seeds"] == 1:
        todo = "One seed each: where the intervals overlap, the difference may be chance."
    elif not chances:
        todo = f"A test of the differences needs {MIN_PAIRS} seeds or more."
    elif len(chances) == len(others) and max(chances) <= LEVEL:
        todo = f"Use {best.title}."
    else:
        todo = "More seeds may make the other differences significant."
    return Finding(f"{fact}.", todo, "accuracy")


def _pseudo_labels(best: Method, ended: list[Method]) -> list[Finding]:
    """The distance of pseudo-labels from the shares they should have, and the classes that have almost none."""
    measures = {method.title: pseudo for method in ended if (pseudo := method.pseudo()) is not None}
    if not measures:
        return []
    shown = []
    for title, pseudo in measures.items():
        few = pseudo["almost_none"]
        classes = f" ({few:.3g} class{'' if few == 1 else 'es'} with almost none)" if few else ""
        shown.append(f"{title} {100 * pseudo['distance']:.0f} %{classes}")
    shares = " or ".join(dict.fromkeys(pseudo["reference"] for pseudo in measures.values()))
    own = measures.get(best.title)
    if own is None:
        todo = f"{best.title}, the best one, does not use pseudo-labels: those of the others do not help yet."
    elif own["distance"] <= MUCH and not own["almost_none"]:
        todo = "Nothing to do here." if len(shown) == 1 else f"Nothing to do for {best.title}, the best one."
    elif own["reference"] == EVEN:
        todo = "If the images are balanced, a larger strength removes more of this."
    else:
        todo = "A larger strength removes more of this."
    fact = f"Pseudo-labels of the second half of training that would have to change class to match {shares}: "
    return [Finding(f"{fact}{', '.join(shown)}.", todo, "pseudo")]


def _worst(best: Method, names: list[str]) -> Finding:
    cells = best.cells
    recall = np.where(cells.of_true > 0, cells.right / np.maximum(cells.of_true, 1), np.inf)
    worst = int(recall.argmin())
    right, total = int(cells.right[worst]), int(cells.of_true[worst])
    share = f"{100 * recall[worst]:.0f} % of its images"
    if total <= FEW:  # a share of five labels would be read as a share of all photos
        checked = any("check" in one for one in best.ended())
        share = f"{right} of {total} {'labels' if checked else 'images'}"
    fact = f"'{names[worst]}' is recognised least by {best.title}: {share}"
    if (mistaken := cells.taken_for().get(worst)) is None:
        return Finding(f"{fact}.", "Nothing to do here.", "recall")
    taken, often = mistaken
    are = f"{100 * often / total:.0f} % are" if total > FEW else f"{often} {'is' if often == 1 else 'are'}"
    return Finding(
        f"{fact}; {are} taken for '{names[taken]}'.",
        f"Label a few images of '{names[worst]}' and '{names[taken]}'.",
        "confusion",
    )
