"""A run folder -> the model it ended with. Weights and JSON are read; nothing in a folder is ever executed."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, ImageSet, LazyImages
from debiaspl.data.decode import decode
from debiaspl.data.lazy import FolderFiles
from debiaspl.data.tensor_file import Damaged, read_tensor_file
from debiaspl.models import Network, Seen, predict_set
from debiaspl.training import Choice, RunError

FILE = "model.safetensors"
MOST_IMAGES, MOST_BYTES = 256, 2**23
"""Of a batch; the same on every machine, because sums in a network may depend on it in the last bit."""


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a run ended with: its averaged network, and what it was trained to tell apart."""

    network: Network
    """In eval mode."""
    classes: tuple[str, ...]
    """Class names; column k of ``probabilities`` is classes[k]."""
    channels: int
    """1 or 3."""
    size: tuple[int, int]
    """Height and width of the images it was trained with."""

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def read(self, file: Path | str | bytes) -> Tensor:
        """An image file of any size and mode, decoded and resized as in training: uint8, (C, H, W)."""
        return decode(file, self.size, self.channels)

    def photos(self, root: Path, files: Sequence[str]) -> ImageSet:
        """Files below a folder as a set that the model can see, each read when it is its turn."""
        lazy = LazyImages(FolderFiles(root, tuple(files)), torch.arange(len(files)), self.size, self.channels)
        return ImageSet(lazy, torch.full((len(files),), UNLABELED), self.classes, tuple(files))

    def see(self, images: ImageSet, workers: int | None = None) -> Iterator[Seen]:
        """Features and probabilities of a whole set, batch by batch."""
        size = max(1, min(MOST_IMAGES, MOST_BYTES // (self.channels * self.size[0] * self.size[1])))
        return predict_set(self.network, images, size, workers=workers)

    def features(self, images: Any) -> Tensor:
        """What the classifier sees of images, as ``predict`` takes them: float32, (N, D)."""
        return torch.cat([seen.features for seen in self.see(self._set(images))])

    def probabilities(self, images: Any) -> Tensor:
        """Of every class, for images as ``predict`` takes them: float32, (N, classes)."""
        return torch.cat([seen.probabilities for seen in self.see(self._set(images))])

    def predict(self, images: Any) -> list[str]:
        """The class of each image, by name. Images are bytes of the size it was trained with, (N, H, W), (N, H, W, C)
        or (N, C, H, W), as a tensor or an array; ``read(file)`` gives one of a file of any size."""
        return [self.classes[label] for label in self.probabilities(images).argmax(-1).tolist()]

    def _set(self, images: Any) -> ImageSet:
        if not len(images):
            raise ValueError("there are no images, expected one or more.")
        made = ImageSet.of(images, torch.full((len(images),), UNLABELED), self.classes)
        expected = (self.channels, *self.size)
        if tuple(made.images.shape[1:]) != expected:
            raise ValueError(
                f"images have shape {tuple(made.images.shape)}, expected (N, C, H, W) with C, H, W = "
                f"{', '.join(map(str, expected))}, as in training. read(file) gives one of them."
            )
        return made


def load_model(run: Path | str, device: torch.device | str = "cpu") -> SavedModel:
    """The model of a run that has ended, from ``model.safetensors`` alone: the folder may have been moved anywhere."""
    folder = Path(run)
    path = folder / FILE
    _check_place(folder, path)
    try:
        weights, texts, _ = read_tensor_file(path, need_digest=False)  # earlier versions wrote none
    except (Damaged, OSError) as error:
        raise RunError(f"{path} is damaged: {error}. Bring it back from a copy, or train anew.") from error
    facts = _facts(texts, path)
    network = _network(facts, path)
    _fill(network, weights, path)
    return SavedModel(
        network=network.to(device).eval().requires_grad_(False),
        classes=tuple(facts["classes"]),
        channels=facts["channels"],
        size=(facts["size"][0], facts["size"][1]),
    )


def _check_place(folder: Path, path: Path) -> None:
    """Raise, with what to do, if there is no model here."""
    if not folder.is_dir():
        found = f"is a file; did you mean {folder.parent}?" if folder.exists() else "does not exist."
        raise RunError(f"{folder} {found} Expected the folder of a run, which debiaspl train has made.")
    if path.is_file():
        return
    if (folder / "config.json").exists():
        if (folder / "results.json").exists():
            raise RunError(
                f"the run in {folder} has ended, but its {FILE} is missing. Bring it back from a copy, or train anew."
            )
        raise RunError(
            f"the run in {folder} has not ended: it has no {FILE} yet. Go on with the command that began it and "
            f"--resume; look at it meanwhile: debiaspl watch {folder}"
        )
    held = sorted(inner.parent.name for inner in folder.glob(f"*/{FILE}"))
    hint = f" It holds runs, such as {folder / held[0]}." if held else ""
    raise RunError(
        f"{folder} is no run of debiaspl: it has no {FILE}, expected a folder that debiaspl train has made.{hint}"
    )


def _facts(metadata: dict[str, str] | None, path: Path) -> dict[str, Any]:
    """What the run wrote about its weights, if it is what it must be."""
    if not metadata or "debiaspl" not in metadata:
        raise RunError(
            f"{path} does not say which network and classes its weights belong to: another program wrote it. "
            "Expected the file that debiaspl train has made."
        )
    try:
        facts = json.loads(metadata["debiaspl"])
        classes, size, network = facts["classes"], facts["size"], facts["network"]
        good = (
            isinstance(network, dict)
            and set(network) == {"name", "settings"}
            and isinstance(network["settings"], dict)
            and isinstance(classes, list)
            and all(isinstance(name, str) for name in classes)
            and len(set(classes)) == len(classes) >= 2
            and facts["channels"] in (1, 3)
            and isinstance(size, list)
            and len(size) == 2
            and all(type(side) is int and side > 0 for side in size)
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(_damaged_facts(path, f"{type(error).__name__}: {error}")) from error
    if not good:
        raise RunError(_damaged_facts(path, metadata["debiaspl"][:200]))
    return dict(facts)


def _damaged_facts(path: Path, found: str) -> str:
    return (
        f"what {path} says about its weights is damaged or of another version of debiaspl ({found}); expected JSON "
        "with network, classes, channels and size. Bring it back from a copy, or train anew."
    )


def _network(facts: dict[str, Any], path: Path) -> Network:
    """A network of this kind, with whatever first weights."""
    try:
        # First weights are drawn from torch's global generator: the user's own is left alone.
        with torch.random.fork_rng(devices=[]):
            network: Network = Choice(**facts["network"]).build(
                "network", num_classes=len(facts["classes"]), channels=facts["channels"]
            )
            return network
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # what stands there may be damaged or a stranger's: nearly anything goes wrong
        raise RunError(
            f"{path} names a network that this version of debiaspl cannot build: {_told(error)} "
            "Use the version that trained it, or train anew."
        ) from error


def _told(error: Exception) -> str:
    """A KeyError says no more than the key."""
    own = (ValueError, TypeError, RuntimeError)
    return str(error) if isinstance(error, own) else f"{type(error).__name__}: {error}."


def _fill(network: Network, weights: dict[str, Tensor], path: Path) -> None:
    own = network.state_dict()
    wrong = [name for name in own if name not in weights or weights[name].shape != own[name].shape]
    extra = [name for name in weights if name not in own]
    if wrong or extra:
        named = ", ".join((wrong + extra)[:3])
        raise RunError(
            f"the weights in {path} belong to another network than the one it names: {len(wrong)} tensors are missing "
            f"or have another shape, {len(extra)} are not expected ({named}). Bring the file back from a copy, or "
            "train anew."
        )
    network.load_state_dict(weights)
