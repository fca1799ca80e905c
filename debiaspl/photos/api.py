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
from debiaspl.photos.check import Check, Outcome, check_for, cross_check, methods_to_compare, with_fold
from debiaspl.photos.choose import choose_with_start, wanted_size, working_size
from debiaspl.photos.frozen import train_frozen
from debiaspl.photos.run import train_networks
from debiaspl.photos.survey import Photos, survey
from debiaspl.report.runs import write_report
from debiaspl.training import Recipe, Run
from debiaspl.training.classifier import NAMED
from debiaspl.training.loop import RunOptions
from debiaspl.training.process import find_device
from debiaspl.training.settings import split_assignments

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
        recipe, encoder, size = self.recipe, self.encoder, self.recipe.image_size
        side = size if encoder is None else encoder.image_size
        name = NETWORKS.get(recipe.network.name, recipe.network.name)
        if encoder is not None:
            name = f"{encoder.name[0].upper()}{encoder.name[1:]}, {'frozen' if self.frozen else 'fine-tuned'}"
        about = f"{name}, at {side} x {side} pixels"
        if encoder is not None and encoder.any_size and size < side:
            about += f" (photos of {size} are enlarged; faster and less accurate: --set image_size={size})"
        if self.start is not None:
            steps = f"{self.start.steps:,} steps; to skip this: --set start="
            about = f"1 of 2: learn features without labels, {steps}. 2 of 2: {about}"
        if not self.frozen:
            folds = self.check.folds if self.check.all_in_turn else 0
            runs = len(methods_to_compare(recipe, frozen=False)) * (folds + 1)
            about += f", {recipe.steps:,} steps{f' in {runs} runs' if runs > 1 else ''}"
        if self.first is not None:
            about += ", after a fit of its frozen features (that alone: --frozen)"
        names = " The classifier starts from the class names; if they are not English: --set first_classifier=random."
        return f"{about}. {self.check.words()}{names if recipe.first_classifier in NAMED else ''}"


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
    loaded, first = encoder_or_none(photos, device, encoder, settings), None
    recipe, start = choose_with_start(photos, device, loaded, settings, out, resume, method)
    place = out or Path("runs") / recipe.name
    if recipe.optimise and not is_frozen(recipe):
        what = f"optimise is {recipe.optimise}, which is for a frozen encoder"
        raise ValueError(f"{what}. For a network that learns its features: --set correction.target=estimated.")
    if loaded is not None and not is_frozen(recipe):
        same = [f"seed={recipe.seed}", f"image_size={recipe.image_size}", "frozen=true"]
        first, _ = choose_with_start(photos, device, loaded, same, place)
    check = check_for(photos, recipe.seed) if loaded is None else cross_check(photos.counts)
    if not check.all_in_turn:
        recipe = with_fold(recipe, check.folds, 0)
    return PhotoPlan(photos, recipe, check, place, device, loaded, start, first)


def train(planned: PhotoPlan, how: RunOptions) -> Outcome:
    """Train what was planned into its folder."""
    recipe, place, device, first = planned.recipe, planned.place, planned.device, None
    if planned.encoder is not None:
        features = planned.photos.features or place.resolve().parent / FEATURES
        fit = partial(train_frozen, encoder=planned.encoder.to(device), resume_command=how.go_on, features=features)
        if planned.frozen:
            return fit(recipe, out=place, resume=how.resume)
        first = partial(fit, planned.first, resume=True)
    return train_networks(recipe, planned.check, place, replace(how, device=device), planned.start, first)


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
    measured (``results.json``) and the report (``report.html``).

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
    more = {"optimise": optimise, "frozen": None if fine_tune is None else not fine_tune}
    settings = [*settings, *(f"{name}={value}" for name, value in more.items() if value is not None)]
    planned = plan(photos, machine, encoder, method, settings, None if out is None else Path(out), resume)
    with Run(planned.place).replacing(planned.inputs, overwrite):
        model = train(planned, RunOptions(resume, go_on="train_photos(..., resume=True)")).model
    write_report([planned.place], planned.place / "report.html", photos.folder)
    return model or load_model(planned.place, machine)


def encoder_or_none(photos: Photos, device: str, name: str | None, settings: Sequence[str] = ()) -> Encoder | None:
    """The encoder, at the image size for these photos; None for a network that is trained from scratch (``none``).
    Without a name it is efficientnet-lite0, if that is installed and the settings name no network and no start."""
    own_network = {key.partition(".")[0] for key in split_assignments(settings)} & {"network", "start"}
    if name is None and not own_network and lite0_is_installed():
        name = LITE0
    if name is None or name == "none":
        return None
    encoder = load_encoder(name)
    wanted, stored = wanted_size(settings, encoder), stored_for(photos.features, photos.names, encoder.name)
    if encoder.any_size:
        usual = working_size(photos, device, encoder) if stored is None else stored.image_size
        encoder.image_size = wanted or usual
    return encoder
