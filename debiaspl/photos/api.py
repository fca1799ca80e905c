"""Train on a folder of photos from Python, as ``debiaspl train PHOTOS`` does."""

from collections.abc import Sequence
from pathlib import Path

from debiaspl.data.table_form import Columns
from debiaspl.deploy import SavedModel, load_model
from debiaspl.encoders import Encoder, load_encoder
from debiaspl.files import write_bytes
from debiaspl.photos.check import Check, check_for
from debiaspl.photos.choose import wanted_size, working_size
from debiaspl.photos.duration import mark_of_features
from debiaspl.photos.names import Allowed
from debiaspl.photos.run import Outcome
from debiaspl.photos.run import train_photos as train_runs
from debiaspl.photos.start import choose_with_start
from debiaspl.photos.survey import Photos, survey
from debiaspl.recipes import RECIPES
from debiaspl.report.runs import write_report
from debiaspl.training import Recipe
from debiaspl.training.device import find_device
from debiaspl.training.frozen import is_frozen

AGAIN = "train_photos(..., resume=True)"
"""How to resume a stopped run from Python."""


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
    allow_alike: bool = False,
    allow_names: bool = False,
) -> SavedModel:
    """Train on a folder of photos with a few labels; returns the model, whose ``predict`` takes files.

    The same choices are made as by ``debiaspl train``, and the same files written: predictions of every photo, the
    supervised baseline, what was measured (``results.json``) and the report (``report.html``).

    Args:
        folder: class folders and ``unlabeled/``, or any photos, with labels.
        labels: the table of labels; without it, ``labels.csv`` in the folder, or class folders.
        encoder: a pretrained network, such as ``efficientnet-lite0``.
        out: folder for the run; ``runs/FOLDER`` unless given.
        settings: changes such as ``"steps=1000"``.
        resume: continue a run that was stopped.
        device: ``cuda`` or ``cpu``; a GPU if there is one.
        columns: what the table calls the columns of images and of labels; None is ``file_name`` and ``label``.
        folders: beside a table, whether class folders are labels too: ``use`` or ``ignore``.
        allow_alike: class names may differ in capital letters or spaces alone.
        allow_names: names such as ``rest`` or ``owl,heron`` are classes.
    """
    photos = survey(Path(folder), None if labels is None else Path(labels), Columns(*columns), folders == "use")
    Allowed(allow_alike, allow_names, folders, python=True).check(photos)
    machine = find_device(device).type
    named = None if encoder is None else (encoder, encoder_for(photos, machine, encoder, settings))
    place = None if out is None else Path(out)
    recipe, start = choose_with_start(photos, machine, named, settings, place, resume)
    place = place or Path("runs") / recipe.name
    train_and_mark(recipe, check_for(photos, seed=recipe.seed), place, resume, machine, start=start)
    report_of_photos(place, Path(folder))
    return load_model(place, machine)


def train_and_mark(
    recipe: Recipe,
    check: Check,
    place: Path,
    resume: bool,
    device: str,
    workers: int = 2,
    go_on: str = AGAIN,
    eager: bool = False,
    start: Recipe | None = None,
) -> Outcome:
    """Train, and record which features are saved, for the estimate of the next run."""
    outcome = train_runs(recipe, check, place, resume, device, workers, go_on, eager, start)
    if is_frozen(recipe):
        write_bytes(mark_of_features(recipe, device, place), b"")
    return outcome


def report_of_photos(place: Path, photos: Path) -> Path:
    """Write the page of the run, with the models that it is compared with; returns its path."""
    return write_report([place], place / "report.html", RECIPES, photos)


def encoder_for(photos: Photos, device: str, name: str, settings: Sequence[str] = ()) -> Encoder:
    """The encoder of this name, at the image size for these photos."""
    encoder = load_encoder(name)
    wanted = wanted_size(settings, encoder)
    if encoder.any_size:
        encoder.image_size = working_size(photos, device, encoder, wanted)
    return encoder
