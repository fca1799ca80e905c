"""Fits a linear classifier to a table of features, in memory: any algorithm with any correction that works on vectors.

    fitted = fit(features, labels, num_classes, method="debiaspl", seed=0)
    fitted.probabilities(features)

Photos with a frozen encoder, zero-shot students and ``DebiasedClassifier`` all end here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from debiaspl.data import UNLABELED, Hints, ImageSet, Task
from debiaspl.data.images import StoredImages
from debiaspl.features.blend import PHOTOS, blend
from debiaspl.features.scaled import ScaledRows
from debiaspl.features.shares import ClassShares
from debiaspl.graph import Graph, ridge_weights
from debiaspl.models import LinearNetwork, Scaling
from debiaspl.training.classifier import as_classifier, class_means
from debiaspl.training.first_classifier import MEANS, NAMED, PROBE, RANDOM, probe, with_finite_bias
from debiaspl.training.loop import fit as fit_task
from debiaspl.training.method import with_method
from debiaspl.training.recipe import Choice, Recipe

CHUNK = 8192
UNIT_FROM = 64
"""From this number of columns on, features are treated as an embedding or pixels, whose columns have one unit."""
LINEAR = Recipe(
    "linear",
    network=Choice("linear"),
    algorithm=Choice("fixmatch", {"threshold": 0.7, "joint": False}),
    correction=Choice("debiaser", {"strength": 0.5, "momentum": 0.99}),
    strong=Choice("hide"),
    flip=False,
    unlabeled_batch=128,
    learning_rate=1.0,
    arc=1.0,
    weight_decay=1e-4,
    average_decay=0.9,
)
"""The settings of a fit: the learning rate falls to 0, so that the last weights need little averaging."""


Begin = Callable[[Tensor], dict[str, Tensor]]
"""Makes initial weights from the labels of all rows."""


class FeatureTable:
    """Features of all rows, and what every fit of them shares: their scaling and, of the rows of the graph, the scaled
    features, the graph, and labels spread over it. Training sees all rows."""

    def __init__(self, features: Tensor, unit: bool | None = None, device: torch.device | None = None) -> None:
        """``features`` are finite floats, (N, D); they may be mapped into memory, as they are read in parts. With
        ``unit`` rows are divided by their length, for features that differ by their direction, as an encoder's;
        otherwise every column is divided by its deviation."""
        self.features, self.device = features, device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.scaling = Scaling.of(features, features.shape[1] >= UNIT_FROM if unit is None else unit)
        self.fit_on = 0
        self._spread: tuple[Tensor, Hints] | None = None
        self.chosen = torch.empty(0, dtype=torch.int64)
        """Numbers of the rows of the graph."""
        self.rows = torch.empty(0)
        """Their scaled features."""

    def __len__(self) -> int:
        return len(self.features)

    def sample(self, labels: Tensor, fit_on: int | None = None) -> Tensor:
        """The labels of the rows of the graph: of more than ``fit_on`` (by default as before), all with a label and
        random others."""
        known, fit_on = (labels >= 0).cpu(), fit_on or self.fit_on or LINEAR.fit_on
        if self.fit_on != fit_on or int(known[self.chosen].sum()) < int(known.sum()):
            if len(self) > fit_on:
                others = (~known).nonzero().flatten()
                order = torch.randperm(len(others), generator=torch.Generator().manual_seed(0))
                known[others[order[: max(fit_on - int(known.sum()), 0)]]] = True
                self.chosen = known.nonzero().flatten()
            else:
                self.chosen = torch.arange(len(self))
            self.fit_on, self._spread = fit_on, None
            self.__dict__.pop("graph", None)
            self.rows = torch.empty((len(self.chosen), self.features.shape[1]), device=self.device)
            for scaled, part in zip(torch.split(self.rows, CHUNK), torch.split(self.chosen, CHUNK), strict=True):
                scaled.copy_(self.scaling(self.features[part.to(self.features.device)]))
        return labels[self.chosen.to(labels.device)].to(self.device)

    @cached_property
    def graph(self) -> Graph:
        """The graph of the nearest neighbours; the search is the same for all labels."""
        return Graph.of(self.rows)

    @torch.no_grad()
    def spread(self, labels: Tensor, num_classes: int) -> Hints:
        """The most likely class of the rows of the graph, by labels of all rows, which spread over it; remembered for
        one set of labels, as several methods are fitted to the same ones."""
        own = self.sample(labels)
        if self._spread is None or not torch.equal(self._spread[0], own):
            confidence, label = _with_copies(self.graph, own, num_classes)
            self._spread = own.clone(), Hints(label.to(self.device), confidence.to(self.device))
        return self._spread[1]

    @torch.no_grad()
    def first_classifier(self, kind: str, labels: Tensor, num_classes: int) -> dict[str, Tensor]:
        """The weights that training begins with, by name."""
        if kind == RANDOM:
            return {}
        own = self.sample(labels)
        head = nn.Linear(self.rows.shape[1], num_classes, device="meta").to_empty(device=self.device)
        known = (own >= 0).nonzero().flatten()
        if kind == MEANS:
            return with_finite_bias(class_means(head, self.rows[known], own[known], self.rows.mean(0)))
        if kind == PROBE:
            return with_finite_bias(probe(head, self.rows[known], own[known]))
        label = torch.where(own >= 0, own, self.spread(labels, num_classes).label)
        # A given label counts twice: as a labeled row and as an unlabeled one, as in training.
        twice = torch.cat((known, torch.arange(len(own), device=self.device)))
        weights = ridge_weights(self.graph.units, label, num_classes, rows=twice)
        return with_finite_bias(as_classifier(head, weights, self.rows, self.graph.mean))


def _with_copies(graph: Graph, labels: Tensor, num_classes: int, masses: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Labels spread from a copy of each labeled row, after all others, which is .4 points better than from the rows
    themselves, plain and by class: results/photos/copies.json."""
    known = (labels >= 0).nonzero().flatten().to(graph.units.device)
    given = torch.cat((torch.full_like(labels, UNLABELED), labels[known.to(labels.device)]))
    confidence, label = graph.with_copies(known).most_likely(given, num_classes, masses=masses)
    return confidence[: len(labels)], label[: len(labels)]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A classifier, on the CPU."""

    network: LinearNetwork
    """For raw features: their scaling is inside."""
    prior: Tensor | None
    """(C,): how often the model predicted each class during training, the bias that was removed; None without one."""
    recipe: Recipe = field(repr=False)
    """What was computed."""
    temperature: float = 1.0
    """By which logits are divided, so that confidence means what it says."""
    facts: dict[str, float] = field(default_factory=dict)
    """``graph_rows`` and ``neighbours_recall``, where a graph was made."""
    shares: ClassShares | None = None
    """The estimated shares of the rows without a label; None if they were not asked for. With ``optimise`` photos,
    ``shares.log()`` is in the bias of the network."""

    @property
    def steps(self) -> int:
        return self.recipe.steps

    def probabilities(self, features: Tensor) -> Tensor:
        """Class probabilities, (N, C), of raw features, (N, D)."""
        return self._seen(features, lambda logits: (logits / self.temperature).softmax(-1))

    def logits(self, features: Tensor) -> Tensor:
        """What the network says of raw features, (N, C), before any temperature."""
        return self._seen(features, lambda logits: logits)

    @torch.no_grad()
    def _seen(self, features: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        values = torch.empty((len(features), self.network.head.out_features))
        for out, part in zip(torch.split(values, CHUNK), torch.split(features, CHUNK), strict=True):
            out.copy_(change(self.network(part)))
        return values

    def predict(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Confidence and class of raw features, in parts, as there may be many rows and classes."""
        parts = [self.probabilities(part).max(-1) for part in torch.split(features, CHUNK)]
        return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def fit(
    features: Tensor | FeatureTable,
    labels: Tensor,
    num_classes: int,
    *,
    method: str = "debiaspl",
    seed: int = 0,
    steps: int | None = None,
    unit: bool | None = None,
    first_classifier: str = "graph",
    threshold: float = 0.7,
    strength: float = 0.5,
    momentum: float = 0.99,
    device: torch.device | None = None,
    optimise: str = PHOTOS,
    asked: Sequence[str] = (),
) -> Fitted:
    """Fit a linear classifier. Every row is also used as an unlabeled one, as in FixMatch. The caller must ensure that
    rows are finite and that at least two classes have labels.

    Args:
        features: (N, D) floats, a row per image; or a ``FeatureTable``, which several fits share.
        labels: int64, (N,); -1 for no label.
        num_classes: number of classes.
        method: ``debiaspl``, ``fixmatch``, ``supervised``, ``graph``, ALGORITHM or ALGORITHM+CORRECTION.
        seed: seed of order and views.
        steps: training steps; by default chosen from the number of rows.
        unit: whether rows are divided by their length; by default from 64 columns on.
        first_classifier: ``graph`` begins with labels spread over the graph of nearest neighbours, unless the method
            uses labeled rows alone; ``means``, ``probe`` or ``random``.
        threshold: labels less confident than this are not used. FixMatch's 0.95 is for deep networks.
        strength: how much of the bias is removed; 0 is FixMatch.
        momentum: momentum of the running estimate of the bias.
        device: ``cuda`` or ``cpu``; by default ``cuda`` if available.
        optimise: ``photos``, to be right for most rows, or ``classes``, where every class counts the same. They differ
            only for a method with the Debiaser, and where the class shares of the rows are uneven.
        asked: how each row was chosen to be labeled, if known: ``random`` or ``coverage``; "" for another way.
    """
    table = features if isinstance(features, FeatureTable) else FeatureTable(features, unit, device)
    recipe = with_method(LINEAR.changed(first_classifier=first_classifier), method)
    values: dict[str, Any] = {"threshold": threshold, "strength": strength, "momentum": momentum}
    recipe = recipe.changed(**{name: value for name, value in values.items() if recipe.owner(name)})
    recipe = replace(recipe, seed=seed, steps=steps or enough_steps(len(table)), optimise=optimise)
    return fit_recipe(recipe, table, labels, tuple(map(str, range(num_classes))), asked=asked)


