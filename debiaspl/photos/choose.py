"""Chooses a recipe for a folder of photos, by the photos and by the machine.

debiaspl train photos/ --labels labels.csv
"""

from collections.abc import Sequence
from dataclasses import replace

from debiaspl.data import UNLABELED
from debiaspl.encoders import Encoder
from debiaspl.features.blend import PHOTOS
from debiaspl.features.crosscheck import SUPERVISED
from debiaspl.features.fit import LINEAR
from debiaspl.models import TrainedNetwork
from debiaspl.photos.survey import Photos
from debiaspl.recipes.frozen import frozen as on_encoder
from debiaspl.recipes.lengths import MINUTES, START
from debiaspl.training import Choice, Recipe
from debiaspl.training.method import with_method
from debiaspl.training.parts import find, is_importable
from debiaspl.training.settings import split_assignments

MEMORY = 2e9
"""Photos of more bytes are read during training, not before."""
ENLARGED = 160
"""Side that smaller photos are enlarged to for an encoder, on a CPU. With efficientnet-lite0 and five labels a class a
logistic regression gains 2 points on EuroSAT (64 pixels) and 10 on flowers shrunk to 64, instead of computing at 64; it
takes five times as long, and 224 takes twice as long again for no more: results/photos/size.json."""
FOLDS = 3
"""One label in three is held out for a comparison; the seed decides which."""
PER_CLASS = 5
"""Labels of each class that a comparison uses, where every photo has one."""


def choose(
    photos: Photos,
    device: str,
    encoder: tuple[str, Encoder] | None = None,
    start: TrainedNetwork | None = None,
    frozen: bool = True,
) -> Recipe:
    """A recipe for these photos on this machine. ``encoder`` is its name and the encoder itself, which is ``frozen`` or
    fine-tuned; ``start`` is the network of the run that it starts from, if any."""
    base = Recipe(
        name=photos.folder.resolve().name,
        about=f"{len(photos.labels):,} photos, {sum(photos.counts):,} labels",
        data=str(photos.folder),
        protocol=Choice("given", photos.protocol),
    )
    if encoder is not None:
        chosen = (_frozen if frozen else _fine_tuned)(base, photos, *encoder)
    else:
        chosen = (_small if device == "cpu" else _wide)(base, photos)
        chosen = chosen if start is None else _from_start(chosen, device, start)
    least = find("network", chosen.network.name).least_side
    chosen = replace(chosen, image_size=max(chosen.image_size, least))
    if photos.unlabeled == 0:
        chosen = with_method(chosen, SUPERVISED)
    return replace(chosen, stream=is_large(photos, chosen.image_size))


def is_large(photos: Photos, side: int) -> bool:
    """Whether these photos, at this size, are read during training."""
    return len(photos.labels) * 3 * side**2 > MEMORY


def _frozen(base: Recipe, photos: Photos, name: str, encoder: Encoder) -> Recipe:
    """DebiasPL that starts from labels spread over the graph of the features: docs/own-photos.md."""
    own = replace(
        base,
        image_size=min(photos.side, encoder.image_size),
        first_classifier="graph",
        algorithm=LINEAR.algorithm,
        correction=LINEAR.correction,
        optimise=PHOTOS,
    )
    return on_encoder(own, len(photos.labels), name, encoder.architecture)


def _fine_tuned(base: Recipe, photos: Photos, name: str, encoder: Encoder) -> Recipe:
    """Train all weights, slowly; their average, with its statistics, makes the pseudo-labels (EMAN)."""
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
    """Our minutes recipe, which is better than the paper's in this time: docs/lab/notebook.md."""
    own = replace(MINUTES, name=base.name, about=base.about, cost="", data=base.data, protocol=base.protocol)
    own = replace(own, image_size=min(photos.side, 64), evaluate_every=0)
    # A memory that held the same photo again would have it told from itself.
    memory = min(own.algorithm.settings["memory"], len(photos.labels) // 4)
    if memory >= own.unlabeled_batch:
        return own.changed(memory=memory)
    # Without one, large steps spoil the contrast: docs/lab/notebook.md.
    return own.changed(memory=0, relations=0.0, temperature=0.2, learning_rate=0.06)


def _from_start(own: Recipe, device: str, start: TrainedNetwork) -> Recipe:
    """The recipe with the network and the image size of the start. On a GPU the features change slowly and pseudo-
    labels are used nearly from the beginning: the settings of docs/start.md, found on CIFAR-10."""
    if start.channels != 3:
        raise ValueError(
            f"the start was trained with images of {start.channels} channel, and photos have 3. Use a start that was "
            "trained on photos: debiaspl train PHOTOS --method moco."
        )
    if not is_importable("network", start.name):
        raise ValueError(f"the network of the start is a user's own code. To execute that: --network {start.name}.")
    own = replace(own, network=Choice(start.name, start.settings), image_size=start.side)
    if device == "cpu":
        return own
    same = {name: getattr(own, name) for name in ("name", "about", "cost", "data", "protocol", "network", "image_size")}
    return replace(START, **same, evaluate_every=0).changed(memory=own.algorithm.settings["memory"])


def working_size(photos: Photos, device: str, encoder: Encoder, wanted: int = 0) -> int:
    """The image size for an encoder that takes any size. ``wanted`` is the user's setting, or 0. On a CPU it is that of
    the photos, but small ones are enlarged."""
    if wanted:
        return wanted
    if device != "cpu" or photos.side >= encoder.image_size:
        return encoder.image_size
    return min(max(-(-photos.side // 32) * 32, ENLARGED), encoder.image_size)


def wanted_size(settings: Sequence[str], encoder: Encoder) -> int:
    """The user's image size, or 0; raises where the encoder cannot use it."""
    typed = split_assignments(settings).get("image_size", "")
    if not typed.isdigit():  # what is no number is refused with the other settings
        return 0
    size = int(typed)
    if size > encoder.image_size and not encoder.any_size:
        raise ValueError(
            f"image_size is {size}, but {encoder.name} takes images of {encoder.image_size} x {encoder.image_size} "
            "only. Leave it out, or use an encoder that takes any size: efficientnet-lite0, a ResNet, a ConvNeXt."
        )
    return size


def base_recipe(photos: Photos, encoder: tuple[str, Encoder] | None = None, device: str = "cpu") -> Recipe:
    """The recipe that all runs of a comparison on photos share, for this device.

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
