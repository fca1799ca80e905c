"""Which images to label next: uncertain ones, spread over the predicted classes and over the feature space."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError
from debiaspl.data.csv_text import csv_line
from debiaspl.data.listing import list_images
from debiaspl.deploy.saved import SavedModel
from debiaspl.graph import Graph

STRENGTH = 0.5
CANDIDATES = 4
"""Number of uncertain images that are considered for each pick."""
TINY = 1e-12
"""Replaces a probability of 0, whose logarithm would be infinite."""

COLUMNS = ("file_name", "label", "predicted", "confidence", "why")
"""``label`` is empty, to be filled in."""


def pick_next(
    features: Tensor, probabilities: Tensor, count: int, taken: Iterable[int] = (), strength: float = STRENGTH
) -> list[int]:
    """Positions of ``count`` images to label next, the most useful first; fewer, if there are fewer.

    First the probabilities are debiased, with their own mean as the prior: otherwise images of a neglected class look
    like confident images of another. Each pick then goes to the class with the fewest picks so far. Among its most
    uncertain images (smallest margin between the two best classes), it is the one farthest from all that were picked
    or ``taken``. The same input gives the same picks.

    Args:
        features: features of every image, (N, D).
        probabilities: the model's class probabilities, (N, C).
        count: number of picks.
        taken: positions that already have a label: never picked, and avoided in feature space.
        strength: how much of the bias is removed, as in ``Debiaser``.
    """
    _check(features, probabilities, count)
    best = uncertainty(probabilities, strength)
    margin, label = best.margin, best.classes[:, 0]
    away = torch.tensor(sorted(set(taken)), dtype=torch.int64)
    left = torch.ones(len(margin), dtype=torch.bool)
    left[away] = False
    queues = _queues(margin, label, left, count)
    if not queues:
        return []
    places = torch.cat(queues)
    points = _directions(features[places])
    distance = _to_nearest(points, _directions(features[away]))
    ends = torch.tensor([len(queue) for queue in queues]).cumsum(0).tolist()
    waiting = [slice(end - len(queue), end) for queue, end in zip(queues, ends, strict=True)]
    had = [0] * len(queues)
    picked: list[int] = []
    while len(picked) < min(count, len(places)):
        # Queues are sorted by their least certain image, so that of equal classes the neediest comes first.
        turn = min((n for n in range(len(queues)) if had[n] < len(queues[n])), key=had.__getitem__)
        chosen = waiting[turn].start + int(distance[waiting[turn]].argmax())
        picked.append(int(places[chosen]))
        had[turn] += 1
        distance = torch.minimum(distance, (points - points[chosen]).norm(dim=-1))
        distance[chosen] = -torch.inf
    return picked


def with_given_labels(graph: Graph, probabilities: Tensor, labels: Mapping[int, str], classes: Sequence[str]) -> Tensor:
    """The model's probabilities, (N, C), combined with labels of similar images that were given after its training.

    The labels are propagated over the nearest neighbours of the features. Among the classes that have a label, the
    model's probabilities are multiplied by the propagated ones; the total of these classes, and the probabilities of
    the others, do not change. Nothing changes if fewer than two of its classes have a label.

    Args:
        graph: graph of the features of every image.
        probabilities: the model's probabilities.
        labels: position -> class, of the images that have a label; classes unknown to the model are ignored.
        classes: classes of the model.
    """
    number = {name: place for place, name in enumerate(classes)}
    known = {place: number[label] for place, label in labels.items() if label in number}
    named = sorted(set(known.values()))
    if len(named) < 2:
        return probabilities
    given = torch.full((len(probabilities),), UNLABELED)
    given[list(known)] = torch.tensor(list(known.values()))
    found = probabilities.cpu().clone()
    own = found[:, named]
    both = own.clamp_min(TINY) * graph.spread(given, len(classes))[:, named].clamp_min(TINY)
    found[:, named] = both / both.sum(-1, keepdim=True) * own.sum(-1, keepdim=True)
    return found


class TwoBest(NamedTuple):
    """The two most likely classes of every image, after debiasing."""

    values: Tensor
    """Their probabilities, (N, 2)."""
    classes: Tensor
    """Their numbers, (N, 2)."""

    @property
    def margin(self) -> Tensor:
        """Difference of the two probabilities; near 0 if the model is uncertain."""
        return self.values[:, 0] - self.values[:, 1]


def uncertainty(probabilities: Tensor, strength: float = STRENGTH) -> TwoBest:
    """Eq. 3 of the paper for all images at once; the prior is the mean of the probabilities themselves."""
    own = probabilities.detach().double().cpu()
    debiased = own.clamp_min(TINY).log() - strength * own.mean(0).clamp_min(TINY).log()
    best = debiased.softmax(-1).topk(2, dim=-1)
    return TwoBest(best.values, best.indices)


def _check(features: Tensor, probabilities: Tensor, count: int) -> None:
    if features.ndim != 2 or probabilities.ndim != 2 or len(features) != len(probabilities):
        raise ValueError(
            f"features have shape {tuple(features.shape)} and probabilities {tuple(probabilities.shape)}, expected "
            "(N, D) and (N, C): one row per image."
        )
    if probabilities.shape[1] < 2:
        raise ValueError(f"probabilities are for {probabilities.shape[1]} classes, expected two or more.")
    if count < 1:
        raise ValueError(f"count is {count}, expected at least 1.")


def _queues(margin: Tensor, label: Tensor, left: Tensor, count: int) -> list[Tensor]:
    """The most uncertain images of every predicted class, the least certain first; classes in the same order."""
    order = margin.argsort(stable=True)
    order = order[left[order]]
    classes = sorted(set(label[order].tolist()))
    whole = [order[label[order] == number] for number in classes]
    each = CANDIDATES * -(-count // max(len(whole), 1))
    short = [queue[:each] for queue in whole]
    # If small classes leave too few candidates, the others give all they have.
    queues = short if sum(map(len, short)) >= min(count, len(order)) else whole
    return sorted(queues, key=lambda queue: float(margin[queue[0]]))


def _directions(features: Tensor) -> Tensor:
    """Features as unit vectors: images differ by their direction."""
    return torch.nn.functional.normalize(features.detach().cpu().float(), dim=-1)


def _to_nearest(points: Tensor, others: Tensor) -> Tensor:
    """Distance from every point to the nearest of the others; infinite if there are none."""
    nearest = torch.full((len(points),), torch.inf)
    for part in torch.split(others, 1024) if len(others) else ():
        nearest = torch.minimum(nearest, torch.cdist(points, part).amin(-1))
    return nearest


@dataclass(frozen=True)
class Suggestion:
    """A photo to label."""

    file_name: str
    predicted: str
    """The prediction of ``debiaspl predict``."""
    confidence: float
    why: str


@dataclass(frozen=True)
class Suggestions:
    """Photos to label next, the most useful first."""

    picked: list[Suggestion]
    unlabeled: int
    """Number of photos that could have been picked."""
    bad: dict[str, str]
    """Photos that could not be read -> reason."""

    def to_csv(self) -> str:
        rows = [(one.file_name, "", one.predicted, f"{one.confidence:.6f}", one.why) for one in self.picked]
        return "".join(map(csv_line, (COLUMNS, *rows)))


def suggest(
    model: SavedModel,
    photos: Path | str,
    count: int,
    labeled: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Suggestions:
    """The ``count`` photos whose labels would help the model most; ``labeled`` ones, files with their class, are left
    out, and their labels are used for similar photos."""
    found = list_images(Path(photos))
    taken = labeled or {}
    files: list[str] = []
    features: list[Tensor] = []
    probabilities: list[Tensor] = []
    bad: dict[str, str] = {}
    for seen in model.see(model.photos(found.root, found.files)):
        # Half precision is enough for distances, and 100,000 photos need half the memory.
        features.append(seen.features.half().cpu())
        probabilities.append(seen.probabilities.cpu())
        files += [found.files[position] for position in seen.positions.tolist()]
        bad |= {found.files[position]: reason for position, reason in seen.skipped.items()}
        progress(len(files) + len(bad), len(found.files))
    if not set(files) - set(taken):
        what = "can be read" if bad and not files else "is without a label"
        raise DataError(f"no image of {found.root} {what}, so there is nothing to pick.")
    every = torch.cat(probabilities)
    away = {place: taken[file] for place, file in enumerate(files) if file in taken}
    seen_features = torch.cat(features)
    told = every
    if away:
        told = with_given_labels(Graph.of(seen_features.float()), every, away, model.classes)
    places = pick_next(seen_features, told, count, away)
    return Suggestions(_told(model, files, every, told, places), len(files) - len(away), bad)


def _told(model: SavedModel, files: list[str], own: Tensor, told: Tensor, places: list[int]) -> list[Suggestion]:
    """``own`` are the model's probabilities, ``told`` those that the choice was based on."""
    confidence, label = own.max(-1)
    best = uncertainty(told, STRENGTH)
    made = []
    for place in places:
        first, second = (model.classes[int(number)] for number in best.classes[place])
        share, rival = (float(value) for value in best.values[place])
        why = f"{first} ({share:.0%}) or {second} ({rival:.0%}), after debiasing"
        made.append(Suggestion(files[place], model.classes[int(label[place])], float(confidence[place]), why))
    return made
