"""Numbers and names as findings write them."""

from debiaspl.report.audit.numbers import Audit

NOTHING_SHOWN = "No significant bias found; more images could show a smaller one."


def of_known(audit: Audit) -> str:
    """The beginning of a sentence about the images with a known class, where these are not all."""
    return f"Of {_known(audit)}, " if _partly_known(audit) else ""


def among_known(audit: Audit) -> str:
    """The end of such a sentence."""
    return f", of {_known(audit)}" if _partly_known(audit) else ""


def images_known(audit: Audit, count: int) -> str:
    """A number of images, with its verb."""
    if _partly_known(audit) and audit.agreement is not None and count == audit.agreement.known == 1:
        return f"{_known(audit)} is"
    which = f"of {_known(audit)}" if _partly_known(audit) else f"image{'s' if count > 1 else ''}"
    return f"{count:,} {which} {'are' if count > 1 else 'is'}"


def quoted(audit: Audit, number: int) -> str:
    """The name of a class, not too long."""
    name = audit.classes[number]
    return f"'{name if len(name) <= 60 else name[:59] + '…'}'"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def shares_told(audit: Audit) -> str:
    """The shares that predictions are compared with."""
    return "even shares" if audit.shares.true is None else "the true shares"


def ratio(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _partly_known(audit: Audit) -> bool:
    return audit.agreement is not None and audit.agreement.known < len(audit.predictions)


def _known(audit: Audit) -> str:
    assert audit.agreement is not None
    known = audit.agreement.known
    return f"the {f'{known:,} images' if known > 1 else 'one image'} with a known class"
