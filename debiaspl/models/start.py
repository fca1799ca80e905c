"""Initial weights from a run of debiaspl or a checkpoint. Only tensors and plain values are read; no code is executed.

Checkpoints differ in the prefix of names: ``module.encoder_q.conv1.weight`` (MoCo), ``conv1.weight``, or
``module.main.backbone.conv1.weight`` (FixMatch with EMAN). A ResNet is recognised by the names of its first layers.
"""

import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from debiaspl.data.known import data_folders
from debiaspl.data.tensor_file import read_tensor_file
from debiaspl.files import digest_if_there

AVERAGED = {"encoder_k", "ema", "momentum_encoder", "teacher", "model_ema"}
"""Names of averages beside the trained network. The trained network is used: its own average starts as its copy."""
SIGNS = ("conv1.weight", "layer1.0.conv1.weight")
HEAD = "head."
ALGORITHM = "algorithm."
"""Prefix of tensors that an algorithm trained beside the network, such as a projector, in a run's weights."""
FIRST, PROJECTOR = f"{HEAD}first.", f"{ALGORITHM}projector."
"""A classifier's layer before the last, and the projector whose first layer it is."""
WEIGHTS = "model.safetensors"
"""Weights of a run, in its folder."""
_DAMAGED = (SafetensorError, OSError, EOFError, RuntimeError, LookupError, TypeError, AttributeError, ValueError)
"""Exceptions that readers raise if a file is damaged or of another type."""


def find_start(start: str) -> Path:
    """The file: at its path, or by its name in a data folder; for a run's folder, its weights."""
    path = Path(os.path.expanduser(start))  # an unknown user name does not change
    places = [path, *([] if path.is_absolute() else (folder / path for folder in data_folders()))]
    for place in places:
        if place.is_file():
            return place
        if (place / WEIGHTS).is_file():
            return place / WEIGHTS
    if (path / "config.json").is_file():
        raise ValueError(f"the start {start} is a run that has not ended: it has no {WEIGHTS} yet. Resume it first.")
    problem = "is a folder without a run" if path.is_dir() else "was not found"
    found = f"the start {start} {problem}: looked for a file at {', '.join(map(str, places))}"
    raise ValueError(f"{found}. Give a run's folder or a checkpoint, --set start=PATH, or none, --set start=")


def start_digest(start: str) -> str:
    """Digest of the file; empty if there is no start or no file."""
    try:
        return digest_if_there(find_start(start)) if start else ""
    except ValueError:
        return ""


