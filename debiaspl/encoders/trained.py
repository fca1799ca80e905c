"""The network that a run has ended with, from its folder: tensors and JSON are read, and nothing is executed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.data.tensor_file import Damaged, read_tensor_file
from debiaspl.encoders.network import EncoderNetwork
from debiaspl.models import ALGORITHM, MODELS, Network
from debiaspl.models.start import WEIGHTS

NETWORKS: dict[str, type[Network]] = {**MODELS, "encoder": EncoderNetwork}
"""Networks that see pictures, by the names that recipes know."""


@dataclass(frozen=True)
class NetworkFacts:
    """What a run writes beside its weights: enough to build their network again."""

    network: Mapping[str, Any]
    """Its name and its settings."""
    classes: tuple[str, ...]
    channels: int
    """1 or 3."""
    size: tuple[int, int]
    """Height and width of the images it was trained with."""
    text: str
    """All of this as the JSON that it was read from."""

    @classmethod
    def of(cls, text: str, source: str) -> "NetworkFacts":
        """From that JSON, if it is what it must be; ``source`` is where it was found, for the message."""
        try:
            facts = json.loads(text)
            classes, size, network = facts["classes"], facts["size"], facts["network"]
            good = (
                isinstance(network, dict)
                and set(network) == {"name", "settings"}
                and isinstance(network["settings"], dict)
                and isinstance(classes, list)
                and all(isinstance(name, str) for name in classes)
                and len(set(classes)) == len(classes) != 1
                and facts["channels"] in (1, 3)
                and isinstance(size, list)
                and len(size) == 2
                and all(type(side) is int and side > 0 for side in size)
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(_damaged_facts(source, f"{type(error).__name__}: {error}")) from error
        if not good:
            raise DataError(_damaged_facts(source, text[:200]))
        return cls(network, tuple(classes), facts["channels"], (size[0], size[1]), text)

    def build(self, source: str) -> Network:
        """A network of this kind, with random weights, in eval mode and without gradients."""
        try:
            name, settings = self.network["name"], dict(self.network["settings"])
            if name not in NETWORKS:
                raise ValueError(
                    f"there is no network named {name!r} that sees pictures; there are {', '.join(sorted(NETWORKS))}."
                )
            # JSON has no tuples, and no setting of a network is a list.
            settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
            known = {"num_classes": len(self.classes), "channels": self.channels}
            # First weights are drawn from torch's global generator: the user's own is left alone.
            with torch.random.fork_rng(devices=[]):
                return NETWORKS[name](**known, **settings).eval().requires_grad_(False)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # the file may be damaged or somebody else's: nearly anything can go wrong
            raise DataError(
                f"{source} names a network that this version of debiaspl cannot build: {_told(error)} "
                "Use the version that trained it, or train anew."
            ) from error


def load_trained(folder: Path) -> tuple[Network, NetworkFacts]:
    """The network of a run that has ended, in eval mode, from ``model.safetensors`` alone."""
    path = _find(folder)
    try:
        weights, metadata, _ = read_tensor_file(path, need_digest=False)  # earlier versions wrote none
    except (Damaged, OSError) as error:
        raise DataError(f"{path} is damaged: {error}. Bring it back from a copy, or train anew.") from error
    if "debiaspl" not in metadata:
        raise DataError(
            f"{path} does not say which network and classes its weights belong to: another program wrote it. "
            "Expected the file that debiaspl train has made."
        )
    facts = NetworkFacts.of(metadata["debiaspl"], str(path))
    if not facts.classes:
        raise DataError(
            f"the run in {folder} has learned features without labels: it has no classifier, so it cannot predict. "
            f"Train one that begins with it, on photos with a few labels: debiaspl train PHOTOS --set start={folder}"
        )
    network = facts.build(str(path))
    _fill(network, weights, path)
    return network, facts


def _find(folder: Path) -> Path:
    """The file with the weights of a run; raises, with what to do, if there is none in this folder."""
    path = folder / WEIGHTS
    if not folder.is_dir():
        found = f"is a file; did you mean {folder.parent}?" if folder.exists() else "does not exist."
        raise DataError(f"{folder} {found} Expected the folder of a run, which debiaspl train has made.")
    if path.is_file():
        return path
    if (folder / "config.json").exists():
        if (folder / "results.json").exists():
            raise DataError(
                f"the run in {folder} has ended, but its {WEIGHTS} is missing. Bring it back from a copy, or train "
                "anew."
            )
        raise DataError(
            f"the run in {folder} has not ended: it has no {WEIGHTS} yet. Go on with the command that began it and "
            f"--resume; look at it meanwhile: debiaspl watch {folder}"
        )
    held = sorted(inner.parent.name for inner in folder.glob(f"*/{WEIGHTS}"))
    hint = f" It holds runs, such as {folder / held[0]}." if held else ""
    raise DataError(
        f"{folder} is no run of debiaspl: it has no {WEIGHTS}, expected a folder that debiaspl train has made.{hint}"
    )


def _damaged_facts(source: str, found: str) -> str:
    return (
        f"what {source} says about its weights is damaged or of another version of debiaspl ({found}); expected JSON "
        "with network, classes, channels and size. Bring it back from a copy, or train anew."
    )


def _told(error: Exception) -> str:
    """Our own errors are sentences; a KeyError says no more than the key."""
    return str(error) if isinstance(error, ValueError | RuntimeError) else f"{type(error).__name__}: {error}."


def _fill(network: Network, weights: dict[str, Tensor], path: Path) -> None:
    own = network.state_dict()
    wrong = [name for name in own if name not in weights or weights[name].shape != own[name].shape]
    weights = {name: value for name, value in weights.items() if not name.startswith(ALGORITHM)}
    extra = [name for name in weights if name not in own]
    if wrong or extra:
        named = ", ".join((wrong + extra)[:3])
        raise DataError(
            f"the weights in {path} belong to another network than the one it names: {len(wrong)} tensors are missing "
            f"or have another shape, {len(extra)} are not expected ({named}). Bring the file back from a copy, or "
            "train anew."
        )
    network.load_state_dict(weights)
