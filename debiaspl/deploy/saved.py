"""Load the model of a run folder, or of the Hugging Face hub, and use it."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._checks import extra
from debiaspl.data import UNLABELED, DataError, ImageSet, LazyImages
from debiaspl.data.decode import decode
from debiaspl.data.lazy import FolderFiles
from debiaspl.data.listing import list_images
from debiaspl.data.manifest import regular_file
from debiaspl.data.text import shown
from debiaspl.deploy.shares import SavedShares
from debiaspl.encoders import EncoderNetwork, features_of
from debiaspl.encoders.hub import require_hub
from debiaspl.encoders.trained import find_weights, load_trained
from debiaspl.files import parse_json, write_text
from debiaspl.models import Network, Seen, predict_set
from debiaspl.training import RunError
from debiaspl.training.parts import OwnCode, allowed_network

MOST_IMAGES, MOST_BYTES = 256, 2**23
"""Limits of a batch; the same on every machine, because sums in a network may depend on it in the last bit."""
ENCODED = 1024
"""Rows of features in a batch."""
WEIGHTS = "model.safetensors"
CHOSEN = "chosen.json"
"""A file in a run's folder that names the subfolder whose model is used instead, absent if there is none."""
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The final model of a run: its averaged network and its classes."""

    network: Network
    """In eval mode."""
    classes: tuple[str, ...]
    """Class names; column k of ``probabilities`` is classes[k]."""
    channels: int
    """1 or 3."""
    size: tuple[int, int]
    """Height and width of the training images."""
    shares: SavedShares | None = None
    """Class shares of the photos of its run, if it knows them."""

    def using(self, shares: str) -> "SavedModel":
        """This model for other class shares: those of the ``run``, those of the ``folder`` that is predicted, which
        ``predict_folder`` estimates, or ``even`` ones."""
        if self.shares is None:
            raise ValueError(f"--shares is {shares}, but only runs on photos with a frozen encoder know class shares.")
        return replace(self, shares=self.shares.using(shares))

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def read(self, file: Path | str | bytes) -> Tensor:
        """An image file of any size and mode, decoded and resized as in training: uint8, (C, H, W)."""
        return decode(file, self.size, self.channels)

    def photos(self, root: Path, files: Sequence[str]) -> ImageSet:
        """Files below a folder as an image set for the model; each is read when it is needed."""
        lazy = LazyImages(FolderFiles(root, tuple(files)), torch.arange(len(files)), self.size, self.channels)
        return ImageSet(lazy, torch.full((len(files),), UNLABELED), self.classes, tuple(files))

    def see(self, images: ImageSet, features: Path | None = None, own: bool = False) -> Iterator[Seen]:
        """Features and probabilities of a whole set, batch by batch; with ``own``, the network's own probabilities.
        ``features`` is a folder of features of the run's encoder, which are not computed again."""
        size = max(1, min(MOST_IMAGES, MOST_BYTES // (self.channels * self.size[0] * self.size[1])))
        every = self._see_encoded(images, features) if features else predict_set(self.network, images, size)
        for seen in every:
            adjusted = seen.probabilities if own or not self.shares else self.shares.adjusted(seen.probabilities)
            yield seen._replace(probabilities=adjusted)

    @torch.no_grad()
    def _see_encoded(self, images: ImageSet, folder: Path) -> Iterator[Seen]:
        network = self.network
        if not isinstance(network, EncoderNetwork):
            raise RunError("the model is a network of its own, without an encoder, so it has no use for --features.")
        values, skipped = features_of(images, network.encoder, folder)
        for chunk in torch.split(torch.arange(len(images)), ENCODED):
            bad = {position: skipped[position] for position in chunk.tolist() if position in skipped}
            chunk = torch.tensor([position for position in chunk.tolist() if position not in bad], dtype=torch.int64)
            rows = values[chunk].to(self.device)
            rows = rows if network.scaling is None else network.scaling(rows)
            yield Seen(chunk, rows, network.head(rows).float().softmax(-1), bad)

    def features(self, images: Any) -> Tensor:
        """Features of images, given as in ``predict``: float32, (N, D)."""
        return torch.cat([seen.features for seen in self._seen(images)])

    def probabilities(self, images: Any) -> Tensor:
        """Class probabilities of images, given as in ``predict``: float32, (N, classes)."""
        return torch.cat([seen.probabilities for seen in self._seen(images)])

    def predict(self, images: Any) -> list[str]:
        """The class name of each image. Images are a list or array of files, of any size; or bytes of the training
        size, (N, H, W), (N, H, W, C) or (N, C, H, W), as a tensor or an array."""
        return [self.classes[label] for label in self.probabilities(images).argmax(-1).tolist()]

    def _seen(self, images: Any) -> Iterator[Seen]:
        for seen in self.see(made := self._set(images)):
            if seen.skipped:  # rows would no longer match their images
                bad = [f"{made.ids[place]} ({reason})" for place, reason in seen.skipped.items()]
                raise DataError(f"no prediction for {shown(bad)}. Leave these files out.")
            yield seen

    def _set(self, images: Any) -> ImageSet:
        if isinstance(images, (str, Path)):
            raise ValueError(f"images is the path {images}, expected a list of files: [{str(images)!r}].")
        if not isinstance(images, Tensor) and getattr(getattr(images, "dtype", None), "kind", "") in ("U", "O"):
            images = images.tolist()  # file names as an array, or as a column of a table
        if not hasattr(images, "__len__"):
            raise ValueError(f"images is of type {type(images).__name__}, expected a list of files, or an array.")
        if not len(images):
            raise ValueError("there are no images, expected one or more.")
        if isinstance(images, Sequence) and all(isinstance(image, (str, Path)) for image in images):
            return self.photos(Path(), [str(image) for image in images])
        made = ImageSet.of(images, torch.full((len(images),), UNLABELED), self.classes)
        shape, expected = tuple(made.images.shape), ("N", self.channels, *self.size)
        if shape[1:] != expected[1:]:
            raise ValueError(f"images have shape {shape}, expected {expected}, as in training. Use read(file).")
        return made


def hand_out(run: Path, folder: str) -> None:
    """Make the model of this subfolder the model of the run; an empty name selects the run's own."""
    if folder:
        write_text(run / CHOSEN, json.dumps({"folder": folder}) + "\n")
    else:
        (run / CHOSEN).unlink(missing_ok=True)


def chosen_folder(run: Path) -> Path:
    """The folder whose model is the model of this run."""
    path = run / CHOSEN
    if not os.path.lexists(path):
        return run
    try:
        name = str(parse_json(regular_file(path).read_bytes())["folder"])
    except (KeyError, TypeError, ValueError, OSError):
        name = ""
    a_name = name not in ("", ".", "..") and Path(name).name == name and "\\" not in name
    if not a_name or any(path.is_symlink() for path in (run / name, run / name / WEIGHTS)):
        # The file is untrusted: a path could lead out of the run.
        raise RunError(f"{path} is damaged: it names no folder in {run}. Remove it to use the run's own model.")
    return run / name


def weights_of(run: Path) -> Path:
    """The file with the weights of the model of a finished run. Raises if there is none."""
    try:
        return find_weights(chosen_folder(run))
    except DataError as error:
        raise RunError(str(error)) from error


def check_inputs(run: Path, photos: Path | None = None) -> None:
    """Raise if there is no finished run or no folder of photos; nothing is read. For commands, before what they check
    about the files to write: an input that is missing is told first."""
    weights_of(run)
    if photos is not None and not photos.exists():
        list_images(photos)  # raises


def load_model(run: Path | str, device: torch.device | str = "cpu", network: OwnCode | None = None) -> SavedModel:
    """The model of a finished run, from ``model.safetensors`` alone: the folder may have been moved. For photos, it is
    the best supported one of those trained together (``chosen.json``). ``network`` is the code of a user's own, as it
    was passed to ``train``. A text such as ``user/name``, where there is no such folder, is a model on the Hugging Face
    hub.
    """
    if isinstance(run, str) and HUB_NAME.fullmatch(run) and not Path(run).exists():
        run = _downloaded(run)
    own = None if network is None else allowed_network(network)
    try:
        network_of_run, facts = load_trained(chosen_folder(Path(run)), own)
        shares = None if facts.shares is None else SavedShares.of(facts.shares, len(facts.classes))
    except DataError as error:
        raise RunError(str(error)) from error
    return SavedModel(network_of_run.to(device), facts.classes, facts.channels, facts.size, shares)


def _downloaded(name: str) -> Path:
    """The folder of a model on the hub, with its weights."""
    hub = extra("huggingface_hub", "models of the hub need huggingface_hub: pip install 'debiaspl[encoders]'")
    try:
        require_hub(name)
        return Path(hub.hf_hub_download(name, WEIGHTS)).parent
    except Exception as error:  # the hub's client has its own exceptions
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise RunError(f"{name} is no folder here, and it cannot be had from the hub: {reason}.") from error
