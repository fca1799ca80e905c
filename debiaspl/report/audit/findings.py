"""In plain words: the three things a person should know, each with the next thing to do.

A finding advises only on what is more than chance (``debiaspl.report.chance``); what is not is told as that.
"""

from debiaspl.report.audit.correcting import correction_finding
from debiaspl.report.audit.favoured import MUCH, Favoured, favoured
from debiaspl.report.audit.neglected import neglected_finding
from debiaspl.report.audit.numbers import Audit
from debiaspl.report.audit.picks import UNCERTAIN
from debiaspl.report.audit.words import NOTHING_SHOWN, among_known, of_known, quoted, times
from debiaspl.report.chance import told
from debiaspl.report.finding import Finding

__all__ = ["Finding", "findings"]


def findings(audit: Audit, where: str = "below") -> list[Finding]:
    """Which class is favoured, which is neglected, and what a correction would change.

    ``where`` says where the images are shown.
    """
    return [_favoured(audit, where), neglected_finding(audit), correction_finding(audit, where)]


def _favoured(audit: Audit, where: str) -> Finding:
    most = favoured(audit)
    name = quoted(audit, most.number)
    if most.times < MUCH:
        measure = f"as it occurs{among_known(audit)}" if most.by_truth else "as an even share"
        return Finding(
            f"No class is favoured much: {name}, the most so, is predicted {most.times:.1f} times as often {measure}.",
            "Look at the classes with the lowest recall instead." if most.by_truth else "Nothing to mend here.",
            "counts",
        )
    fact = f"{_how_often(audit, most)}; {told(most.chance)}."
    if not most.holds:
        return Finding(fact, NOTHING_SHOWN, "counts", most.chance)
    if audit.predictions.confidence is None:
        todo = f"Label a few of its images. With a confidence for each, the least certain ones are shown {where}."
        return Finding(fact, todo, "counts", most.chance)
    shown = min(UNCERTAIN, int(audit.shares.counts[most.number]))
    return Finding(fact, f"Of its {shown} least certain images, shown {where}, label a few.", "uncertain", most.chance)


def _how_often(audit: Audit, most: Favoured) -> str:
    name, count, total = quoted(audit, most.number), int(audit.shares.counts[most.number]), len(audit.predictions)
    if not most.by_truth:
        return f"{name} is predicted {most.times:.1f} times as often as an even share ({count:,} of {total:,} images)"
    assert audit.agreement is not None
    cells = audit.agreement.cells
    predicted, true = int(cells.of_predicted[most.number]), int(cells.of_true[most.number])
    if not true:
        return f"{of_known(audit)}{name} is predicted {times(predicted)}, and none is true"
    return (
        f"{of_known(audit)}{name} is predicted {most.times:.1f} times as often as it occurs "
        f"({times(predicted)}; {true:,} {'is' if true == 1 else 'are'} true)"
    )
