"""Fits a linear classifier to a table of features, in memory: any algorithm with any correction that works on vectors.

    fitted = fit(features, labels, num_classes, method="debiaspl", seed=0)
    fitted.probabilities(features)

Photos with a frozen encoder, zero-shot students and ``DebiasedClassifier`` all end here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import Hints, ImageSet, Task
from debiaspl.data.images import StoredImages
from debiaspl.features.shares import PHOTOS, ClassShares, blend
from debiaspl.features.table import CHUNK, FeatureTable, ScaledRows
from debiaspl.models import LinearNetwork
from debiaspl.training.classifier import NAMED
from debiaspl.training.method import with_method
from debiaspl.training.recipe import Choice, Recipe
from debiaspl.training.step import fit as fit_task

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


@dataclass(frozen=True, eq=False)
class TableTask:
    """What is known of the rows of a table."""

    labels: Tensor
    """int64, (N,); -1 for no label."""
    classes: Sequence[str]
    ids: Sequence[str] = ()
    """Names of the rows, for algorithms that use them."""
    hints: Hints | None = None
    """Another model's labels."""
    asked: Sequence[str] = ()
    """How each row was chosen to be labeled, if known: ``random`` or ``coverage``; "" for another way."""
    begin: Begin | None = None
    """For recipes that start from class names."""


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

    def probabilities(self, features: Tensor) -> Tensor:
        """Class probabilities, (N, C), of raw features, (N, D)."""
        values = self.logits(features)
        for part in torch.split(values, CHUNK):
            part.copy_((part / self.temperature).softmax(-1))
        return values

    @torch.no_grad()
    def logits(self, features: Tensor) -> Tensor:
        """What the network says of raw features, (N, C), before any temperature."""
        values = torch.empty((len(features), self.network.head.out_features))
        for out, part in zip(torch.split(values, CHUNK), torch.split(features, CHUNK), strict=True):
            out.copy_(self.network(part))
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
        asked: as in ``TableTask``.
    """
    table = features if isinstance(features, FeatureTable) else FeatureTable(features, unit, device)
    recipe = with_method(LINEAR.changed(first_classifier=first_classifier), method)
    values: dict[str, Any] = {"threshold": threshold, "strength": strength, "momentum": momentum}
    recipe = recipe.changed(**{name: value for name, value in values.items() if recipe.owner(name)})
    recipe = replace(recipe, seed=seed, steps=steps or enough_steps(len(table)), optimise=optimise)
    return fit_recipe(recipe, table, TableTask(labels, tuple(map(str, range(num_classes))), asked=asked))


def fit_recipe(recipe: Recipe, table: FeatureTable, task: TableTask) -> Fitted:
    """``fit`` for a recipe."""
    labels, classes = task.labels, len(task.classes)
    table.sample(labels, recipe.fit_on)
    rows, recipe = _of_rows(task, recipe, table)
    if recipe.first_classifier not in NAMED:
        first = table.first_classifier(recipe.first_classifier, labels, classes)
    elif task.begin is None:
        raise ValueError(f"first_classifier is {recipe.first_classifier}, which needs an encoder. Use graph or random.")
    else:
        first = task.begin(labels)
    step = fit_task(recipe, rows, table.device, lambda *_: first)
    network = LinearNetwork(table.features.shape[1], classes)
    network.load_state_dict(step.finished().state_dict())
    network.scaling = table.scaling
    prior = getattr(step.algorithm.correction, "prior", None)
    facts: dict[str, float] = {}
    if "graph" in table.__dict__:
        facts = {"graph_rows": len(table.rows), "neighbours_recall": round(table.graph.near.recall, 4)}
    shown = None if prior is None else prior.detach().float().cpu().clone()
    fitted = Fitted(network.eval().requires_grad_(False), shown, recipe, facts=facts)
    return _blended(fitted, table, task) if recipe.optimise and _for_even_classes(recipe) else fitted


def _for_even_classes(recipe: Recipe) -> bool:
    """Whether a fit takes all classes as equally frequent, which a second classifier can mend."""
    settings = recipe.correction.settings
    even = settings.get("strength") != 0 and settings.get("target", "uniform") == "uniform"
    return recipe.correction.name == "debiaser" and even


def _blended(fitted: Fitted, table: FeatureTable, task: TableTask) -> Fitted:
    """The fit, with a second classifier that knows the class shares of the rows."""
    own, head = table.sample(task.labels), fitted.network.head
    how = [task.asked[row] for row in table.chosen.tolist()] if task.asked else ()

    def spread(masses: Tensor) -> tuple[Tensor, Tensor]:
        return table.from_copies(own, head.out_features, masses)

    best, shares = blend(table.rows, own, head, spread, how, fitted.recipe.seed)
    if shares.weight:
        head.weight.copy_(best.weight)
        head.bias.copy_(best.bias if fitted.recipe.optimise == PHOTOS else best.bias - shares.log().float())
    return replace(fitted, shares=shares)


def _of_rows(task: TableTask, recipe: Recipe, table: FeatureTable) -> tuple[Task, Recipe]:
    """The rows as a task, and the recipe with batches that are not larger than the sets they are drawn from."""
    own, names, hints = table.sample(task.labels), tuple(task.ids), task.hints
    images: Tensor | StoredImages = table.rows
    if recipe.algorithm.name == "graph" and hints is None:
        hints = table.spread(task.labels, len(task.classes))
        names = tuple(names[row] for row in table.chosen.tolist()) if names else ()
    elif len(table.rows) < len(table):
        own, images = task.labels, ScaledRows(table.features, table.scaling, torch.arange(len(table)))
    every, known = ImageSet(images, own, tuple(task.classes), names), (own >= 0).nonzero().flatten()
    labeled = every.select(known)
    labeled = replace(labeled, images=labeled.images[torch.arange(len(known))])
    batches = min(recipe.labeled_batch, len(known)), min(recipe.unlabeled_batch, len(own))
    recipe = replace(recipe, labeled_batch=batches[0], unlabeled_batch=batches[1])
    return Task(labeled, every.without_labels(), labeled, hints=hints), recipe


def enough_steps(rows: int) -> int:
    """Enough to see each row a few times, and few enough to take seconds."""
    return min(max(rows // 25, 250), 1000)
