"""What a step builds from its recipe and task: network, algorithm and views; and what is refused before."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from debiaspl.algorithms import Algorithm
from debiaspl.augment import Hide, ImageViews, VectorViews, ViewMaker, Weak
from debiaspl.data import Hints, ImageSet, LazyImages, Task
from debiaspl.debias import Correction
from debiaspl.debias.heads import NormalisedHead
from debiaspl.models import LinearNetwork, Network
from debiaspl.models.network import HiddenHead
from debiaspl.training.classifier import graph_hints
from debiaspl.training.parts import LINEAR, find
from debiaspl.training.process import RunError
from debiaspl.training.recipe import Recipe


class NeedsPictures(ValueError):  # noqa: N818 - it says what is missing
    """An algorithm that cannot learn from vectors, whatever its correction and settings."""


def network_of(recipe: Recipe, task: Task, seed: int, fresh: bool) -> Network:
    images = task.labeled
    if images.is_encoded:
        return LinearNetwork(images.images.shape[-1], images.num_classes)
    if recipe.network.name == LINEAR:
        raise ValueError("network is linear, which is for vectors, but these are images. Choose another network.")
    # Initial weights use torch's global generator; a copy of it is seeded, so that the user's own does not change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # Without classes the classifier is not used and not saved, but a network must have one.
        classes = max(images.num_classes, 1)
        shape = {"channels": images.channels, "image_size": tuple(images.images.shape[2:])}
        network: Network = recipe.network.build("network", num_classes=classes, **shape)
    _check_head(recipe, network.head)
    if fresh:
        network.load_pretrained()
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network


def algorithm_of(recipe: Recipe, task: Task, num_features: int) -> Algorithm:
    """The algorithm of a run. Raises if its parts do not fit together, or to the task; nothing is computed."""
    known: dict[str, Any] = {
        "num_classes": task.labeled.num_classes,
        "num_features": num_features,
        "num_unlabeled": len(task.unlabeled),
        "class_counts": tuple(task.labeled.counts()),
        "classes": task.labeled.classes,
        "channels": task.labeled.channels,
        "unlabeled_ids": task.unlabeled.ids,
        "hints": task.hints,
    }
    correction = recipe.correction.build("correction", **known)
    check_correction(correction, num_features, task.labeled.num_classes)
    if correction.held_out and task.validation is None:
        raise ValueError(f"{recipe.correction.name} chooses by held-out labels: validation=0.2, or choose_tau=false.")
    with torch.random.fork_rng(devices=[]):  # heads have initial weights too
        torch.manual_seed(recipe.seed)
        algorithm: Algorithm = recipe.algorithm.build("algorithm", correction=correction, **known)
    if recipe.steps < algorithm.generations:
        raise ValueError(f"there are {algorithm.generations} generations in {recipe.steps} steps. Use more steps.")
    if algorithm.generations > 1 and type(algorithm).adopt is Algorithm.adopt:
        raise ValueError(f"{type(algorithm).__name__} has {algorithm.generations} generations, but no method adopt().")
    if task.labeled.is_encoded:
        _refuse_for_vectors(recipe, algorithm)
    return algorithm


def with_hints(recipe: Recipe, task: Task, network: Network | None = None) -> Task:
    """The task, with hints if the algorithm needs them: the graph's labels or, without a network, zeros."""
    if task.hints is not None or not find("algorithm", recipe.algorithm.name).hints_from_graph:
        return task
    nothing = torch.zeros_like(task.unlabeled.labels)
    hints = Hints(nothing, nothing.float()) if network is None else graph_hints(recipe, network, task)
    return replace(task, hints=hints)


def view_maker(recipe: Recipe, images: ImageSet, dtype: torch.dtype | None) -> ViewMaker:
    strong = recipe.strong.build("strong")
    hides = isinstance(strong, Hide)
    if images.is_encoded:
        if not hides:
            raise ValueError(f"strong is {recipe.strong.name}, which changes images, not vectors. Use strong=hide.")
        if recipe.flip:
            raise ValueError("flip is true, but these are vectors, which cannot be mirrored. Use flip=false.")
        return VectorViews(strong)
    if hides:
        raise ValueError("strong is hide, which is for vectors, but these are images. Use strong=fixmatch.")
    # Images from files are cropped while they are decoded.
    return ImageViews(Weak(flip=recipe.flip, pad=0 if isinstance(images.images, LazyImages) else 1 / 8), strong, dtype)


def _refuse_for_vectors(recipe: Recipe, algorithm: Algorithm) -> None:
    """Raise for settings that have no effect, or cannot work, when a classifier of vectors is trained."""
    for name, part in ((recipe.algorithm.name, algorithm), (recipe.correction.name, algorithm.correction)):
        if part.needs_pictures:
            raise NeedsPictures(f"{name} cannot work with vectors: {part.needs_pictures} Or use frozen=false.")
    if recipe.health_every > 0:
        raise ValueError("health_every is set, but features of a frozen encoder do not change. Use health_every=0.")
    for name in ("average_statistics", "synchronise_norm", "joint"):
        if getattr(recipe, name, False) or getattr(algorithm, name, False):
            raise ValueError(f"{name} is true, but it is about batch norm, which vectors do not meet: {name}=false.")


