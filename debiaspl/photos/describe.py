"""What training on photos has shown, as a table and in plain sentences."""

from pathlib import Path

from debiaspl.features.crosscheck import paired
from debiaspl.photos.check import Outcome

UNEVEN = 3
"""A folder is called long-tailed if one class has this many times the photos of another."""


def caption(outcome: Outcome) -> str:
    check = outcome.check
    if not check.folds:
        return "Measured on the labels it was trained with: this says nothing about other photos."
    if not check.all_in_turn:
        return f"On {check.labels} labels that were held out.{_balanced(outcome)}"
    return (
        f"Each of {check.labels} labels was predicted by one of {check.folds} models that did not learn from it. These "
        f"models had fewer labels than the final model, which is usually better.{_balanced(outcome)}"
    )


def _balanced(outcome: Outcome) -> str:
    """A note that balanced labels do not measure the accuracy on a long-tailed folder."""
    labels, predicted = outcome.results.get("labels", []), outcome.results.get("check", {}).get("predicted", [])
    if not predicted or len(set(labels)) > 1 or max(predicted) < UNEVEN * max(min(predicted), 1):
        return ""
    return (
        " The labels are balanced over the classes, but the folder seems not to be: this is a mean over classes, and "
        "says little about the accuracy on all photos."
    )


def verdict(outcome: Outcome, unlabeled: int = 0) -> str:
    """Whether the unlabeled photos have helped: yes, no, or not significant with these labels."""
    if outcome.baseline is None and not unlabeled:
        return "Every photo has a label, so this is a supervised model."
    if outcome.baseline is None:
        return "This is a supervised model, as requested: it has learned from the labels only."
    if not outcome.check.folds:
        return "It is not known whether the unlabeled photos help: no class has a second label to check with."
    run, baseline = outcome.candidates[-1], outcome.baseline
    found = paired(run, baseline)
    numbers = f"{run.name} has {run.right} of {run.checked} labels right, the supervised model {baseline.right}"
    if run.right == baseline.right:
        numbers = f"{run.name} and the supervised model both have {run.right} of {run.checked} labels right"
    are = "label is" if found.more == 1 else "labels are"
    apart = f"{found.more} {are} right only with {run.name}, {found.less} only with the supervised model"
    if not found.significant:
        tested = f"; the difference is not significant ({apart})" if found.more + found.less else ", the same ones"
        return (
            f"These labels do not show whether the unlabeled photos help: {numbers}{tested}."
            f"{' On average over the sets of photos that we measured they do.' if outcome.frozen else ''}"
        )
    if found.more > found.less:
        return f"The unlabeled photos help: {numbers} ({apart})."
    return f"The unlabeled photos do not help here: {numbers} ({apart})."


def handed_out(outcome: Outcome, place: Path) -> str:
    """Which model is used from now on, and why."""
    chosen, run = outcome.chosen, outcome.candidates[-1]
    if chosen is run:
        return f"predict, next and export use this model: {run.name}."
    better = (
        f"it is significantly better on these labels than {run.name}: {chosen.right} of {chosen.checked} right instead "
        f"of {run.right}."
    )
    if not chosen.folder:
        return (
            f"The model of the run is {chosen.name}, because {better} Its predictions are in {place}/predictions.csv."
        )
    return (
        f"predict, next and export use the model {chosen.name}, in {place / chosen.folder}, because {better} Its "
        f"predictions of every photo are in {place / chosen.folder / 'predictions.csv'}. To use {run.name} anyway, "
        f"remove {place / 'chosen.json'}."
    )
