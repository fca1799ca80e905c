"""Somebody's own photos: what is chosen for them, by what is there and by the machine.

debiaspl train photos/ --labels labels.csv
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError
from debiaspl.data.decode import BadImage, open_image
from debiaspl.data.given import fold_of
from debiaspl.data.listing import list_folder
from debiaspl.encoders import Encoder
from debiaspl.recipes.cifar10 import MINUTES
from debiaspl.training import Choice, Recipe
from debiaspl.training.parts import find

FEWEST_IMAGES = 10
LOOKED_AT = 32
"""Photos that are opened to see how large they are."""
MEMORY = 2e9
"""Bytes of photos from which on they are read while training."""
HELD_OUT = 5
"""One label in so many is held out, where there are enough."""
ENOUGH = 10
"""Labels of the rarest class from which on there are,"""
ENOUGH_IN_ALL = 50
"""if so many can be held out."""


@dataclass(frozen=True, eq=False)
class Photos:
    """What lies in a folder."""

    folder: Path
    table: Path | None
    labels: Tensor
    """int64, (N,); -1 for none."""
    classes: tuple[str, ...]
    side: int
    """The shorter side of a usual photo, in pixels."""

    @property
    def counts(self) -> list[int]:
        return torch.bincount(self.labels[self.labels >= 0], minlength=len(self.classes)).tolist()

    @property
    def unlabeled(self) -> int:
        return int((self.labels == UNLABELED).sum())

    def headline(self) -> str:
        """What is there, in a line."""
        counts = self.counts
        rarest = min(range(len(counts)), key=counts.__getitem__)
        even = len(set(counts)) == 1
        spread = f"{counts[0]:,} of each" if even else f"rarest: {self.classes[rarest]} ({counts[rarest]})"
        return f"{len(self.labels):,} images, {sum(counts):,} labels, {len(counts)} classes; {spread}."

    @property
    def source(self) -> Path:
        """Where the labels come from: a table, or the folder with a folder for each class."""
        beside = self.folder / "labels.csv"
        return self.table or (beside if beside.is_file() else self.folder)

    @property
    def in_folders(self) -> bool:
        return self.source == self.folder


def survey(folder: Path, table: Path | None) -> Photos:
    """Look at a folder; no photo is read but a few, for their size."""
    listing = list_folder(folder, table)
    if len(listing.files) < FEWEST_IMAGES:
        raise DataError(
            f"{folder} holds {len(listing.files)} images, expected {FEWEST_IMAGES} or more. Put the photos that have "
            "no label there too: most of what is learned comes from them."
        )
    step = max(len(listing.files) // LOOKED_AT, 1)
    sides = [side for name in listing.files[::step] if (side := _side(folder / name))]
    if not sides:
        raise DataError(f"none of {len(listing.files[::step])} images of {folder} that were looked at can be read.")
    return Photos(folder, table, listing.labels, listing.classes, int(median(sides)))


def _side(path: Path) -> int | None:
    try:
        return min(open_image(path, None).size)
    except BadImage:
        return None


@dataclass(frozen=True)
class Check:
    """How a run on photos is checked with labels it did not learn from."""

    folds: int
    """Parts that the labels are cut in; 0: there are too few."""
    all_in_turn: bool
    """Each part is held out once, by a run of its own; else one part alone, by the run itself."""
    labels: int
    """Labels that are checked."""

    def words(self) -> str:
        """For the user, before it begins."""
        if not self.folds:
            return "Every class has one label only: nothing can be checked. Two of each would do."
        if self.all_in_turn:
            return f"Too few labels to hold any out: {self.labels} are cross-checked in {self.folds} folds."
        return f"{self.labels} labels are held out to check with."


def check_for(photos: Photos, folds: int = 3, seed: int = 0) -> Check:
    """Held-out labels where there are enough, else cross-checked ones."""
    counts = photos.counts
    if min(counts) >= ENOUGH and sum(counts) >= HELD_OUT * ENOUGH_IN_ALL:
        return Check(HELD_OUT, False, int((fold_of(photos.labels, HELD_OUT, seed) == 0).sum()))
    return cross_check(counts, folds)


def cross_check(counts: Sequence[int], folds: int = 3) -> Check:
    """Every label but for the only one of a class, in so many folds that none of them is empty."""
    again = sum(count for count in counts if count > 1)
    return Check(min(folds, again), True, again)


def choose(photos: Photos, device: str, encoder: tuple[str, Encoder] | None = None) -> Recipe:
    """A recipe for these photos on this machine; ``encoder`` is what the user has named, and what that is."""
    base = Recipe(
        name=photos.folder.resolve().name,
        about=f"{len(photos.labels):,} photos, {sum(photos.counts):,} labels",
        data=str(photos.folder),
        protocol=Choice("given", {"table": str(photos.table)} if photos.table else {}),
    )
    if encoder is not None:
        chosen = (_frozen if device == "cpu" else _fine_tuned)(base, photos, *encoder)
    else:
        chosen = (_small if device == "cpu" else _wide)(base, photos)
    least = find("network", chosen.network.name).least_side
    chosen = replace(chosen, image_size=max(chosen.image_size, least))
    if photos.unlabeled == 0:
        chosen = supervised(chosen)
    return replace(chosen, stream=len(photos.labels) * 3 * chosen.image_size**2 > MEMORY)


def supervised(recipe: Recipe) -> Recipe:
    """The baseline: the same, from the labels alone."""
    return replace(recipe, algorithm=Choice("supervised"), correction=Choice("none"))


def _frozen(base: Recipe, photos: Photos, name: str, encoder: Encoder) -> Recipe:
    """Seconds on a CPU, once the features are there. A linear classifier of fixed features is less sure of itself than
    a network that learns its own, so the threshold is lower; and all of its bias is taken out, not half of it."""
    network = {"source": name, "architecture": encoder.architecture, "frozen": True}
    return replace(
        base,
        image_size=min(photos.side, encoder.image_size),
        network=Choice("encoder", network),
        algorithm=Choice("fixmatch", {"threshold": 0.8}),
        correction=Choice("debiaser", {"strength": 1.0}),
        steps=min(max(len(photos.labels) // 50, 300), 800),
        learning_rate=1.0,
        weight_decay=1e-4,
    )


def _fine_tuned(base: Recipe, photos: Photos, name: str, encoder: Encoder) -> Recipe:
    """All weights move, slowly; the average of them, statistics included, labels the unlabeled photos (EMAN)."""
    return replace(
        base,
        image_size=min(photos.side, encoder.image_size),
        network=Choice("encoder", {"source": name, "architecture": encoder.architecture}),
        algorithm=Choice("fixmatch", {"threshold": 0.8}),
        steps=2000,
        labeled_batch=32,
        unlabeled_batch=160,
        learning_rate=0.01,
        weight_decay=1e-4,
        average_decay=0.99,
        average_statistics=True,
        teacher="average",
        checkpoint_every=500,
    )


def _small(base: Recipe, photos: Photos) -> Recipe:
    """Like the recipes for digits, with smaller batches: a network that two cores can train in minutes."""
    return replace(
        base,
        image_size=min(photos.side, 32),
        network=Choice("small"),
        algorithm=Choice("fixmatch", {"joint": False}),
        steps=400,
        labeled_batch=16,
        unlabeled_batch=48,
        learning_rate=0.1,
        average_decay=0.99,
        average_statistics=True,
        log_every=25,
        checkpoint_every=100,
    )


def _wide(base: Recipe, photos: Photos) -> Recipe:
    """Our recipe for minutes, which learns more from few labels in this time than the paper's: docs/debiasing.md."""
    own = replace(MINUTES, name=base.name, about=base.about, cost="", data=base.data, protocol=base.protocol)
    # Photos have up to four times as many pixels as that recipe was made for; half of the steps keep it to minutes.
    own = replace(own, image_size=min(photos.side, 64), steps=own.steps // 2, log_every=500, evaluate_every=0)
    # A memory that held the same photo again would have it told from itself.
    memory = min(own.algorithm.settings["memory"], len(photos.labels) // 4)
    if memory >= own.unlabeled_batch:
        return own.with_settings([f"memory={memory}"])
    # Without one, large steps spoil the contrast: docs/debiasing.md.
    return own.with_settings(["memory=0", "relations=0", "temperature=0.2", "learning_rate=0.06"])


def working_size(photos: Photos, device: str, encoder: Encoder) -> int:
    """The side that an encoder computes with where it takes any: on a CPU no more than the photos have to show."""
    if device != "cpu" or photos.side >= encoder.image_size:
        return encoder.image_size
    return min(max(-(-photos.side // 32) * 32, 64), encoder.image_size)
