"""``debiaspl results --page results.html``: all results as one page with filters and charts."""

from collections.abc import Sequence
from math import copysign
from statistics import fmean
from typing import Any

from debiaspl.recipes.all_results import PROTOCOL, RAN, Line, Pair, all_pairs
from debiaspl.recipes.method_names import MARGINS_WORDS
from debiaspl.recipes.paper_tables import NOTES, SOURCES
from debiaspl.recipes.published import SOURCES as PROTOCOL_SOURCES
from debiaspl.report.pages import build_page, rounded

TITLE = "All results"
RECIPE_WORDS = {
    RAN["paper"]: "the settings, network and length of the paper. Only these numbers of ours are called reached or "
    "below.",
    RAN["minutes"]: "our own recipe for minutes: ResNet-9, FixMatch with a contrastive loss (contrastmatch), fewer "
    "steps, and with the Debiaser a margin on labeled images, which the paper does not have. Its settings were chosen "
    "on fold 100, where 50 of 55 runs had the Debiaser: FixMatch was not tuned separately.",
    RAN["start"]: "our own recipe that begins with features learned without labels: contrastmatch on a wider ResNet-9, "
    "with the Debiaser at strength 1. Settings were chosen on fold 100, which has the same test images as other folds. "
    "CIFAR-10 with 4 labels a class: at first with 21 runs of DebiasPL and 8 of FixMatch, by now with 32 of each; the "
    "best are the same for both; nothing was chosen by folds 3 to 5; folds 0 to 2 (learning_rate=0.015, "
    "average_decay=0.996) had been run before these settings were chosen: they are no clean test. CIFAR-10-LT, 100 to "
    "1, 10 % labeled: each method has the best of its own settings on that fold, of which FixMatch had 9, DebiasPL 5, "
    "its margins 18, and alignment with logit adjustment 6; labeled images are also unlabeled. 500/4000: settings of "
    f"that long tail. {MARGINS_WORDS}.",
    PROTOCOL: "settings and length that are usual for a standard long-tail protocol.",
}
READ = (
    "Top-1 % on the test set, of the averaged weights after the last step; no epoch is selected. A fold is a "
    "seed: other labeled images and other initial weights; but all folds of CIFAR-10 with few labels share one start. "
    "FixMatch is a recipe without the Debiaser, DebiasPL the same recipe with it; on CIFAR-10-LT, 10 % labeled, from a "
    "start, they have different thresholds. Intervals are Student's t, "
    "95 %, over folds; one fold has none. Minutes are those of a fold's whole process, with the start where the recipe "
    "has one; where several runs shared the GPU, each took longer. The paper trains DebiasPL for 2^19 steps, half of "
    "FixMatch's own length. In its main CIFAR-10 table FixMatch is marked as copied from other papers (CoMatch, "
    "FixMatch or CReST); 72.1, with balanced unlabeled images, is not."
)
SHARED = (
    "With the current minutes recipe, the first half of a fold is the same for FixMatch and DebiasPL, bit for bit: "
    "pseudo-labels are used only after it."
)


def page(lines: Sequence[Line]) -> str:
    """One self-contained HTML page."""
    return build_page(f"{TITLE} of debiaspl", values(lines))


def values(lines: Sequence[Line]) -> dict[str, Any]:
    """What the page shows."""
    return {
        "kind": "results",
        "read": READ,
        "shared": SHARED,
        "recipes": RECIPE_WORDS,
        "sources": [
            *SOURCES.items(),
            *((name, f"{words}, on the standard protocols") for name, words in PROTOCOL_SOURCES.items()),
        ],
        "gpus": sorted({line.gpu for line in lines if line.gpu}),
        "lines": [_line(line) for line in lines],
        "pairs": [_pair(pair) for pair in all_pairs(lines)],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "group": line.group,
        "cell": line.cell,
        "about": line.about,
        "note": NOTES.get(line.cell),
        "method": line.method,
        "recipe": line.recipe,
        "paper": line.paper,
        "others": list(line.others),
        "mean": rounded(fmean(line.accuracy)) if line.accuracy else None,
        "interval": rounded(list(line.interval)) if line.interval else None,
        "accuracy": list(line.accuracy),
        "folds": list(line.folds),
        "minutes": rounded(line.minutes),
        "together": line.together,
        "standing": line.standing,
        "ran": line.ran,
        "command": line.command,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "about": pair.about,
        "note": NOTES.get(pair.cell),
        "recipe": pair.recipe,
        "folds": list(pair.folds),
        "fixmatch": rounded(pair.fixmatch),
        "debiaspl": rounded(pair.debiaspl),
        "differences": list(pair.differences),
        "each": each_fold(pair),
        "interval": rounded(list(pair.interval)) if pair.interval else None,
        "verdict": pair.verdict,
    }


def each_fold(pair: Pair) -> str:
    """Its differences, as both pages print them."""
    return ", ".join(map(points, pair.differences))


def points(value: float) -> str:
    """With one decimal, halves rounded away from zero, so that rounding errors do not change the text."""
    return f"{round(value + copysign(1e-6, value), 1):+.1f}"
