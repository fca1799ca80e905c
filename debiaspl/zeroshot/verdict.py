"""Does the teacher recognise anything in these photos? A verdict without labels, from three measures.

* clusters: similar photos get the same class, and different photos get different ones.
* decided: it is confident for each photo, and predicts different classes for different photos.
* prompts: its predictions stay the same with other templates for the class names.

The mean of the first two, ``clarity``, correlates with the accuracy where true labels are known. A teacher that guesses
can agree with itself over prompts, but one that recognises the classes always does (results/zeroshot/verdict.json,
where mirrored photos were tried too: they changed no verdict). None of them can detect a teacher that makes the same
error every time, for example because a class name has another meaning; labels can: ``zeroshot/check.py``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.encoders.templates import TEMPLATES
from debiaspl.graph import directions
from debiaspl.graph.neighbours import clusters
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.teacher import EncodingTeacher

SAMPLE = 2000
LEAST_IMAGES = 50
PROMPTS = ("name", "general", "satellite", "texture")
"""Sets of templates for the comparison, without the one that the predictions use."""
GOOD, DOUBTFUL, CHANCE = "good", "doubtful", "at chance"
NEEDED = {"clarity": 0.33, "prompts": 0.6}
"""Values of a good teacher: they were reached in every draw where the teacher was far better than chance."""
LEAST = {"clarity": 0.17, "prompts": 0.3}
"""Below one of these, the teacher was at chance or little above, in all draws but one."""
EXPECTED = 10
"""Images per class from which on a class that is never predicted counts against the teacher."""
PER_CLUSTER, TRIES, SHUFFLES, SEED = 20, 3, 5, 0


@dataclass(frozen=True)
class TeacherVerdict:
    """The measures, each 0 by chance and 1 at best, and their interpretation."""

    clusters: float
    decided: float
    prompts: float
    never: tuple[str, ...]
    images: int

    @property
    def clarity(self) -> float:
        return (self.clusters + self.decided) / 2

    @property
    def word(self) -> str:
        if any(getattr(self, name) < least for name, least in LEAST.items()):
            return CHANCE
        enough = all(getattr(self, name) >= needed for name, needed in NEEDED.items())
        return GOOD if enough and not self.never else DOUBTFUL

    def to_json(self) -> dict[str, Any]:
        names = ("clarity", "clusters", "decided", "prompts")
        signs = {name: round(getattr(self, name), 4) for name in names}
        return {"verdict": self.word, **signs, "never": list(self.never), "images": self.images}

    def line(self, teacher: str) -> str:
        """One line for the user, with what to do."""
        signs = ", ".join(f"{name} {getattr(self, name):.2f} of {needed:g}" for name, needed in NEEDED.items())
        signs += f"; never predicted: {', '.join(self.never)}" if self.never else ""
        rely = {
            GOOD: "It is consistent, which does not prove that it is right",
            DOUBTFUL: "Check it before you rely on it",
            CHANCE: "Do not rely on it",
        }[self.word]
        found = f"{teacher} on these photos, judged without labels: {self.word} (of what a good one has: {signs})"
        return f"{found}. {rely}: five labels per class (debiaspl label) can train a student (--labels), 20 test it."


@torch.no_grad()
def judge(
    teacher: EncodingTeacher, images: ImageSet, predictions: Predictions, templates: Sequence[str]
) -> TeacherVerdict | None:
    """The verdict on ``predictions`` that the teacher has just made with these templates; None of too few images."""
    read = torch.tensor([place for place, name in enumerate(images.ids) if name not in predictions.skipped])
    if len(read) < LEAST_IMAGES:
        return None
    size, classes, count = min(len(read), SAMPLE), predictions.classes, len(predictions.classes)
    rows = read[torch.arange(size) * len(read) // size]  # evenly spaced
    vectors = teacher.vectors[rows]
    probabilities = teacher.read(vectors, classes, templates)
    labels = probabilities.argmax(-1)
    others = [TEMPLATES[name] for name in PROMPTS if tuple(templates) != TEMPLATES[name]]
    prompts = [agreement(labels, teacher.read(vectors, classes, other).argmax(-1), count) for other in others]
    never = tuple(name for name, total in zip(classes, predictions.counts, strict=True) if not total)
    return TeacherVerdict(
        cluster_agreement(vectors, labels, count),
        decidedness(probabilities),
        sum(prompts) / len(prompts),
        never if len(predictions) >= EXPECTED * count else (),
        size,
    )


def agreement(one: Tensor, other: Tensor, classes: int) -> float:
    """Cohen's kappa of two labels per image: (observed - expected) / (1 - expected), where the expected agreement is
    that of random labels with the same shares. 0 if all labels are equal."""
    shares = [torch.bincount(labels, minlength=classes).double() / len(labels) for labels in (one, other)]
    observed, expected = float((one == other).double().mean()), float((shares[0] * shares[1]).sum())
    return (observed - expected) / (1 - expected) if expected < 1 else 0.0


def decidedness(probabilities: Tensor) -> float:
    """(H(mean of the rows) - mean of H(row)) / log C: 1 for rows that are certain and predict all classes equally
    often, 0 for equal rows. It is the mutual information of image and class."""
    shares = probabilities.double()
    found = _entropy(shares.mean(0)) - _entropy(shares).mean()
    return float(found) / math.log(shares.shape[1])


def cluster_agreement(vectors: Tensor, labels: Tensor, classes: int) -> float:
    """How much the labels say about the clusters of the vectors: mutual information over the entropy of the clusters,
    minus that of shuffled labels. There are as many clusters as classes, or fewer for few images (k-means on unit
    vectors, relative to their mean); the mean of three clusterings."""
    units = directions(vectors, vectors.mean(0))
    count = max(min(classes, len(units) // PER_CLUSTER), 2)
    generator = torch.Generator().manual_seed(SEED)
    found = []
    for seed in range(TRIES):
        home = clusters(units, count, seed)
        shuffled = [labels[torch.randperm(len(labels), generator=generator)] for _ in range(SHUFFLES)]
        chance = sum(_shared(other, home, classes, count) for other in shuffled) / SHUFFLES
        most = float(_entropy(torch.bincount(home, minlength=count).double() / len(home)))
        found.append((_shared(labels, home, classes, count) - chance) / (most - chance) if most > chance else 0.0)
    return sum(found) / TRIES


def _shared(one: Tensor, other: Tensor, rows: int, columns: int) -> float:
    """Mutual information of two labels per image, in nats."""
    joint = torch.bincount(one * columns + other, minlength=rows * columns).double().reshape(rows, columns) / len(one)
    return float(_entropy(joint.sum(1)) + _entropy(joint.sum(0)) - _entropy(joint.flatten()))


def _entropy(shares: Tensor) -> Tensor:
    return torch.special.entr(shares).sum(-1)
