"""The recipe that all runs of a comparison on photos share."""

from dataclasses import replace

from debiaspl.data import UNLABELED
from debiaspl.encoders import Encoder
from debiaspl.photos.choose import choose
from debiaspl.photos.survey import Photos
from debiaspl.training import Choice, Recipe

FOLDS = 3
"""One label in three is held out for the comparison; the seed decides which."""
PER_CLASS = 5
"""Labels of each class that are used, where every photo has one."""


def base_recipe(photos: Photos, encoder: tuple[str, Encoder] | None = None, device: str = "cpu") -> Recipe:
    """The shared recipe, for this device.

    If some photos have no label, a third of the labels is held out, another one for every seed. If all have one, a few
    of each class are used, the others hidden, and a fifth of the photos is the test set."""
    if photos.unlabeled:
        protocol = Choice("given", {**photos.protocol, "folds": FOLDS})
        return replace(choose(photos, device, encoder), protocol=protocol)
    if photos.table is not None:
        raise ValueError(f"{photos.table} labels every photo. Expected it at {photos.folder / 'labels.csv'}.")
    # At least one label of every class must stay hidden when a fifth is held out: what a class of few has left.
    shown = max(min(PER_CLASS, min(photos.counts) * 4 // 5 - 1), 1)
    chosen = choose(replace(photos, labels=photos.labels.new_full(photos.labels.shape, UNLABELED)), device, encoder)
    about = f"{len(photos.labels):,} photos, {shown} labels of each class shown"
    return replace(chosen, about=about, protocol=Choice("few-labels", {"per_class": shown}))
