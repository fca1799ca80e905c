"""Images that differ from each other and from those already seen, chosen while others are still being read.

Greedy k-center over the pixels of thumbnails takes the odd images first: measured on EuroSAT it found fewer classes
than chance. So distances are between a few numbers on colour, contrast and detail, and each pick is the farthest of a
few images drawn at random: odd ones come as rarely as they are.
"""

import numpy as np
from numpy.typing import NDArray

DRAWN = 5
"""Images among which the farthest is picked. 1 would be chance; all would be k-center."""
SIDE = 8
LENGTH = 7

Sketch = NDArray[np.float32]


def sketch(pixels: NDArray[np.uint8]) -> Sketch:
    """Mean and contrast of the colours and the amount of detail, of a small image (3, H, W)."""
    image = pixels.astype(np.float32) / 255
    grey = image.mean(0)
    detail = np.abs(np.diff(grey, axis=0)).mean() + np.abs(np.diff(grey, axis=1)).mean()
    contrast = np.log(0.01 + np.append(image.std((1, 2)), detail))
    return np.concatenate([image.mean((1, 2)), contrast]).astype(np.float32)


class Spread:
    """Candidates, and the centres they should be far from: images that were shown or have a label."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._candidates: dict[int, int] = {}
        self._keys: list[int] = []
        self._sketches, self._centres = _Rows(), _Rows()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: int, made: Sketch) -> None:
        self._candidates[key] = len(self._keys)
        self._keys.append(key)
        self._sketches.append(made)

    def add_centre(self, made: Sketch) -> None:
        """Add an image that was shown: similar ones can wait."""
        self._centres.append(made)

    def pick(self) -> int | None:
        """The next image to be shown, which becomes a centre."""
        if not self._keys:
            return None
        drawn = self._random.integers(len(self._keys), size=DRAWN)
        # Each number counts by how much it varies over the images.
        scale = self._sketches.filled.std(0) + 1e-6
        own, centres = self._sketches.filled[drawn] / scale, self._centres.filled / scale
        distance = np.square(own[:, None] - centres).sum(-1).min(-1, initial=np.inf)
        place = int(drawn[distance.argmax()])
        key = self._keys[place]
        self.add_centre(self._sketches.filled[place].copy())
        self.drop(key)
        return key

    def drop(self, key: int) -> None:
        """Remove a candidate; the last one takes its place."""
        place = self._candidates.pop(key, None)
        if place is None:
            return
        last = self._keys.pop()
        moved = self._sketches.pop()
        if last != key:
            self._keys[place], self._candidates[last] = last, place
            self._sketches.filled[place] = moved


class _Rows:
    """An array that grows."""

    def __init__(self) -> None:
        self._room, self._count = np.empty((256, LENGTH), np.float32), 0

    @property
    def filled(self) -> NDArray[np.float32]:
        return self._room[: self._count]

    def append(self, row: Sketch) -> None:
        if self._count == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._count] = row
        self._count += 1

    def pop(self) -> Sketch:
        self._count -= 1
        last: Sketch = self._room[self._count].copy()
        return last
