"""Which images to label first, by a trained run."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from debiaspl.deploy import SavedModel
    from debiaspl.graph import Graph

COUNT = 200
"""Images that are chosen at a time."""
MOST = 20_000
"""Images that the run reads: of a larger folder, this many at even distances."""


class RunGuide:
    """Chooses the images that ``debiaspl next`` would pick. The first call reads the images, later ones do not; each
    call uses the answers so far."""

    def __init__(
        self, model: "SavedModel", root: Path, files: Sequence[str], answers: Mapping[str, str | None] | None = None
    ) -> None:
        """``answers`` are the classes of files, and grow during labelling; None: no class."""
        self._model, self._root, self._files = model, root, files
        self._answers = {} if answers is None else answers
        self._graph: Graph | None = None
        self._places = [place * len(files) // min(MOST, len(files)) for place in range(min(MOST, len(files)))]
        self._seen: tuple[list[int], Tensor, Tensor] | None = None
        self.looked = 0
        self.total = len(self._places)
        self._stopped = False

    def stop(self) -> None:
        """Choose no more; reading ends with the current batch."""
        self._stopped = True

    def __call__(self, answered: Iterable[int]) -> list[int]:
        from debiaspl.deploy import pick_next
        from debiaspl.deploy.next import with_given_labels
        from debiaspl.graph import Graph

        if self._seen is None:
            self._seen = self._look()
        keys, features, probabilities = self._seen
        done = set(answered)
        taken = [place for place, key in enumerate(keys) if key in done]
        if self._stopped or len(taken) == len(keys):
            return []
        said = dict(self._answers)  # another thread adds to it
        labels = {place: label for place in taken if (label := said.get(self._files[keys[place]])) is not None}
        if labels:
            self._graph = self._graph or Graph.of(features)
            probabilities = with_given_labels(self._graph, probabilities, labels, self._model.classes)
        return [keys[place] for place in pick_next(features, probabilities, COUNT, taken)]

    def _look(self) -> "tuple[list[int], Tensor, Tensor]":
        import torch

        keys, features, probabilities = list[int](), [], []
        images = self._model.photos(self._root, [self._files[place] for place in self._places])
        for seen in self._model.see(images, workers=1):
            features.append(seen.features.cpu())
            probabilities.append(seen.probabilities.cpu())
            keys += [self._places[position] for position in seen.positions.tolist()]
            self.looked += len(seen.positions) + len(seen.skipped)
            if self._stopped:
                break
        return keys, torch.cat(features), torch.cat(probabilities)