def first_weights(start: str, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights in the checkpoint for a network whose ``state_dict`` is ``own``, without a classifier that has another
    shape or is the projection head of a contrastive method. That of a run is always left out, because it may have
    learned from labels that this run must not use."""
    path = find_start(start)
    network = _network_of_run(path)
    if network is not None:
        tensors = _read(path)
        weights = {name: value for name, value in tensors.items() if not name.startswith((HEAD, ALGORITHM))}
        _check(weights, own, path, f"It has trained {network}: use this network, with its settings: --set network=...")
        return weights | _projector(tensors, own, path)
    tensors = _tensors(path)
    prefix = _prefix(tensors, path)
    weights = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    contrastive = "encoder_q" in prefix or any(name.endswith("queue") for name in tensors)
    # EMAN stores its classifier beside the backbone, not in it.
    beside = prefix.removesuffix("backbone.")
    last = {} if contrastive else {f"{HEAD}{key}": tensors.get(f"{beside}fc.{key}") for key in ("weight", "bias")}
    weights = {name: value for name, value in weights.items() if not name.startswith("fc.")}
    _check(weights, own, path, "It is a ResNet: use --set network=resnet, with its depth.")
    fits = all(value is not None and value.shape == own[name].shape for name, value in last.items())
    return weights | ({name: value for name, value in last.items() if value is not None} if fits else {})


def first_heads(start: str, own: Mapping[str, Tensor], heads: tuple[str, ...]) -> dict[str, Tensor]:
    """What the algorithm of another run has trained beside its network, for one whose ``state_dict`` is ``own``: all
    tensors whose names begin with one of ``heads``, or nothing if some are missing or have another shape."""
    path = find_start(start)
    if not heads or _network_of_run(path) is None:
        return {}
    stored = {name.removeprefix(ALGORITHM): value for name, value in _read(path).items() if name.startswith(ALGORITHM)}
    wanted = {name: value for name, value in own.items() if name.startswith(heads)}
    fits = all(name in stored and stored[name].shape == value.shape for name, value in wanted.items())
    return {name: stored[name] for name in wanted} if fits else {}


class TrainedNetwork(NamedTuple):
    """The network of a run of debiaspl, from its weights file."""

    name: str
    settings: Mapping[str, Any]
    channels: int
    side: int
    """Height of its training images."""

    def __str__(self) -> str:
        return " ".join((self.name, *(f"{key}={value}" for key, value in self.settings.items())))


def trained_network(start: str) -> TrainedNetwork | None:
    """The network that a start has trained; None if it is not a run of debiaspl."""
    return _network_of_run(find_start(start))


def _network_of_run(path: Path) -> TrainedNetwork | None:
    if path.suffix != ".safetensors":
        return None
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {}).get("debiaspl", "{}"))
        network, channels, side = facts["network"], facts["channels"], facts["size"][0]
        trained = TrainedNetwork(str(network["name"]), dict(network["settings"]), int(channels), int(side))
    except _DAMAGED:  # a RecursionError is a RuntimeError
        return None
    if channels not in (1, 3) or not 1 <= trained.side < 2**14:
        raise ValueError(f"{path} is damaged: it says {channels} channels and a side of {side}. Use another start.")
    return trained


def _projector(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """The first layer of the projector, for a classifier that continues it (head=hidden)."""
    wanted = {name: f"{PROJECTOR}{name.removeprefix(FIRST)}" for name in own if name.startswith(FIRST)}
    if any(source not in tensors or tensors[source].shape != own[name].shape for name, source in wanted.items()):
        raise ValueError(f"head is hidden, but {path.parent} has no simclr projector of this width. Use head=linear.")
    return {name: tensors[source] for name, source in wanted.items()}


def _tensors(path: Path) -> dict[str, Tensor]:
    content = _read(path)
    for name in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    tensors = content.items() if isinstance(content, Mapping) else ()
    return {name: value for name, value in tensors if isinstance(name, str) and isinstance(value, Tensor)}


def _read(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return read_tensor_file(path, need_digest=False)[0]
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = f"{path} is not a torch checkpoint, or it contains more than tensors and plain values"
        todo = "If you trust it, save only its tensors, as safetensors."
        raise ValueError(f"{found}. It was not loaded, because that could run its code. {todo}") from error
    except _DAMAGED as error:
        why = str(error).partition("\n")[0] or "it ends early"
        found = f"{path} cannot be read as a checkpoint: {why}"
        raise ValueError(f"{found}. Is it of another type? Get it again.") from error


def _prefix(tensors: Mapping[str, Tensor], path: Path) -> str:
    first = SIGNS[0]
    prefixes = [name.removesuffix(first) for name in tensors if name.endswith(first)]
    prefixes = [prefix for prefix in prefixes if f"{prefix}{SIGNS[1]}" in tensors]
    if not prefixes:
        named = ", ".join(list(tensors)[:3]) or "no tensor at all"
        found = f"found {len(tensors)}, such as {named}"
        raise ValueError(f"{path} contains no ResNet: expected {' and '.join(SIGNS)}, {found}.")
    trained = [prefix for prefix in prefixes if not AVERAGED & set(prefix.split("."))]
    chosen = trained or prefixes
    if len(chosen) > 1:
        raise ValueError(f"{path} contains {len(chosen)} networks, expected one: {', '.join(sorted(chosen))}.")
    return chosen[0]


def _check(weights: Mapping[str, Tensor], own: Mapping[str, Tensor], path: Path, advice: str) -> None:
    expected = {name: value for name, value in own.items() if not name.startswith(HEAD)}
    # Counters of batch norm, which older checkpoints lack, do not affect any result.
    missing = [name for name in expected if name not in weights and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in weights if name not in expected]
    shapes = [
        f"{name} {tuple(weights[name].shape)} instead of {tuple(value.shape)}"
        for name, value in expected.items()
        if name in weights and weights[name].shape != value.shape
    ]
    kinds = {"missing": missing, "not expected": unexpected, "of another shape": shapes}
    if any(kinds.values()):
        wrong = "; ".join(f"{len(names)} {kind}: {', '.join(names[:3])}" for kind, names in kinds.items() if names)
        raise ValueError(f"{path} does not fit this network, tensors {wrong}. {advice}")
