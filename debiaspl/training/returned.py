"""Checks what the methods of algorithms and corrections return, so that a slip in a user's class is named as such."""

from collections.abc import Mapping
from typing import NoReturn

import torch
from torch import Tensor, nn

from debiaspl.algorithms import Algorithm
from debiaspl.debias import Correction
from debiaspl.training.errors import RunError

ROWS = 2


def check_losses(algorithm: Algorithm, losses: object) -> None:
    """Raise unless ``losses`` are named scalars, of which at least one can be minimised."""
    if not isinstance(losses, Mapping) or not losses:
        _refuse(algorithm, "losses", f"{_named(losses)}, expected losses by name, such as {{'labeled': loss}}")
    for name, loss in losses.items():
        if not isinstance(loss, Tensor) or not loss.is_floating_point():
            _refuse(algorithm, "losses", f"{_named(loss)} for {name!r}, expected a tensor of one float")
        if loss.ndim:
            _refuse(algorithm, "losses", f"{_named(loss)} for {name!r}, expected one number: use {name}.mean()")
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
        if type(part).__module__.startswith("debiaspl.") or part.looks or num_classes < 2:
            continue
        logits = torch.linspace(-1, 1, ROWS * num_classes).view(ROWS, num_classes)
        labels = torch.zeros(ROWS, dtype=torch.int64)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            results = {
                "probabilities": part.probabilities(logits),
                "margin": part.margin(logits, labels),
                "labeled_margin": part.labeled_margin(logits, labels),
            }
            head = part.classifier(nn.Linear(num_features, num_classes), torch.zeros(num_features))
        for method, result in results.items():
            if not isinstance(result, Tensor) or result.shape != logits.shape or not result.is_floating_point():
                _refuse(
                    part, method, f"{_named(result)} for logits of shape {tuple(logits.shape)}, expected that shape"
                )
            if not result.isfinite().all():
                _refuse(part, method, f"numbers that are not finite for logits from -1 to 1: {result.tolist()}")
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
