"""Predict a label for every photo of a folder, with the model of a run: into one table, or into many."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, ImageSet
from debiaspl.data.lazy import Progress, unseen
from debiaspl.data.listing import Listing, list_images
from debiaspl.data.manifest import ABOUT, add_to_manifest, alone_in, read_manifest, regular_file, run_on_ray
from debiaspl.data.text import is_utf8, shown
from debiaspl.deploy.saved import SavedModel, load_model, weights_of
from debiaspl.deploy.shares import FOLDER
from debiaspl.deploy.tables import Prediction, table_writer, write_parquet
from debiaspl.files import FileError, digest_of_file, parse_json, write_json, write_whole
from debiaspl.models import Seen
from debiaspl.training.process import find_device

NOT_UTF8 = "its name is not UTF-8, which Parquet cannot store; CSV can"


class Predicted(NamedTuple):
    """Summary of the predictions for a folder."""

    counts: dict[str, int]
    """Number of images per class, the most frequent first."""
    bad: dict[str, str]
    """Images without a prediction -> reason."""
    different: str
    """A class whose share differs from that in the run, if shares do so significantly."""


def predict_folder(
    model: SavedModel,
    photos: Listing,
    out: Path,
    probabilities: bool = False,
    progress: Progress = unseen,
    watch: Callable[[list[Prediction]], None] = lambda rows: None,
    features: Path | None = None,
    may_be_empty: bool = False,
) -> Predicted:
    """Predict every image into one table, which is written completely or not at all, batch by batch.

    A table that exists is replaced. ``watch`` is called with rows as they are written, ``progress`` with the number of
    images done and the total. ``features`` is a folder of features of the run's encoder, which are not computed again.
    A table without a row is an error, unless it ``may_be_empty``; it may not where the folder itself is empty.
    """
    write = table_writer(out)
    counts: Counter[str] = Counter()
    bad: dict[str, str] = {}

    def rows() -> Iterator[Prediction]:
        done = 0
        for seen in _for_shares(model, model.photos(photos.root, photos.files), features):
            files = [photos.files[position] for position in seen.positions.tolist()]
            made = _rows(model, files, seen.probabilities, probabilities)
            if write is write_parquet:
                bad.update({file: NOT_UTF8 for file in files if not is_utf8(file)})
                made = [row for row in made if row.file_name not in bad]
            watch(made)
            yield from made
            counts.update(row.label for row in made)
            bad.update({photos.files[position]: reason for position, reason in seen.skipped.items()})
            done += len(files) + len(seen.skipped)
            progress(done, len(photos.files))
        if not counts and not (may_be_empty and any(photos.root.iterdir())):
            reasons = shown([f"{file} ({reason})" for file, reason in bad.items()])
            raise DataError(f"none of the {len(photos.files)} images in {photos.root} can be read: {reasons}.")

    write_whole(out, lambda file: write(file, model.classes if probabilities else (), rows()))
    different = "" if model.shares is None else model.shares.differs(counts, model.classes)
    return Predicted(dict(counts.most_common()), bad, different)


def listed(photos: Path) -> Listing:
    """The images of a folder, or the one image that is named."""
    return _these(photos.parent, (photos.name,)) if photos.is_file() else list_images(photos)


def _these(root: Path, files: tuple[str, ...]) -> Listing:
    return Listing(root, files, torch.full((len(files),), UNLABELED), (), ())


def _for_shares(model: SavedModel, images: ImageSet, features: Path | None) -> Iterator[Seen]:
    """What the model sees; with the shares of this folder, all probabilities are kept until they are known."""
    if model.shares is None or model.shares.used != FOLDER:
        yield from model.see(images, features)
        return
    seen = [one._replace(features=one.features[:, :0]) for one in model.see(images, features, own=True)]
    shares = model.shares.of_folder(torch.cat([one.probabilities for one in seen]).cpu())
    for one in seen:
        yield one._replace(probabilities=shares.adjusted(one.probabilities.cpu()))


def _rows(model: SavedModel, files: list[str], probabilities: Tensor, every: bool) -> list[Prediction]:
    confidence, label = probabilities.max(-1)
    names = [model.classes[number] for number in label.tolist()]
    shares = probabilities.tolist() if every else [()] * len(files)
    return list(map(Prediction, files, names, confidence.tolist(), shares))


def predict_parts(
    run: Path,
    photos: Path,
    out: Path,
    part: tuple[int, int] = (0, 1),
    on_ray: bool = False,
    probabilities: bool = False,
    features: Path | None = None,
    network: str | None = None,
    device: str | None = None,
    progress: Progress = unseen,
) -> tuple[int, dict[str, str]]:
    """Predict many photos into numbered tables, of a line of the manifest each; returns how many this part has, and why
    photos of the new ones have no prediction.

    Parts may be killed, repeated, and run anywhere and in any order. ``network`` is the code of the run's own network.
    """
    names = list_images(photos).files
    with alone_in(out):
        _claim(out, {"model": digest_of_file(weights_of(run)), "probabilities": probabilities})
        files = read_manifest(out)
        known = {name for line in files for name in line}
        if new := [name for name in names if name not in known]:
            files = add_to_manifest(out, files, new)
    tables = {number: out / f"{number:05d}.csv" for number in range(part[0], len(files), part[1])}
    left = [number for number, table in tables.items() if not table.exists()]

    def make() -> Callable[[int], dict[str, str]]:
        """A function that writes one table, anywhere. The model is loaded once."""
        model = load_model(run, find_device(device), network)

        def write(number: int) -> dict[str, str]:
            names = _these(photos, read_manifest(out)[number])
            return predict_folder(model, names, tables[number], probabilities, features=features, may_be_empty=True).bad

        return write

    bad: dict[str, str] = {}
    progress(len(tables) - len(left), len(tables))
    if left:
        made = run_on_ray(make, left) if on_ray else map(make(), left)
        for done, reasons in enumerate(made, len(tables) - len(left) + 1):
            bad |= reasons
            progress(done, len(tables))
    return len(tables), bad


def _claim(out: Path, about: dict[str, Any]) -> None:
    """Raise where the folder holds tables of another model, or with other columns."""
    if not (out / ABOUT).exists():
        write_json(out / ABOUT, about)
    with suppress(OSError, ValueError):
        if parse_json(regular_file(out / ABOUT).read_bytes()) == about:
            return
    what = f"{out} holds predictions of another model, or with other columns"
    raise FileError(f"{what}. Use the same run and --probabilities for all parts, or another --out.")