def batch_sizes(recipe: Recipe, task: Task, ranks: int) -> tuple[int, int]:
    """Labeled and unlabeled images per step. Every rank and every piece must have as many: then the mean of their means
    is that of the batch."""
    name = recipe.algorithm.name
    learns_labels = find("algorithm", name).learns_labels
    if learns_labels and not task.has_labels:
        raise ValueError(f"no image has a label, but {name} learns from labels. Label a few, or use --method moco.")
    if learns_labels and not recipe.labeled_batch:
        raise ValueError(f"labeled_batch is 0, but {name} learns from labels. Use 1 or more.")
    if recipe.evaluate_every and not task.has_labels:
        raise ValueError("evaluate_every is set, but no image has a label to evaluate with. Use evaluate_every=0.")
    sizes, parts = (recipe.labeled_batch if task.has_labels else 0, recipe.unlabeled_batch), ranks * recipe.accumulate
    for which, size in zip(("labeled_batch", "unlabeled_batch"), sizes, strict=True):
        if size % parts:
            shared = f"{ranks} processes x {recipe.accumulate} pieces cannot share equally"
            raise RunError(f"{which} is {size}, which {shared}. Use --set {which}={-(-size // parts) * parts}.")
    return sizes


def _check_head(recipe: Recipe, head: nn.Linear) -> None:
    """Raise if a linear classifier, made otherwise, would take the place of another, or if there are too few."""
    algorithm, name = find("algorithm", recipe.algorithm.name), recipe.algorithm.name
    if algorithm.needs_experts and getattr(head, "heads", 1) < 2:
        raise ValueError(f"{name} trains several experts, and {recipe.network.name} has one head. Use network=experts.")
    if not isinstance(head, NormalisedHead | HiddenHead):
        return
    reason = ""
    if recipe.first_classifier != "random":
        reason = f"first_classifier is {recipe.first_classifier}"
    elif not algorithm.learns_labels:
        reason = f"{name} trains no classifier"
    elif algorithm.classifier is not Algorithm.classifier:
        reason = f"{name} trains a further classifier"
    if reason:
        raise ValueError(f"the network has no linear classifier, but {reason}, which is linear. Use head=linear.")


def check(recipe: Recipe, task: Task) -> None:
    """Raise if a step of vectors would raise; nothing is computed."""
    algorithm_of(recipe, with_hints(recipe, task), network_of(recipe, task, recipe.seed, fresh=False).num_features)
    view_maker(recipe, task.labeled, None)


def check_losses(algorithm: Algorithm, losses: object) -> None:
    """Raise unless ``losses`` are named scalars, of which at least one can be minimised."""
    if not isinstance(losses, Mapping) or not losses:
        _refuse(algorithm, "losses", f"{_named(losses)}, expected losses by name, such as {{'labeled': loss}}")
    for name, loss in losses.items():
        if not isinstance(loss, Tensor) or not loss.is_floating_point() or loss.ndim:
            _refuse(algorithm, "losses", f"{_named(loss)} for {name!r}, expected a tensor of one float, such as a mean")
    if torch.is_grad_enabled() and not any(loss.requires_grad for loss in losses.values()):
        _refuse(algorithm, "losses", "losses without a gradient, expected one that depends on the network")


def check_adopted(algorithm: Algorithm, labels: object, count: int) -> None:
    """Raise unless ``labels`` are a class number, or -1, for each of ``count`` images."""
    if not isinstance(labels, Tensor) or labels.shape != (count,) or labels.dtype != torch.int64:
        _refuse(algorithm, "adopt", f"{_named(labels)}, expected int64 labels of shape ({count},), -1 for no label")


def check_correction(correction: Correction, num_features: int, num_classes: int) -> None:
    """Raise unless a user's correction returns tensors of the right shape for made-up logits. What belongs to debiaspl
    is not tried, nor is what needs to see a network first."""
    for part in correction.each():
        looks = type(part).look is not Correction.look
        if type(part).__module__.startswith("debiaspl.") or looks or num_classes < 2:
            continue
        logits = torch.linspace(-1, 1, 2 * num_classes).view(2, num_classes)
        labels = torch.zeros(2, dtype=torch.int64)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            results = {
                "probabilities": part.probabilities(logits),
                "margin": part.margin(logits, labels),
                "labeled_margin": part.labeled_margin(logits, labels),
            }
            head = part.classifier(nn.Linear(num_features, num_classes), torch.zeros(num_features))
        for method, result in results.items():
            fits = isinstance(result, Tensor) and result.shape == logits.shape and result.is_floating_point()
            if not fits or not result.isfinite().all():
                expected = f"expected finite floats of the shape of the logits, {tuple(logits.shape)}"
                _refuse(part, method, f"{_named(result)}, {expected}")
        if not isinstance(head, nn.Linear) or head.weight.shape != (num_classes, num_features):
            _refuse(part, "classifier", f"{_named(head)}, expected a torch.nn.Linear of the shape of its argument")


def _named(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and type {str(value.dtype).removeprefix('torch.')}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _refuse(part: object, method: str, what: str) -> NoReturn:
    code = getattr(getattr(type(part), method), "__code__", None)
    place = f"{code.co_filename}, line {code.co_firstlineno}: " if code else ""
    raise RunError(f"{place}{type(part).__name__}.{method}() returned {what}.")
