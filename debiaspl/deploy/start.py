"""Images that stand for all of them: where labelling begins, while there is no model to ask."""

from collections.abc import Iterable

import torch
from torch import Tensor

ROUNDS = 10
"""Of k-means."""
WIDEST = 1024
"""Numbers of an image that distances are measured with; more are averaged into groups."""
MOST = 20_000
"""Images that are looked at; of more, so many at even distances."""


def spread(features: Tensor, count: int, taken: Iterable[int] = (), seed: int = 0) -> list[int]:
    """Positions of ``count`` images that stand for all of them; fewer, if there are fewer.

    The images are put into ``count`` groups by k-means, and of each group the image nearest to its centre is taken: a
    typical one, not an odd one. The order is such that the first few are spread as well.

    Args:
        features: (N, ...): features, or small pictures of the images themselves.
        count: how many.
        taken: positions that are not to be chosen.
        seed: decides where k-means begins; the same seed gives the same images.
    """
    if count < 1:
        raise ValueError(f"count is {count}, expected at least 1.")
    away = set(taken)
    left = [position for position in range(len(features)) if position not in away]
    if not left:
        return []
    most = max(MOST, count)
    if len(left) > most:
        left = [left[place * len(left) // most] for place in range(most)]
    points = _flat(features[torch.tensor(left)])
    chosen = _typical(points, min(count, len(left)), torch.Generator().manual_seed(seed))
    return [left[place] for place in _in_spread_order(points, chosen)]


def _flat(features: Tensor) -> Tensor:
    """(N, D) in float32 around their mean, with no more numbers than distances need."""
    flat = features.detach().cpu().flatten(1).float()
    if flat.shape[1] > WIDEST:
        flat = torch.nn.functional.adaptive_avg_pool1d(flat[:, None], WIDEST)[:, 0]
    return flat - flat.mean(0)


def _typical(points: Tensor, count: int, generator: torch.Generator) -> list[int]:
    """A point near the centre of each group that k-means finds; positions, each once."""
    if count == len(points):
        return list(range(count))
    centres = points[_first_centres(points, count, generator)].clone()
    for _ in range(ROUNDS):
        own = _nearest_centre(points, centres)
        sums = torch.zeros_like(centres).index_add_(0, own, points)
        sizes = torch.bincount(own, minlength=count)[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp_min(1), centres)
    chosen: list[int] = []
    lengths = points.square().sum(-1)
    for centre in centres:
        place = int(_squared(points, lengths, centre).argmin())
        lengths[place] = torch.inf  # is not chosen again
        chosen.append(place)
    return chosen


def _first_centres(points: Tensor, count: int, generator: torch.Generator) -> list[int]:
    """k-means++: each further centre is drawn with a chance that grows with its squared distance from the others."""
    chosen = [int(torch.randint(len(points), (), generator=generator))]
    lengths = points.square().sum(-1)
    squared = torch.full((len(points),), torch.inf)
    while len(chosen) < count:
        squared = torch.minimum(squared, _squared(points, lengths, points[chosen[-1]]))
        # Where copies of the chosen ones alone are left, any of them will do.
        drawn = torch.rand((), generator=generator, dtype=torch.float64)
        total = (squared if bool(squared.any()) else torch.ones_like(squared)).double().cumsum(0)
        place = int(torch.searchsorted(total, drawn * total[-1], right=True))
        chosen.append(min(place, len(points) - 1))
    return chosen


def _nearest_centre(points: Tensor, centres: Tensor) -> Tensor:
    return torch.cat([torch.cdist(part, centres).argmin(-1) for part in torch.split(points, 4096)])


def _squared(points: Tensor, lengths: Tensor, point: Tensor) -> Tensor:
    """Squared distances from a point; ``lengths`` are those of the points, squared, which spares most of the work."""
    return (lengths - 2 * (points @ point) + point @ point).clamp_min(0)


def _in_spread_order(points: Tensor, chosen: list[int]) -> list[int]:
    """The most typical of all first, then always the one farthest from those before it."""
    own = points[chosen]
    lengths = own.square().sum(-1)
    order = [int(lengths.argmin())]  # the mean of all is at 0
    distance = torch.full((len(own),), torch.inf)
    while len(order) < len(chosen):
        distance = torch.minimum(distance, _squared(own, lengths, own[order[-1]]))
        distance[order[-1]] = -torch.inf
        order.append(int(distance.argmax()))
    return [chosen[place] for place in order]
