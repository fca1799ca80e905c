"""Which images to label first, chosen by features, which are computed behind the page; and what the labels so far are
worth, after every ten of them."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from debiaspl.data import UNLABELED
from debiaspl.data.lazy import Progress
from debiaspl.data.listing import Listing
from debiaspl.deploy import SavedModel
from debiaspl.deploy.next import UNKNOWN, Learned, Pool, SeenPool, see_pool
from debiaspl.features import FeatureTable
from debiaspl.features.estimate import Estimate, estimate, held_out, suspects
from debiaspl.features.shares import RANDOM
from debiaspl.label.table import Table
from debiaspl.photos.encoding import PhotoEncoding
from debiaspl.training.process import find_device

FIRST = 500
"""Images that are encoded before the first choice; each time after it, twice as many."""
MOST = 20_000
"""Images that are compared at a time. Of a larger folder, others in random order come after them, until all were."""
EVERY = 10
"""Labels after which the rest is chosen again, and the accuracy is estimated."""
LOT = 5
"""One image in so many is asked at random: only such labels tell how good the model of all of them is."""
MOST_OTHERS = 5_000
"""Images without a label whose predictions are looked at, so that an estimate takes seconds in any folder."""
SHOWN = 20
"""Labels that are shown for a second look."""


class Standing(NamedTuple):
    """What the labels so far are worth."""

    estimate: Estimate
    doubts: list[dict[str, Any]]
    """Labels that look wrong: of the file ``name``, the class that is more likely, and whether a copy has it."""


def standing(
    features: Tensor,
    files: Sequence[str],
    classes: Sequence[str],
    answers: Mapping[str, str | None],
    asked: Mapping[str, str],
) -> Standing | None:
    """``features``, (N, D), are those of the ``files``. None with labels of less than two classes, or of all images."""
    number = {name: place for place, name in enumerate(classes)}
    given = torch.tensor([number.get(answers.get(file) or "", UNLABELED) for file in files])
    known = (given >= 0).nonzero().flatten().tolist()
    others = [place for place, file in enumerate(files) if file not in answers]
    if len(set(given[known].tolist())) < 2 or not others:
        return None
    rows = [*known, *others[:: -(-len(others) // MOST_OTHERS)]]
    own, labels = features[rows], given[rows]
    at_random = torch.tensor([asked.get(files[place]) == RANDOM for place in rows])
    table = FeatureTable(own, unit=True, device=torch.device("cpu"))
    held = held_out(table, labels, at_random)
    found = estimate(table, labels, len(classes), at_random, held)
    doubts = suspects(own, held)[:SHOWN]
    told = [{"name": files[rows[one.row]], "other": classes[one.other], "twin": one.twin} for one in doubts]
    return Standing(found, told)


class Stopped(Exception):  # noqa: N818 - not an error
    """The session has ended."""


class Guide:
    """Chooses ``count`` images at a time among those that it has read."""

    def __init__(
        self,
        read: Callable[[Sequence[int], Progress], SeenPool],
        files: Sequence[str],
        table: Table,
        classes: Sequence[str],
        first: int = MOST,
        count: int = 200,
    ) -> None:
        """``read`` may raise where its ``Progress`` does; ``first`` images are read before the first choice."""
        self._files, self._table, self._classes, total = files, table, classes, len(files)
        self._read, self._count = read, count
        self._order = random.Random(0).sample(range(total), total)
        self._start = self._end = 0
        self._keys: list[int] = []
        self._pool: Pool | None = None
        self.looked, self.total = 0, total
        self.first = min(first, total)
        self.unreadable: dict[int, str] = {}
        """Image -> reason."""
        self.stopped = False
        self.standing: Standing | None = None
        """What the labels so far are worth; None where that cannot be said yet."""
        self._counted = 0

    def learn(self) -> bool:
        """Read images; returns whether there are more to read. Raises Stopped soon after ``stopped`` was set."""
        if self._end - self._start >= MOST:
            self._start, size = self._end, MOST
        else:
            size = min(max(self.first, 2 * self._end), MOST)
        self._end = min(self._start + size, self.total)
        answered = [key for key, file in enumerate(self._files) if file in self._table.answers]
        keys = list(dict.fromkeys(self._order[self._start : self._end] + answered))
        self._keys, self._pool, unreadable = self._read(keys, self._watch)
        self.unreadable |= unreadable
        self._watch(self._end - self._start, self._end - self._start)
        return self._end < self.total

    def _watch(self, done: int, total: int) -> None:
        self.looked = min(self._start + done, self._end)
        if self.stopped:
            raise Stopped
        self.estimate()

    def choose(self, answered: set[int]) -> list[tuple[int, str]]:
        """Images to show next, and how they were chosen; none if all that were read are answered."""
        answers = self._table.answers
        labels = {place: answers.get(self._files[key]) for place, key in enumerate(self._keys) if key in answered}
        if self._pool is None or len(labels) == len(self._keys):
            return []
        chosen = {pick.place: pick.asked for pick in self._pool.choose(self._count, labels)}
        left = [place for place in range(len(self._keys)) if place not in labels]
        coverage, lots = iter(chosen), iter(random.Random(len(labels)).sample(left, len(left)))
        mixed: dict[int, str] = {}
        for turn in range(len(labels), len(labels) + len(chosen)):
            at_random = turn % LOT == LOT - 1
            place = next((place for place in (lots if at_random else coverage) if place not in mixed), None)
            if place is not None:
                mixed[place] = RANDOM if at_random else chosen[place]
        return [(self._keys[place], asked) for place, asked in mixed.items()]

    def estimate(self) -> None:
        """Tell what the labels are worth, if there are ten more, or fewer, than when that was done before."""
        answers = self._table.answers
        count = sum(label is not None for label in answers.values()) // EVERY
        if self._pool is not None and count != self._counted:
            self._counted = count
            files = [self._files[key] for key in self._keys]
            threads = torch.get_num_threads()
            # Leaves a core to the page. Steps this small are not faster with two, and much slower if one is taken.
            torch.set_num_threads(1)
            try:
                self.standing = standing(self._pool.features, files, self._classes, answers, self._table.asked)
            finally:
                torch.set_num_threads(threads)

    @property
    def note(self) -> str:
        """What is being done, for the page; empty when all images are read."""
        if self.looked >= self.total:
            return ""
        by_chance = f" They come in random order until {self.first:,} are read." if self._pool is None else ""
        return f"The images are being read: {self.looked:,} of {self.total:,}.{by_chance}"


def encoder_guide(listing: Listing, name: str, folder: Path, table: Table, classes: Sequence[str]) -> Guide:
    """Chooses images that cover most of those that are encoded. ``folder`` is where features are kept."""

    @cache
    def encoding() -> PhotoEncoding:
        return PhotoEncoding(listing, name, find_device(None).type, folder)

    return Guide(lambda keys, watch: encoding().pool(keys, watch), listing.files, table, classes, FIRST, 1_000)


def run_guide(
    model: SavedModel,
    root: Path,
    files: Sequence[str],
    table: Table,
    classes: Sequence[str],
    learned: Learned = UNKNOWN,
) -> Guide:
    """Chooses images that ``debiaspl next`` would pick."""

    images = model.photos(root, files)
    return Guide(lambda keys, watch: see_pool(model, images, keys, watch, learned), files, table, classes)
