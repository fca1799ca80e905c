"""A network from a user's own code: any module that turns images into logits."""

import inspect
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from debiaspl.debias.composite import named_arguments
from debiaspl.models.network import Network

FOR_NETWORKS = ("num_classes", "channels", "image_size")
"""Arguments that a run passes to the function that builds a network, if it declares them."""
TOLERANCE = 1e-4

_known: dict[str, "OwnBuilder"] = {}
"""What this process may build: only what a user has typed or passed gets here, never a name in a run folder."""


class OwnNetwork(Network):
    """A module in two parts: what computes the features, and the classifier, the linear layer whose output is its own.
    A module with other last layers has a method ``embed(images)``, which returns features, and a ``head``."""

    draws = True

    def __init__(self, module: nn.Module, num_classes: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        training = module.training
        self.body = module.eval()
        self.head = self._take_out_head(num_classes, torch.rand((2, *shape), generator=torch.Generator()) * 2 - 1)
        self.num_features = self.head.in_features
        for part in self.body.modules():  # frozen weights are saved, but not trained
            for name, value in list(part.named_parameters(recurse=False)):
                if not value.requires_grad:
                    delattr(part, name)
                    part.register_buffer(name, value.detach())
        self.train(training)

    def embed(self, images: Tensor) -> Tensor:
        return getattr(self.body, "embed", self.body)(images)

    @torch.no_grad()
    def _take_out_head(self, num_classes: int, images: Tensor) -> nn.Linear:
        """Replace the classifier in the module by nothing, and return it."""
        logits, where = self.body(images), type(self.body).__name__
        if not isinstance(logits, Tensor) or tuple(logits.shape) != (len(images), num_classes):
            found = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"type {type(logits).__name__}"
            raise ValueError(f"the network {where} returned {found}, expected logits ({len(images)}, {num_classes}).")
        named = {name: layer for name, layer in self.body.named_modules() if isinstance(layer, nn.Linear) and name}
        names = ["head"] if hasattr(self.body, "embed") else [*reversed(named)]
        for name in names:
            head = named.get(name)
            if head is None or head.out_features != num_classes:
                continue
            self.body.set_submodule(name, nn.Identity())
            features = self.embed(images)
            if features.shape == (len(images), head.in_features) and torch.allclose(
                head(features), logits, atol=TOLERANCE, rtol=TOLERANCE
            ):
                return _with_bias(head)
            self.body.set_submodule(name, head)
        raise ValueError(
            f"the network {where} ends in no linear layer for {num_classes} classes. Or give it embed and head."
        )


def _with_bias(head: nn.Linear) -> nn.Linear:
    new = nn.Linear(head.in_features, head.out_features)
    new.weight.copy_(head.weight)
    nn.init.zeros_(new.bias) if head.bias is None else new.bias.copy_(head.bias)
    return new


@dataclass(frozen=True)
class OwnBuilder:
    """Builds networks by a user's function or class."""

    least_side: ClassVar[int] = 1

    name: str
    source: Callable[..., nn.Module]

    @property
    def arguments(self) -> Mapping[str, inspect.Parameter]:
        """Those that the run passes, and the settings."""
        supplied = {key: inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in FOR_NETWORKS}
        return supplied | named_arguments(self.source)

    def __call__(self, num_classes: int, channels: int, image_size: tuple[int, int], **settings: Any) -> Network:
        given = {"num_classes": num_classes, "channels": channels, "image_size": image_size}
        declared = named_arguments(self.source)
        module = self.source(**{key: value for key, value in given.items() if key in declared}, **settings)
        if isinstance(module, Network):
            return module
        if not isinstance(module, nn.Module):
            raise ValueError(f"{self.name} returned a {type(module).__name__}, expected a torch.nn.Module.")
        return OwnNetwork(module, num_classes, (channels, *image_size))


def allow(name: str, source: Callable[..., nn.Module] | nn.Module) -> OwnBuilder:
    """Let this process build ``source`` for networks of this name. A module is copied each time."""
    builder = OwnBuilder(name, (lambda: deepcopy(source)) if isinstance(source, nn.Module) else source)
    _known[_key(name)] = builder
    return builder


def own_name(source: Callable[..., nn.Module] | nn.Module) -> str:
    """The name of a network that is passed in Python."""
    kind = type(source) if isinstance(source, nn.Module) else source
    return f"{PASSED}{getattr(kind, '__qualname__', type(kind).__name__)}"


PASSED = "own:"
"""Begins the names of networks that were passed in Python."""


def is_own(name: str) -> bool:
    """Whether the name of a network belongs to a user's own code, in a file or passed in Python."""
    return name.startswith(PASSED) or name.rpartition(":")[0].endswith(".py")


def own_builder(name: str) -> OwnBuilder | None:
    return _known.get(_key(name))


def file_of(name: str) -> Path:
    """The whole path in ``PATH.py:name``. The name may come from an untrusted folder, so that anything gives a path."""
    path = os.path.expanduser(name.rpartition(":")[0])
    return Path(path if "\0" in path else os.path.realpath(path))


def _key(name: str) -> str:
    return name if name.startswith(PASSED) else f"{file_of(name)}:{name.rpartition(':')[2]}"
