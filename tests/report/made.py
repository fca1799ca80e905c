"""Predictions that are made up, with a bias that is known."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HOSTILE = "<img src=x onerror=\"document.title='broken'\">"


@dataclass(frozen=True, eq=False)
class Made:
    """A model that favours the first classes, and takes a class for the next one now and then."""

    logits: Any
    truth: Any
    classes: list[str]
    names: list[str]

    @property
    def probabilities(self) -> Any:
        powers = np.exp(self.logits.astype(np.float64))
        return powers / powers.sum(1, keepdims=True)

    @property
    def label(self) -> Any:
        return self.logits.argmax(1)

    @property
    def confidence(self) -> Any:
        return self.probabilities.max(1)


def made(images: int, classes: int, seed: int = 0) -> Made:
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, images)
    logits = random.normal(0, 1, (images, classes)).astype(np.float32)
    logits[np.arange(images), truth] += 3
    logits[np.arange(images), (truth + 1) % classes] += 1
    logits += np.linspace(1.5, -1.5, classes, dtype=np.float32)
    names = [f"class {number}" for number in range(classes)]
    return Made(logits, truth, names, [f"{row:05d}.png" for row in range(images)])


def write_csv(path: Path, columns: dict[str, Any]) -> Path:
    rows = zip(*(list(values) for values in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_npz(path: Path, data: Made, **changes: Any) -> Path:
    arrays = {
        "logits": data.logits,
        "truth": data.truth,
        "classes": np.array(data.classes),
        "file_name": np.array(data.names),
    }
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})
    return path
