"""A folder of photos from Python: what ``debiaspl train PHOTOS`` does, without the words."""

from collections.abc import Sequence
from pathlib import Path

from debiaspl.deploy import SavedModel, load_model
from debiaspl.encoders import Encoder, load_encoder
from debiaspl.photos.check import check_for
from debiaspl.photos.choose import wanted_size, working_size
from debiaspl.photos.names import refuse_alike, refuse_doubtful, refuse_passed_over
from debiaspl.photos.run import train_photos as train_runs
from debiaspl.photos.start import choose_with_start
from debiaspl.photos.survey import Photos, survey
from debiaspl.training.device import find_device


def train_photos(
    folder: Path | str,
    labels: Path | str | None = None,
    encoder: str | None = None,
    out: Path | str | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    device: str | None = None,
) -> SavedModel:
    """Train on a folder of photos with a few labels; the model, whose ``predict`` takes files.

    The same choices are made as by ``debiaspl train``, and the same files written: predictions of every photo, the
    supervised baseline and what was measured (``results.json``).

    Args:
        folder: class folders and ``unlabeled/``, or any photos, with labels.
        labels: the table of labels; without it, ``labels.csv`` in the folder, or class folders.
        encoder: a pretrained network, such as ``efficientnet-lite0``.
        out: folder for the run; ``runs/FOLDER`` unless given.
        settings: changes such as ``"steps=1000"``.
        resume: continue a run that was stopped.
        device: ``cuda`` or ``cpu``; a GPU if there is one.
    """
    photos = survey(Path(folder), None if labels is None else Path(labels))
    for refuse in (refuse_alike, refuse_doubtful, refuse_passed_over):
        refuse(photos)
    machine = find_device(device).type
    named = None if encoder is None else (encoder, encoder_for(photos, machine, encoder, settings))
    place = None if out is None else Path(out)
    recipe, start = choose_with_start(photos, machine, named, settings, place, resume)
    place = place or Path("runs") / recipe.name
    train_runs(recipe, check_for(photos, seed=recipe.seed), place, resume, machine, start=start)
    return load_model(place, machine)


def encoder_for(photos: Photos, device: str, name: str, settings: Sequence[str] = ()) -> Encoder:
    """The encoder of this name, at the size that it looks at these photos with."""
    encoder = load_encoder(name)
    wanted = wanted_size(settings, encoder)
    if encoder.any_size:
        encoder.image_size = working_size(photos, device, encoder, wanted)
    return encoder
