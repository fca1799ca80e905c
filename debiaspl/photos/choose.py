"""Chooses a recipe for a folder of photos, by the photos, the machine and what the user sets."""

import re
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from debiaspl.data import UNLABELED
from debiaspl.encoders import Encoder
from debiaspl.encoders.text import has_text_side
from debiaspl.features.crosscheck import SUPERVISED
from debiaspl.features.fit import LINEAR
from debiaspl.features.run import frozen as on_encoder
from debiaspl.features.shares import PHOTOS
from debiaspl.models import TrainedNetwork, trained_network
from debiaspl.models.start import first_weights
from debiaspl.photos.check import check_for
from debiaspl.photos.survey import Photos
from debiaspl.recipes.lengths import DIGITS, MINUTES, START
from debiaspl.recipes.start import largest_side, start_for
from debiaspl.training import Choice, Recipe, Run
from debiaspl.training.method import with_method
from debiaspl.training.parts import find, is_importable
from debiaspl.training.settings import parse_settings, split_assignments

MEMORY = 2e9
"""Photos of more bytes are read during training, not before."""
ENLARGED = 160
"""Side that smaller photos are enlarged to for an encoder, on a CPU: 2 points better on EuroSAT than 64 pixels, 10 on
shrunk flowers, in five times the time; 224 takes twice as long again for no more (results/photos/size.json)."""
FOLDS = 3
"""One label in three is held out for a comparison; the seed decides which."""
PER_CLASS = 5
"""Labels of each class that a comparison uses, where every photo has one."""
FINE_TUNED_UP_TO = 30_000_000
"""Parameters of a convolutional encoder that a GPU fine-tunes by itself, in minutes (docs/own-photos.md)."""
START_FOLDER = "start"
"""Where features that are learned without labels lie, below a run's folder."""
DATA = ("name", "about", "cost", "data", "protocol")
"""Settings that a recipe for photos keeps, whatever else it begins with."""
AUTOMATIC_FROM = {"cuda": 10_000}
"""With this many photos ``debiaspl train PHOTOS`` learns features first, by kind of device. On a CPU that would take
longer than all the rest."""


def choose(
    photos: Photos,
    device: str,
    encoder: Encoder | None = None,
    start: TrainedNetwork | None = None,
    frozen: bool = True,
) -> Recipe:
    """A recipe for these photos on this machine. ``encoder`` is ``frozen`` or fine-tuned; ``start`` is the network of
    the run that it starts from, if any."""
    base = Recipe(
        name=photos.folder.resolve().name,
        about=f"{len(photos.labels):,} photos, {sum(photos.counts):,} labels",
        data=str(photos.folder),
        protocol=Choice("given", photos.protocol),
    )
    if encoder is not None:
        base = replace(base, image_size=min(photos.side, encoder.image_size), correction=LINEAR.correction)
        # Frozen: DebiasPL that starts from labels spread over the graph of the features: docs/own-photos.md.
        own = replace(base, first_classifier="graph", algorithm=LINEAR.algorithm, optimise=PHOTOS)
        chosen = on_encoder(own, len(photos.labels), encoder) if frozen else _fine_tuned(base, encoder)
    else:
        chosen = (_small if device == "cpu" else _wide)(base, photos)
        chosen = chosen if start is None else _from_start(chosen, device, start)
    least = find("network", chosen.network.name).least_side
    chosen = replace(chosen, image_size=max(chosen.image_size, least))
    if photos.unlabeled == 0:
        chosen = with_method(chosen, SUPERVISED)
    return replace(chosen, stream=len(photos.labels) * 3 * chosen.image_size**2 > MEMORY)


def _fine_tuned(base: Recipe, encoder: Encoder) -> Recipe:
    """Train all weights, from the classifier of the frozen encoder; blocks change less the lower they are. Batch norm
    keeps its statistics, since an encoder stays in eval mode: features do not change before weights do."""
    return replace(
        base,
        network=Choice("encoder", {"source": encoder.source, "architecture": encoder.architecture}),
        first_classifier="fit",
        algorithm=Choice("fixmatch", {"threshold": 0.8}),
        steps=240,
        labeled_batch=32,
        unlabeled_batch=96,
        optimizer="adamw",
        learning_rate=2e-3 if encoder.any_size else 2e-4,  # measured; usual for transformers
        arc=1.0,
        warm_up=0.1,
        weight_decay=0.05,
        layer_decay=0.9,
        clip=1.0,
        average_decay=0.98,
        teacher="average",
        log_every=50,
        checkpoint_every=100,
    )


def _of(recipe: Recipe, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(recipe, name) for name in names}


def _small(base: Recipe, photos: Photos) -> Recipe:
    """Like the recipes for digits, with smaller batches: a network that two cores can train in minutes."""
    own = replace(DIGITS, **_of(base, DATA), image_size=min(photos.side, 32), flip=True)
    return replace(own, steps=400, labeled_batch=16, unlabeled_batch=48, learning_rate=0.1)


def _wide(base: Recipe, photos: Photos) -> Recipe:
    """Our minutes recipe, which is better than the paper's in this time: docs/lab/notebook.md."""
    own = replace(MINUTES, **_of(base, DATA), image_size=min(photos.side, 64), evaluate_every=0)
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
        what = f"the start was trained with images of {start.channels} channel, and photos have 3"
        raise ValueError(f"{what}. Use a start that was trained on photos: debiaspl train PHOTOS --method moco.")
    if not is_importable("network", start.name):
        raise ValueError(f"the network of the start is a user's own code. To execute that: --network {start.name}.")
    own = replace(own, network=Choice(start.name, start.settings), image_size=start.side)
    if device == "cpu":
        return own
    same = _of(own, (*DATA, "network", "image_size"))
    return replace(START, **same, evaluate_every=0).changed(memory=own.algorithm.settings["memory"])


