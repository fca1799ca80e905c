"""Train on a folder of photos, from Python and for ``debiaspl train PHOTOS``: what is chosen, and then trained."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from debiaspl.data.label_table import Columns
from debiaspl.data.manifest import stored_for
from debiaspl.deploy import SavedModel, load_model
from debiaspl.encoders import Encoder, lite0_is_installed, load_encoder
from debiaspl.encoders.efficientnet import NAME as LITE0
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.run import is_frozen
from debiaspl.photos.check import Check, Outcome, check_for, cross_check
from debiaspl.photos.choose import choose_with_start, wanted_size, working_size
from debiaspl.photos.frozen import train_frozen
from debiaspl.photos.run import count_runs, train_networks, with_check
from debiaspl.photos.survey import Photos, survey
from debiaspl.recipes import RECIPES
from debiaspl.report.runs import write_report
from debiaspl.training import Recipe, Run
from debiaspl.training.classifier import NAMED
from debiaspl.training.loop import RunOptions
from debiaspl.training.process import find_device
from debiaspl.training.settings import split_assignments

AGAIN = "train_photos(..., resume=True)"
"""How to resume a stopped run from Python."""
NETWORKS = {"small": "A small network", "resnet9": "A ResNet-9"}


@dataclass(frozen=True, eq=False)
class PhotoPlan:
    """What will be trained on a folder of photos."""

    photos: Photos
    recipe: Recipe
    """Of the run itself, with the labels that it holds out."""
    check: Check
    place: Path
    device: str
    encoder: Encoder | None = None
    start: Recipe | None = None
    """Features that are learned without labels before."""
    first: Recipe | None = None
    """The fit of the frozen encoder, before it is fine-tuned."""

    @property
    def frozen(self) -> bool:
        """Whether the encoder stays as it is, so that nothing but a table of features is fitted."""
        return is_frozen(self.recipe)

    @property
    def inputs(self) -> Recipe:
        """The recipe without a start of its own, which lies below the run and is trained again with it."""
        return self.recipe if self.start is None else replace(self.recipe, start="")

    def words(self) -> str:
        """What will be trained, and how it is checked."""
        recipe, begins = self.recipe, ""
        if recipe.first_classifier in NAMED:
            begins = (
                " The classifier starts from the class names, which the encoder reads as English; if they are not: "
                "--set first_classifier=random."
            )
        network = NETWORKS.get(recipe.network.name, recipe.network.name)
        if self.encoder is not None:
            name = f"{self.encoder.name}, {'frozen' if self.frozen else 'fine-tuned'}"
            network = name[0].upper() + name[1:]
        about = f"{network}, at {self._size()}"
        if self.frozen:
            return f"{about}. {self.check.words()}{begins}"
        features = ""
        if self.start is not None:
            steps = f"{self.start.steps:,} steps; to skip this: --set start="
            features = f"1 of 2: learn features without labels, {steps}. 2 of 2: "
        runs = count_runs(recipe, self.check)
        several = f" in {runs} runs" if runs > 1 else ""
        several += "" if self.first is None else ", after a fit of its frozen features (that alone: --frozen)"
        return f"{features}{about}, {recipe.steps:,} steps{several}. {self.check.words()}{begins}"

    def _size(self) -> str:
        own = self.recipe.image_size
        side = own if self.encoder is None else self.encoder.image_size
        enlarged = own < side and self.encoder is not None and self.encoder.any_size
        smaller = f" (photos of {own} are enlarged; faster and less accurate: --set image_size={own})"
        return f"{side} x {side} pixels{smaller if enlarged else ''}"


def plan(
    photos: Photos,
    device: str,
    encoder: str | None = None,
    method: str | None = None,
    settings: Sequence[str] = (),
    out: Path | None = None,
    resume: bool = False,
) -> PhotoPlan:
    """Choose what to train on these photos. ``encoder`` and ``method`` are names."""
    loaded = encoder_or_none(photos, device, encoder, settings)
    recipe, start = choose_with_start(photos, device, loaded, settings, out, resume, method)
    place = out or Path("runs") / recipe.name
    if recipe.optimise and not is_frozen(recipe):
        what = f"optimise is {recipe.optimise}, which is for a frozen encoder"
        raise ValueError(f"{what}. For a network that learns its features: --set correction.target=estimated.")
    if is_frozen(recipe):
        return PhotoPlan(photos, recipe, cross_check(photos.counts), place, device, loaded)
    if loaded is not None:
        same = [f"seed={recipe.seed}", f"image_size={recipe.image_size}", "frozen=true"]
        first, _ = choose_with_start(photos, device, loaded, same, place)
        return PhotoPlan(photos, recipe, cross_check(photos.counts), place, device, loaded, first=first)
    check = check_for(photos, seed=recipe.seed)
    return PhotoPlan(photos, with_check(recipe, check), check, place, device, loaded, start)


def train(planned: PhotoPlan, how: RunOptions) -> Outcome:
    """Train what was planned into its folder."""
    recipe, place, device = planned.recipe, planned.place, planned.device
    fit = None
    if planned.encoder is not None:
        features = planned.photos.features or place.resolve().parent / FEATURES
        fit = partial(train_frozen, encoder=planned.encoder.to(device), resume_command=how.go_on, features=features)
        if planned.frozen:
            return fit(recipe, out=place, resume=how.resume)
    options = replace(how, resume=True, device=device)
    first = None if fit is None else partial(fit, planned.first, resume=True)
    return train_networks(recipe, planned.check, place, how.resume, options, planned.start, first)


def train_photos(
    folder: Path | str,
    labels: Path | str | None = None,
    encoder: str | None = None,
    out: Path | str | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    device: str | None = None,
    columns: tuple[str | None, str | None] = (None, None),
    folders: str | None = None,
    allow_names: bool = False,
    method: str | None = None,
    overwrite: bool = False,
    optimise: str | None = None,
    fine_tune: bool | None = None,
) -> SavedModel:
    """Train on a folder of photos with a few labels; returns the model, whose ``predict`` takes files.

    The same choices are made as by ``debiaspl train``, and the same files written: predictions of every photo, what was
    measured (``results.json``), also for the models that it is compared with, and the report (``report.html``).

    Args:
        folder: class folders and ``unlabeled/``, or any photos, with labels.
        labels: the table of labels; without it, ``labels.csv`` in the folder, or class folders.
        encoder: a pretrained network; by default ``efficientnet-lite0`` where it is installed. ``none`` trains a
            network from scratch.
        out: folder for the run; ``runs/FOLDER`` unless given.
        settings: changes such as ``"steps=1000"``.
        resume: continue a run that was stopped.
        device: ``cuda`` or ``cpu``; a GPU if there is one.
        columns: what the table calls the columns of images and of labels; None is ``file_name`` and ``label``.
        folders: beside a table, whether class folders are labels too: ``use`` or ``ignore``.
        allow_names: names such as ``rest`` or ``owl,heron``, or ``owl`` beside ``Owl``, are classes.
        method: ``debiaspl``, ``fixmatch``, ``supervised``, ALGORITHM or ALGORITHM+CORRECTION; by default chosen from
            the photos and the machine.
        overwrite: replace the run in ``out``; it is ``NAME.old`` until the new one is complete.
        optimise: with a frozen encoder, ``photos`` (the default) or ``classes``: whether most photos are right, or
            every class counts the same.
        fine_tune: train the encoder too, from the classifier of its frozen features; by default on a GPU, for a
            convolutional encoder of up to 30 million parameters.
    """
    if resume and overwrite:
        raise ValueError("resume=True continues a run and overwrite=True replaces it. Expected one.")
    table = None if labels is None else Path(labels)
    photos = survey(Path(folder), table, Columns(*columns), folders, allow_names=allow_names)
    machine = find_device(device).type
    settings = [*settings, *([] if optimise is None else [f"optimise={optimise}"])]
    settings += [] if fine_tune is None else [f"frozen={not fine_tune}"]
    planned = plan(photos, machine, encoder, method, settings, None if out is None else Path(out), resume)
    with Run(planned.place).replacing(planned.inputs, overwrite):
        model = train(planned, RunOptions(resume, go_on=AGAIN)).model
    report_of_photos(planned.place, photos.folder)
    return load_model(planned.place, machine) if model is None else model


def report_of_photos(place: Path, photos: Path) -> Path:
    """Write the page of the run, with the models that it is compared with; returns its path."""
    return write_report([place], place / "report.html", RECIPES.origin, photos)


def encoder_or_none(photos: Photos, device: str, name: str | None, settings: Sequence[str] = ()) -> Encoder | None:
    """The encoder, at the image size for these photos; None for a network that is trained from scratch (``none``).
    Without a name it is efficientnet-lite0, if that is installed and the settings name no network and no start."""
    own_network = {key.partition(".")[0] for key in split_assignments(settings)} & {"network", "start"}
    if name is None and not own_network and lite0_is_installed():
        name = LITE0
    if name is None or name == "none":
        return None
    encoder = load_encoder(name)
    wanted = wanted_size(settings, encoder)
    if not wanted and (stored := stored_for(photos.features, encoder.name)):
        wanted = stored.image_size
    if encoder.any_size:
        encoder.image_size = working_size(photos, device, encoder, wanted)
    return encoder
