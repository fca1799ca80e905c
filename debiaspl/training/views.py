"""Makes the views of a recipe, for images or vectors, and checks what makes no sense with vectors."""

import torch

from debiaspl.algorithms import Algorithm
from debiaspl.augment import Hide, ImageViews, VectorViews, ViewMaker, Weak
from debiaspl.data import ImageSet, LazyImages, Vectors
from debiaspl.training.recipe import Recipe


class NeedsPictures(ValueError):  # noqa: N818 - it says what is missing
    """An algorithm that cannot learn from vectors, whatever its correction and settings."""


def view_maker(recipe: Recipe, images: ImageSet, dtype: torch.dtype | None) -> ViewMaker:
    strong, stored = recipe.strong.build("strong"), images.images
    hides = isinstance(strong, Hide)
    if isinstance(stored, Vectors):
        if not hides and not stored.strong:
            raise ValueError(
                f"strong is {recipe.strong.name}, which changes images, but these are vectors without their own strong "
                "views. Use strong=hide, which hides some of their features."
            )
        if hides and recipe.flip:
            raise ValueError(
                "flip is true, but strong=hide makes views of vectors, which cannot be mirrored. "
                "Use flip=false, or strong views of images: strong=fixmatch."
            )
        return VectorViews(0 if hides else stored.strong, strong if hides else None)
    if hides:
        raise ValueError(
            "strong is hide, which is for vectors of a frozen encoder, but these are images. "
            "Use strong=fixmatch, benchmark or cropcolor."
        )
    # Images from files are cropped while they are decoded.
    return ImageViews(Weak(flip=recipe.flip, pad=0 if isinstance(stored, LazyImages) else 1 / 8), strong, dtype)


def refuse_for_vectors(recipe: Recipe, algorithm: Algorithm) -> None:
    """Raise for settings that have no effect, or cannot work, when a classifier of vectors is trained."""
    if algorithm.needs_pictures:
        raise NeedsPictures(
            f"{recipe.algorithm.name} cannot learn from the vectors of a frozen encoder: {algorithm.needs_pictures} "
            "To train the encoder itself, use frozen=false."
        )
    if algorithm.correction.needs_pictures:
        raise NeedsPictures(
            f"{recipe.correction.name} does not work with the vectors of a frozen encoder: "
            f"{algorithm.correction.needs_pictures} Use another correction, or train the encoder itself: frozen=false."
        )
    if recipe.health_every > 0:
        raise ValueError(
            f"health_every is {recipe.health_every}, but the features of a frozen encoder do not change, so there is "
            "nothing to measure. Use health_every=0."
        )
    no_norm = {
        "average_statistics": recipe.average_statistics,
        "synchronise_norm": recipe.synchronise_norm,
        "joint": bool(getattr(algorithm, "joint", False)),
    }
    for name in (name for name, asked in no_norm.items() if asked):
        raise ValueError(
            f"{name} is true, but it is about batch norm, which a classifier of vectors does not have, so it has no "
            f"effect. Use {name}=false."
        )
