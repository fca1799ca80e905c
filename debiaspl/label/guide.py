"""Which images to label first, by a trained run."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from debiaspl.deploy import SavedModel
    from debiaspl.deploy.next import Pool

COUNT = 200
"""Images that are chosen at a time."""
MOST = 20_000
"""Images that the run reads: of a larger folder, this many at even distances."""


class RunGuide:
    """Chooses the images that ``debiaspl next`` would pick. The first call reads the images, later ones do not; each
    call uses the answers so far."""

    def __init__(
        self,
        model: "SavedModel",
        root: Path,
        files: Sequence[str],
        answers: Mapping[str, str | None] | None = None,
        accuracy: float | None = None,
    ) -> None:
        """``answers`` are the classes of files, and grow during labelling; None: no class. ``accuracy`` is that of the
        model, if it was measured."""
        self._accuracy = accuracy
        self._model, self._root, self._files = model, root, files
        self._answers = {} if answers is None else answers
        self._places = [place * len(files) // min(MOST, len(files)) for place in range(min(MOST, len(files)))]
        self._keys, self._pool = list[int](), cast("Pool | None", None)
        self.looked = 0
        self.total = len(self._places)
        self._stopped = False

    def stop(self) -> None:
        """Choose no more; reading ends with the current batch."""
        self._stopped = True

    def __call__(self, answered: Iterable[int]) -> list[int]:
        if self._pool is None:
            self._keys, self._pool = self._look()
        done = set(answered)
        if self._stopped or done.issuperset(self._keys):
            return []
        answers = dict(self._answers)  # another thread adds to it
        labels = {place: answers.get(self._files[key]) for place, key in enumerate(self._keys) if key in done}
        return [self._keys[one.place] for one in self._pool.choose(COUNT, labels)]

    def _look(self) -> "tuple[list[int], Pool]":
        import torch

        from debiaspl.deploy.next import Pool

        keys, features, probabilities = list[int](), [], []
        images = self._model.photos(self._root, [self._files[place] for place in self._places])
        for seen in self._model.see(images, workers=1):
            features.append(seen.features.cpu())
            probabilities.append(seen.probabilities.cpu())
            keys += [self._places[position] for position in seen.positions.tolist()]
            self.looked += len(seen.positions) + len(seen.skipped)
            if self._stopped:
                break
        return keys, Pool(torch.cat(features), torch.cat(probabilities), self._model.classes, self._accuracy)
