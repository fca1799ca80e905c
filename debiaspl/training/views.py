"""The views that a recipe asks for, of pictures or of vectors; and what makes no sense with vectors."""

import torch

from debiaspl.algorithms import Algorithm
from debiaspl.augment import Hide, ImageViews, VectorViews, ViewMaker, Weak
from debiaspl.data import ImageSet, LazyImages, Vectors
from debiaspl.training.parts import NOTHING
from debiaspl.training.recipe import Recipe


class NeedsPictures(ValueError):  # noqa: N818 - it says what is missing
    """An algorithm that cannot learn from vectors, whatever its correction and settings."""


def view_maker(recipe: Recipe, images: ImageSet, dtype: torch.dtype | None) -> ViewMaker:
    strong, stored = recipe.strong.build("strong"), images.images
    hides = isinstance(strong, Hide)
    if isinstance(stored, Vectors):
        if not hides and not stored.strong:
            raise ValueError(
                f"strong is {recipe.strong.name}, which changes pictures, and these are vectors without strong views "
                "of their own. Use strong=hide, which hides some of their features."
            )
        if hides and recipe.flip:
            raise ValueError(
                "flip is true, and strong=hide makes views of vectors, which have no mirror image. "
                "Use flip=false, or the strong views of pictures: strong=fixmatch."
            )
        return VectorViews(0 if hides else stored.strong, strong if hides else None)
    if hides:
        raise ValueError(
            "strong is hide, which hides features of the vectors of a frozen encoder, and these are pictures. "
            "Use strong=fixmatch, benchmark or cropcolor."
        )
    # Pictures that come from files are cropped where they are decoded.
    return ImageViews(Weak(flip=recipe.flip, pad=0 if isinstance(stored, LazyImages) else 1 / 8), strong, dtype)


def refuse_for_vectors(recipe: Recipe, algorithm: Algorithm) -> None:
    """Raise at what would do nothing, or cannot be done, where a classifier of vectors is trained."""
    if algorithm.needs_pictures:
        name, other = recipe.algorithm.name, recipe.beside.name
        who = name if other == NOTHING else f"{other}, beside {name},"
        raise NeedsPictures(
            f"{who} cannot learn from the vectors of a frozen encoder: {algorithm.needs_pictures} "
            "To train the encoder itself: frozen=false."
        )
    if algorithm.correction.needs_pictures:
        raise NeedsPictures(
            f"{recipe.correction.name} does not go with the vectors of a frozen encoder: "
            f"{algorithm.correction.needs_pictures} Use another correction, or train the encoder itself: frozen=false."
        )
    if recipe.health_every > 0:
        raise ValueError(
            f"health_every is {recipe.health_every}, and the features of a frozen encoder stay as they are: there is "
            "nothing to watch. Use health_every=0."
        )
    no_norm = {
        "average_statistics": recipe.average_statistics,
        "synchronise_norm": recipe.synchronise_norm,
        "joint": bool(getattr(algorithm, "joint", False)),
    }
    for name in (name for name, asked in no_norm.items() if asked):
        raise ValueError(
            f"{name} is true, and is about batch norm, which a classifier of the vectors of a frozen encoder has none "
            f"of: it would do nothing. Use {name}=false."
        )