def fit_recipe(
    recipe: Recipe,
    table: FeatureTable,
    labels: Tensor,
    classes: Sequence[str],
    ids: Sequence[str] = (),
    hints: Hints | None = None,
    begin: Mapping[str, Tensor] | None = None,
    asked: Sequence[str] = (),
) -> Fitted:
    """``fit`` for a recipe; labels and names are those of all rows. ``hints`` are another model's labels, and ``ids``
    names, for algorithms that use them; ``begin`` are initial weights instead of those that the recipe names.
    ``asked`` as in ``fit``."""
    table.sample(labels, recipe.fit_on)
    task, recipe = _task(recipe, table, labels, classes, ids, hints)
    if begin is None:
        if recipe.first_classifier in NAMED:
            raise ValueError(
                f"first_classifier is {recipe.first_classifier}, which needs an encoder that reads text. Use graph or "
                "random."
            )
        begin = table.first_classifier(recipe.first_classifier, labels, len(classes))
    step = fit_task(recipe, task, table.device, begin)
    network = LinearNetwork(table.features.shape[1], len(classes))
    network.load_state_dict(step.finished().state_dict())
    network.scaling = table.scaling
    prior = getattr(step.algorithm.correction, "prior", None)
    facts: dict[str, float] = {}
    if "graph" in table.__dict__:
        facts = {"graph_rows": len(table.rows), "neighbours_recall": round(table.graph.near.recall, 4)}
    shown = None if prior is None else prior.detach().float().cpu().clone()
    fitted = Fitted(network.eval().requires_grad_(False), shown, recipe, facts=facts)
    return _blended(fitted, table, labels, asked) if recipe.optimise and _for_even_classes(recipe) else fitted


