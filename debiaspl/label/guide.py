"""Which images to label first: chosen by features, which are computed behind the page."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from debiaspl.data.listing import Listing

if TYPE_CHECKING:
    from debiaspl.deploy import SavedModel
    from debiaspl.deploy.next import Pool
    from debiaspl.photos.encoding import PhotoEncoding

FIRST = 500
"""Images that are encoded before the first choice."""
MOST = 20_000
"""Images that a run reads: of a larger folder, this many at even distances."""
Answers = Callable[[], Mapping[str, str | None]]
"""The classes of files so far; None: no class."""


class Stopped(Exception):  # noqa: N818 - not an error
    """The session has ended."""


class Guide:
    """Chooses among the images that it has read."""

    count: int
    """Images that are chosen at a time."""

    def __init__(self, files: Sequence[str], answers: Answers, total: int) -> None:
        self._files, self._answers = files, answers
        self._keys: list[int] = []
        self._pool: Pool | None = None
        self.looked, self.total = 0, total
        self.first = total
        """Images that are read before the first choice."""
        self.unreadable: dict[int, str] = {}
        """Image -> reason."""
        self.stopped = False

    def learn(self) -> bool:
        """Read images; returns whether there are more to read. Raises Stopped soon after ``stopped`` was set."""
        raise NotImplementedError

    def choose(self, answered: set[int]) -> list[tuple[int, str]]:
        """Images to show next, and how they were chosen; none if all that were read are answered."""
        answers = self._answers()
        labels = {place: answers.get(self._files[key]) for place, key in enumerate(self._keys) if key in answered}
        if self._pool is None or len(labels) == len(self._keys):
            return []
        return [(self._keys[pick.place], pick.asked) for pick in self._pool.choose(self.count, labels)]

    @property
    def note(self) -> str:
        """What is being done, for the page; empty when all images are read."""
        if self.looked >= self.total:
            return ""
        by_chance = f" They come in random order until {self.first:,} are read." if self._pool is None else ""
        return f"The images are being read: {self.looked:,} of {self.total:,}.{by_chance}"


class EncoderGuide(Guide):
    """Images that cover most of those that are encoded. Each time, twice as many are encoded as before."""

    count = 1_000

    def __init__(self, listing: Listing, name: str, folder: Path, answers: Answers) -> None:
        """``folder`` is where features are kept."""
        super().__init__(listing.files, answers, len(listing.files))
        self._listing, self._name, self._folder = listing, name, folder
        self.first = min(FIRST, self.total)
        self._order = random.Random(0).sample(range(self.total), self.total)
        self._encoding: PhotoEncoding | None = None

    def learn(self) -> bool:
        if self._encoding is None:
            from debiaspl.photos.encoding import PhotoEncoding
            from debiaspl.training.device import find_device

            self._encoding = PhotoEncoding(self._listing, self._name, find_device(None).type, self._folder)
        rows = self._order[: max(FIRST, 2 * self.looked)]
        self._keys, self._pool, self.unreadable = self._encoding.pool(rows, self._watch)
        return len(rows) < self.total

    def _watch(self, done: int, total: int) -> None:
        self.looked = done
        if self.stopped:
            raise Stopped


class RunGuide(Guide):
    """Images that ``debiaspl next`` would pick."""

    count = 200

    def __init__(
        self, model: "SavedModel", root: Path, files: Sequence[str], answers: Answers, accuracy: float | None = None
    ) -> None:
        """``accuracy`` is that of the model, if it was measured."""
        super().__init__(files, answers, min(MOST, len(files)))
        self._model, self._root, self._accuracy = model, root, accuracy
        self._places = [place * len(files) // self.total for place in range(self.total)]

    def learn(self) -> bool:
        import torch

        from debiaspl.deploy.next import Pool

        keys, features, probabilities = list[int](), [], []
        images = self._model.photos(self._root, [self._files[place] for place in self._places])
        for seen in self._model.see(images, workers=1):
            features.append(seen.features.cpu())
            probabilities.append(seen.probabilities.cpu())
            keys += [self._places[position] for position in seen.positions.tolist()]
            self.unreadable |= {self._places[position]: why for position, why in seen.skipped.items()}
            self.looked += len(seen.positions) + len(seen.skipped)
            if self.stopped:
                raise Stopped
        self._keys = keys
        self._pool = Pool(torch.cat(features), torch.cat(probabilities), self._model.classes, self._accuracy)
        return False
