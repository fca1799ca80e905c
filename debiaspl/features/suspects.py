"""Labels that look wrong, for a second look: those that a confident cross-check contradicts, and two labels of one
photo."""

from typing import NamedTuple

from torch import Tensor

from debiaspl.features.estimate import HeldOut
from debiaspl.graph import directions, nearest

SAME = 1 - 1e-5
"""Photos whose features have this cosine are copies."""

CONFIDENT = 0.75
"""A model that is less sure does not contradict a label."""


class Suspect(NamedTuple):
    """A label that looks wrong."""

    row: int
    other: int
    """The class that is more likely."""
    twin: bool = False
    """Whether that is the label of a copy of the photo."""


def suspects(features: Tensor, held: HeldOut) -> list[Suspect]:
    """Copies with two labels, then labels that the cross-check contradicts, the most confident first. ``features``,
    (N, D), are those of all rows. The only label of a class cannot be checked."""
    copies = twins(features, held.rows, held.label)
    wrong = ~held.right & (held.confidence > CONFIDENT)
    order = [at for at in held.confidence.argsort(descending=True, stable=True).tolist() if wrong[at]]
    seen = {one.row for one in copies}
    checked = [Suspect(int(held.rows[at]), int(held.predicted[at])) for at in order]
    return copies + [one for one in checked if one.row not in seen]


def twins(features: Tensor, rows: Tensor, label: Tensor) -> list[Suspect]:
    """Rows whose nearest one among the labeled ``rows`` is a copy with another label."""
    if len(rows) < 2:
        return []
    near = nearest(directions(features[rows], features.float().mean(0)), 1)
    other = label[near.places[:, 0]]
    found = ((near.similarity[:, 0] >= SAME) & (other != label)).nonzero().flatten()
    return [Suspect(int(rows[at]), int(other[at]), twin=True) for at in found.tolist()]
