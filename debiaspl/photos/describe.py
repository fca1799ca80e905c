"""What training on photos has shown, in a table and in a plain sentence. Small numbers are told as such."""

from typing import Any

from debiaspl.photos.run import BASELINE, Outcome
from debiaspl.report.chance import wilson

HEADER = ("", "right", "of", "accuracy", "95 % interval", "worst class")


def rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """The baseline, then the run itself."""
    semi = "supervised" if outcome.baseline is None else "DebiasPL"
    both = [("supervised", outcome.baseline), (semi, outcome.semi)]
    return [_row(name, results) for name, results in both if results is not None]


def caption(outcome: Outcome) -> str:
    check = outcome.check
    if not check.folds:
        return "On the labels it was trained with: this tells nothing of other photos."
    if check.all_in_turn:
        return f"Each of {check.labels} labels was predicted by one of {check.folds} models that did not learn from it."
    return f"On {check.labels} labels that were held out."


def verdict(outcome: Outcome) -> str:
    """Whether the unlabeled photos have helped."""
    if outcome.baseline is None:
        return "Every photo has a label, so there was nothing to learn without one: this is a supervised model."
    if not outcome.check.folds:
        return "Whether the unlabeled photos have helped cannot be told: no class has a second label to check with."
    ours, theirs, total = _right(outcome.semi), _right(outcome.baseline), int(outcome.semi["test"])
    better, worse = max(ours, theirs), min(ours, theirs)
    chance = " With so few labels that may be chance." if wilson(better, total)[0] <= wilson(worse, total)[1] else ""
    if ours <= theirs:
        return (
            f"Semi-supervised training did not help on these labels: {ours} of {total} right, and {theirs} from the "
            f"labels alone.{chance} The supervised model is in the folder {BASELINE}; more labels help both."
        )
    numbers = f"{ours} of {total} labels right, instead of {theirs}"
    if chance:
        return f"The unlabeled photos may have helped: {numbers}. With so few labels that may be chance."
    return f"The unlabeled photos help: {numbers}."


def _row(name: str, results: dict[str, Any]) -> tuple[str, ...]:
    right, total = _right(results), int(results["test"])
    low, high = wilson(right, total)
    return (
        name,
        f"{right:,}",
        f"{total:,}",
        f"{100 * right / total:.0f} %",
        f"{100 * low:.0f} to {100 * high:.0f} %",
        f"{100 * results['worst_recall']:.0f} %",
    )


def _right(results: dict[str, Any]) -> int:
    return sum(row[number] for number, row in enumerate(results["confusion"]))
