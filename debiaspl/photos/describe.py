"""What training on photos has shown, as a table and in plain sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from debiaspl._printable import printable
from debiaspl._shares import distance, unlike
from debiaspl.data.text import shown
from debiaspl.features.crosscheck import paired
from debiaspl.photos.check import Outcome

FAR = 0.05
"""Shares that differ by less than this part of the photos are not called different."""


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
    """A note that labels with other class shares than the photos do not measure the accuracy on these."""
    labels, predicted = outcome.results.get("labels", []), outcome.results.get("check", {}).get("predicted", [])
    shares = outcome.results.get("shares", {}).get("estimate", predicted)
    if not unlike(labels, [share * sum(predicted) / sum(shares) for share in shares]):
        return ""
    if "shares" not in outcome.results:  # what a model predicts may be one class alone
        return (
            " The labels have other class shares than the photos seem to have: on all photos, the share can be another."
        )
    known = [pair for pair in zip(shares, outcome.chosen.recall, strict=True) if pair[1] is not None]
    right = sum(share * recall for share, recall in known if recall is not None) / sum(share for share, _ in known)
    return (
        " The labels have other class shares than the photos seem to have. Weighed by these, about "
        f"{100 * right:.0f} % of all photos are right."
    )


def about_shares(results: Mapping[str, Any], classes: Sequence[str]) -> list[str]:
    """The estimated class shares of the photos without a label, and, in a line, where the labels have others."""
    shares = results.get("shares")
    if not shares or not results.get("unlabeled"):
        return []
    names = [printable(name) for name in classes]
    parts = list(zip(names, *(shares[key] for key in ("estimate", "low", "high", "labels")), strict=True))
    order = sorted(parts, key=lambda part: -part[1])
    told = [f"{name} {_percent(share)} ({_percent(low)} to {_percent(high)})" for name, share, low, high, _ in order]
    lines = [f"Estimated shares of the photos without a label, with 95 % intervals, in %: {shown(told, limit=12)}."]
    apart = [part for part in parts if not part[2] <= part[4] <= part[3]]
    if apart and distance(shares["labels"], shares["estimate"]) >= FAR:
        name, share, _, _, given = max(apart, key=lambda part: abs(part[1] - part[4]))
        what = f"{name} is {_percent(given)} % of your labels, but about {_percent(share)} % of the other photos"
        lines.append(f"They differ from those of your labels: {what}.")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share > 0.02 else f"{100 * share:.1f}"


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