def _for_even_classes(recipe: Recipe) -> bool:
    """Whether a fit takes all classes as equally frequent, which a second classifier can mend."""
    settings = recipe.correction.settings
    even = settings.get("strength") != 0 and settings.get("target", "uniform") == "uniform"
    return recipe.correction.name == "debiaser" and even


def _blended(fitted: Fitted, table: FeatureTable, labels: Tensor, asked: Sequence[str]) -> Fitted:
    """The fit, with a second classifier that knows the class shares of the rows."""
    own, head = table.sample(labels), fitted.network.head
    how = [asked[row] for row in table.chosen.tolist()] if asked else ()

    def spread(masses: Tensor) -> tuple[Tensor, Tensor]:
        return _with_copies(table.graph, own, head.out_features, masses)

    best, shares = blend(table.rows, own, head, spread, how, fitted.recipe.seed)
    if shares.weight:
        head.weight.copy_(best.weight)
        head.bias.copy_(best.bias if fitted.recipe.optimise == PHOTOS else best.bias - shares.log().float())
    return replace(fitted, shares=shares)


def _task(
    recipe: Recipe, table: FeatureTable, labels: Tensor, classes: Sequence[str], ids: Sequence[str], hints: Hints | None
) -> tuple[Task, Recipe]:
    """The rows as a task, and the recipe with batches that are not larger than the sets they are drawn from."""
    own, names = table.sample(labels), tuple(ids)
    images: Tensor | StoredImages = table.rows
    if recipe.algorithm.name == "graph" and hints is None:
        hints = table.spread(labels, len(classes))
        names = tuple(ids[row] for row in table.chosen.tolist()) if ids else ()
    elif len(table.rows) < len(table):
        own, images = labels, ScaledRows(table.features, table.scaling, torch.arange(len(table)))
    every, known = ImageSet(images, own, tuple(classes), names), (own >= 0).nonzero().flatten()
    labeled = every.select(known)
    labeled = replace(labeled, images=labeled.images[torch.arange(len(known))])
    task = Task(labeled, every.without_labels(), labeled, hints=hints)
    batches = min(recipe.labeled_batch, len(known)), min(recipe.unlabeled_batch, len(own))
    return task, replace(recipe, labeled_batch=batches[0], unlabeled_batch=batches[1])


def enough_steps(rows: int) -> int:
    """Enough to see each row a few times, and few enough to take seconds."""
    return min(max(rows // 25, 250), 1000)
