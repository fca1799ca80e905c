"""The final network of a run, from its folder: only tensors and JSON are read, and no code is executed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.data.tensor_file import Damaged, read_tensor_file
from debiaspl.encoders.network import EncoderNetwork
from debiaspl.files import parse_json
from debiaspl.models import ALGORITHM, MODELS, Network
from debiaspl.models.own import OwnBuilder, is_own, own_builder
from debiaspl.models.start import WEIGHTS

NETWORKS: dict[str, type[Network]] = {**MODELS, "encoder": EncoderNetwork}
"""Networks for images, by their names in recipes."""


@dataclass(frozen=True)
class NetworkFacts:
    """Description of a run's network, saved with its weights: enough to build it again."""

    network: Mapping[str, Any]
    """Its name and its settings."""
    classes: tuple[str, ...]
    channels: int
    """1 or 3."""
    size: tuple[int, int]
    """Height and width of its training images."""
    shares: Any
    """What it says of class shares, unchecked; None without them."""
    text: str
    """The JSON that all of this was read from."""

    @classmethod
    def of(cls, text: str, source: str) -> "NetworkFacts":
        """Parse and check the JSON; ``source`` is its file, for the message."""
        try:
            facts = parse_json(text)
            network = {"name": str(facts["network"]["name"]), "settings": dict(facts["network"]["settings"])}
            classes, (height, width) = tuple(map(str, facts["classes"])), map(int, facts["size"])
            good = len(set(classes)) == len(classes) != 1 and facts["channels"] in (1, 3) and min(height, width) > 0
            good = good and isinstance(facts["classes"], list)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            good, text = False, f"{type(error).__name__}: {error}"
        if not good:
            found = f"the description of the weights in {source} is damaged or of another version ({text[:200]})"
            raise DataError(f"{found}. Restore it from a copy, or train again.")
        return cls(network, classes, facts["channels"], (height, width), facts.get("shares"), text)

    def build(self, source: str, own: OwnBuilder | None = None) -> Network:
        """A network of this kind with random weights, in eval mode and without gradients. ``own`` builds that of a
        user, if it was not allowed before."""
        name, settings = self.network["name"], self.network["settings"]
        own = own or own_builder(name)
        if is_own(name) and own is None:
            how = f"--network {name}, or load_model(..., network=...)"
            raise DataError(f"the network in {source} is built by a user's own code, {name}. To execute that: {how}.")
        try:
            if own is None and name not in NETWORKS:
                raise ValueError(f"there is no network named {name!r} for images, only {', '.join(sorted(NETWORKS))}.")
            # JSON has no tuples, and no setting of a network is a list.
            settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
            shape: dict[str, Any] = {"num_classes": len(self.classes), "channels": self.channels}
            build: Callable[..., Network] = NETWORKS[name] if own is None else partial(own, image_size=self.size)
            # Initial weights use torch's global generator, whose state must not change for the user.
            with torch.random.fork_rng(devices=[]):
                return build(**shape, **settings).eval().requires_grad_(False)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # the file may be damaged or untrusted: many things can go wrong
            why = f"{type(error).__name__}: {error}"
            raise DataError(f"{source} names a network that cannot be built ({why}). Train again.") from error


def load_trained(folder: Path, own: OwnBuilder | None = None) -> tuple[Network, NetworkFacts]:
    """The network of a finished run, in eval mode, from ``model.safetensors`` alone; ``own`` builds a user's."""
    path = find_weights(folder)
    try:
        weights, metadata = read_tensor_file(path, need_digest=False)  # earlier versions wrote no digest
    except (Damaged, OSError) as error:
        raise DataError(f"{path} is damaged: {error}. Restore it from a copy, or train again.") from error
    if "debiaspl" not in metadata:
        raise DataError(f"{path} does not name its network and classes. Expected a file made by debiaspl train.")
    facts = NetworkFacts.of(metadata["debiaspl"], str(path))
    if not facts.classes:
        found = f"the run in {folder} has learned features without labels, so it has no classifier"
        raise DataError(f"{found}. Train one on a few labels: debiaspl train PHOTOS --set start={folder}")
    network = facts.build(str(path), own)
    _fill(network, weights, path)
    return network, facts


def find_weights(folder: Path) -> Path:
    """The file with the weights of a run; if there is none, raises an error that says what to do."""
    path = folder / WEIGHTS
    if not folder.is_dir():
        found = f"is a file; did you mean {folder.parent}?" if folder.exists() else "does not exist."
        raise DataError(f"{folder} {found} Expected the folder of a run made by debiaspl train.")
    if path.is_file():
        return path
    if (folder / "config.json").exists():
        if (folder / "results.json").exists():
            raise DataError(f"the run in {folder} has ended, but its {WEIGHTS} is missing. Restore it, or train again.")
        found = f"the run in {folder} has not ended: it has no {WEIGHTS} yet"
        raise DataError(f"{found}. Resume it with its command and --resume, or look at it: debiaspl report {folder}")
    held = sorted(inner.parent.name for inner in folder.glob(f"*/{WEIGHTS}"))
    hint = f" It contains runs, such as {folder / held[0]}." if held else ""
    raise DataError(f"{folder} is not a run of debiaspl: it has no {WEIGHTS}, as debiaspl train writes it.{hint}")


def _fill(network: Network, weights: dict[str, Tensor], path: Path) -> None:
    try:
        network.load_state_dict({name: value for name, value in weights.items() if not name.startswith(ALGORITHM)})
    except RuntimeError as error:
        found = " ".join(str(error).split())[:300]
        named = f"the weights in {path} are not those of the network it names ({found})"
        raise DataError(f"{named}. Restore it from a copy, or train again.") from error