def working_size(photos: Photos, device: str, encoder: Encoder) -> int:
    """The image size for an encoder that takes any size. On a CPU it is that of the photos, but small ones are
    enlarged."""
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
        own = f"{encoder.name} takes images of {encoder.image_size} x {encoder.image_size} only"
        raise ValueError(f"image_size is {size}, but {own}. Leave it out, or use efficientnet-lite0.")
    return size


def base_recipe(photos: Photos, encoder: Encoder | None = None, device: str = "cpu") -> Recipe:
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


def choose_with_start(
    photos: Photos,
    device: str,
    encoder: Encoder | None,
    settings: Sequence[str],
    out: Path | None,
    resume: bool = False,
    method: str | None = None,
) -> tuple[Recipe, Recipe | None]:
    """A recipe for these photos with the user's method and settings, and the start to train for it below ``out``, if
    any. A start that the user names decides the network and the image size, unless these are set too."""
    if encoder is not None and encoder.may_read_text and has_text_side(encoder.source):
        # Far better from few labels: Lin et al., Multimodality helps unimodality, 2023. What the user sets counts more.
        settings = ["first_classifier=text", *settings]

    def of_user(chosen: Recipe) -> Recipe:
        if method is not None:
            name = re.sub(r"[^\w.+-]+", "-", f"{chosen.name}-{method}")
            chosen = replace(with_method(chosen, method, load_files=True), name=name)
        return parse_settings(chosen, settings, load_files=True)

    texts = split_assignments(settings)
    if named := texts.get("start"):
        if encoder is not None:
            both = f"the encoder {encoder.source} or with the start {named}"
            raise ValueError(f"the network can begin with {both}. Leave out --encoder, or --set start.")
        run = Run(out or Path("runs") / photos.folder.resolve().name)
        begun = resume and run.config_path.exists()
        try:
            trained = trained_network(named)
        except ValueError:  # a run that is resumed does not need the folder of its start
            if not begun:
                raise
            trained = network_of(run.recipe())
        recipe = of_user(choose(photos, device, None, trained))
        if not begun:  # raise where the start has trained another network, before a run folder is begun
            with torch.random.fork_rng(devices=[]):
                network = recipe.network.build("network", num_classes=2, channels=3)
            first_weights(recipe.start, network.state_dict())
        return recipe, None
    # A trained encoder has settings of its own, so this is known before the others.
    by_itself = method is None and encoder is not None and fine_tunes_by_itself(photos, device, encoder, texts)
    frozen = texts.get("frozen", str(not by_itself)).lower() not in ("false", "0", "no")
    alone = of_user(choose(photos, device, encoder, frozen=frozen))
    if alone.algorithm.name == SUPERVISED and alone.first_classifier == "graph" and "first_classifier" not in texts:
        alone = replace(alone, first_classifier="random")  # the graph would have looked at the other photos
    learns_labels = find("algorithm", alone.algorithm.name).learns_labels
    if named == "" or encoder is not None or not learns_labels or not starts_by_itself(photos, device):
        return alone, None
    start = automatic_start(photos, device)
    recipe = of_user(choose(photos, device, None, network_of(start)))
    recipe = replace(recipe, start=str((out or Path("runs") / recipe.name) / START_FOLDER))
    # The user may have set another network, or what images look like.
    return recipe, replace(start, **_of(recipe, ("network", "image_size", "stream", "flip", "seed")))


def fine_tunes_by_itself(photos: Photos, device: str, encoder: Encoder, settings: Container[str]) -> bool:
    """Whether to train the encoder too, where nobody says so and no setting is about the fit of a frozen one."""
    of_frozen = any(name in settings for name in ("optimise", "first_classifier", "algorithm"))
    small = encoder.any_size and sum(one.numel() for one in encoder.parameters()) <= FINE_TUNED_UP_TO
    return device == "cuda" and small and not of_frozen and photos.unlabeled > 0 and photos.features is None


def network_of(recipe: Recipe) -> TrainedNetwork:
    return TrainedNetwork(recipe.network.name, recipe.network.settings, 3, recipe.image_size)


def start_name(folder: Path) -> str:
    """The name of the start of a folder of photos."""
    return f"{folder.resolve().name}-pretrain"


def choose_start(photos: Photos, device: str) -> Recipe:
    """A start for these photos on this machine. Labels are only used at the end, to measure the features: the class
    means of most of them are tested on the others."""
    base = start_for(len(photos.labels), device)
    least = find("network", base.network.name).least_side
    side, check = max(min(photos.side, largest_side(device)), least), check_for(photos)
    given: dict[str, Any] = {**photos.protocol, "labeled_also_unlabeled": True}
    given |= {"folds": check.folds, "fold": 0} if check.folds else {}
    return replace(
        base,
        name=start_name(photos.folder),
        about=f"{len(photos.labels):,} photos: features without labels",
        data=str(photos.folder),
        protocol=Choice("given", given) if photos.classes else Choice("no-labels"),
        image_size=side,
        stream=len(photos.labels) * 3 * side**2 > MEMORY,
    )


def starts_by_itself(photos: Photos, device: str) -> bool:
    """Whether there are enough photos without a label to learn features first."""
    return photos.unlabeled > 0 and len(photos.labels) >= AUTOMATIC_FROM.get(device, len(photos.labels) + 1)


def automatic_start(photos: Photos, device: str) -> Recipe:
    """The start that ``debiaspl train PHOTOS`` trains itself; it uses no labels, so all folds have the same."""
    return replace(choose_start(photos, device), protocol=Choice("no-labels"))
