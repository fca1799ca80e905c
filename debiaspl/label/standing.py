"""What the labels so far are worth: computed behind the page, after every ten of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from debiaspl.deploy.next import RANDOM

if TYPE_CHECKING:
    from torch import Tensor

    from debiaspl.features.estimate import Estimate

MOST = 5_000
"""Images without a label that are used, so that it takes seconds in any folder."""
SHOWN = 20
"""Labels that are shown for a second look."""


class Doubt(NamedTuple):
    """A label that looks wrong."""

    file: str
    other: str
    """The class that is more likely."""
    twin: bool
    """Whether that is the label of a copy of the image."""


class Standing(NamedTuple):
    """What the labels so far are worth."""

    estimate: "Estimate"
    doubts: list[Doubt]


def standing(
    features: "Tensor",
    files: Sequence[str],
    classes: Sequence[str],
    answers: Mapping[str, str | None],
    asked: Mapping[str, str],
) -> Standing | None:
    """``features``, (N, D), are those of the ``files``. None with labels of less than two classes, or of all images."""
    import torch

    from debiaspl.features import FeatureTable
    from debiaspl.features.estimate import estimate, held_out, suspects

    number = {name: place for place, name in enumerate(classes)}
    given = [number.get(answers.get(file) or "", -1) for file in files]
    known = [place for place, label in enumerate(given) if label >= 0]
    others = [place for place, file in enumerate(files) if file not in answers]
    if len({given[place] for place in known}) < 2 or not others:
        return None
    rows = [*known, *others[:: -(-len(others) // MOST)]]
    own, labels = features[rows], torch.tensor([given[place] for place in rows])
    at_random = torch.tensor([asked.get(files[place]) == RANDOM for place in rows])
    with _one_thread():
        table = FeatureTable(own, unit=True, device=torch.device("cpu"))
        held = held_out(table, labels, at_random)
        found = estimate(table, labels, len(classes), at_random, held)
        doubts = [Doubt(files[rows[one.row]], classes[one.other], one.twin) for one in suspects(own, held)]
    return Standing(found, doubts[:SHOWN])


@contextmanager
def _one_thread() -> Iterator[None]:
    """Leaves a core to the page. Steps this small are not faster with two, and ten times slower if one is taken."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
