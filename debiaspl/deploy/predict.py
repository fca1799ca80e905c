"""Predict a label for every photo of a folder, with the model of a run: into one table, or into many."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, ImageSet
from debiaspl.data.lazy import Progress, unseen
from debiaspl.data.listing import Listing, list_images
from debiaspl.data.manifest import ABOUT, add_to_manifest, alone_in, read_manifest, regular_file, run_on_ray
from debiaspl.data.text import is_utf8, shown
from debiaspl.deploy.saved import SavedModel, chosen_folder, load_model
from debiaspl.deploy.shares import FOLDER
from debiaspl.deploy.tables import Prediction, TableSettings, table_writer, write_label_studio, write_parquet
from debiaspl.encoders.trained import find_weights
from debiaspl.files import FileError, digest_of_file, parse_json, write_json, write_whole
from debiaspl.models import Seen
from debiaspl.training.process import find_device

Watch = Callable[[list[Prediction]], None]
NOT_UTF8 = "its name is not UTF-8, which Parquet cannot store; CSV can"


@dataclass(frozen=True)
class Predicted:
    """Summary of the predictions for a folder."""

    counts: dict[str, int]
    """Number of images per class, the most frequent first."""
    bad: dict[str, str] = field(default_factory=dict)
    """Images without a prediction -> reason."""
    others: tuple[tuple[str, str], ...] = ()
    """Files that are not images, with the reason."""
    different: str = ""
    """A class whose share differs from that in the run, if shares do so significantly."""

    @property
    def images(self) -> int:
        return sum(self.counts.values())


def predict_folder(
    model: SavedModel,
    photos: Listing,
    out: Path,
    probabilities: bool = False,
    image_prefix: str | None = None,
    progress: Progress = unseen,
    watch: Watch = lambda rows: None,
    features: Path | None = None,
) -> Predicted:
    """Predict every image of a folder into one table, which is written completely or not at all.

    Rows are written as they are predicted, so that 100,000 photos need no more memory than a batch.

    Args:
        model: the result of ``load_model``.
        photos: the images; see ``listed``.
        out: the table; its extension says the format, and a file that exists is replaced.
        probabilities: also write the probability of every class.
        image_prefix: address of the images for Label Studio; by default its local files.
        progress: called with the number of images done and the total.
        watch: called with the rows as they are written.
        features: a folder of features of the run's encoder, which are not computed again.
    """
    write = table_writer(out)
    if probabilities and write is write_label_studio:
        raise ValueError("Label Studio's format cannot store the probabilities of every class. Leave them out.")
    # Label Studio serves files below a folder, here the one that contains the photos.
    local = f"/data/local-files/?d={quote(photos.root.resolve().name)}/"
    settings = TableSettings(model.classes, probabilities, local if image_prefix is None else image_prefix)
    counts: Counter[str] = Counter()
    bad: dict[str, str] = {}

    def rows() -> Iterator[list[Prediction]]:
        done = 0
        for seen in _for_shares(model, model.photos(photos.root, photos.files), features):
            files = [photos.files[position] for position in seen.positions.tolist()]
            made = _rows(files, seen.probabilities, settings)
            if write is write_parquet:
                bad.update({file: NOT_UTF8 for file in files if not is_utf8(file)})
                made = [row for row in made if row.file_name not in bad]
            watch(made)
            yield made
            counts.update(row.label for row in made)
            bad.update({photos.files[position]: reason for position, reason in seen.skipped.items()})
            done += len(files) + len(seen.skipped)
            progress(done, len(photos.files))
        if not counts:
            reasons = shown([f"{file} ({reason})" for file, reason in bad.items()])
            raise DataError(f"none of the {len(photos.files)} images in {photos.root} can be read: {reasons}.")

    write_whole(out, lambda file: write(file, settings, rows()))
    shares = model.shares
    usual = shares is not None and shares.used == shares.usual
    different = shares.differs(counts, model.classes) if shares is not None and usual else ""
    return Predicted(dict(counts.most_common()), bad, photos.skipped, different)


def listed(photos: Path) -> Listing:
    """The images of a folder, or the one image that is named."""
    return _these(photos.parent, (photos.name,)) if photos.is_file() else list_images(photos)


def _these(root: Path, files: tuple[str, ...]) -> Listing:
    return Listing(root, files, torch.full((len(files),), UNLABELED), (), ())


def _for_shares(model: SavedModel, images: ImageSet, features: Path | None) -> Iterator[Seen]:
    """What the model sees, batch by batch; with the shares of this folder, all probabilities are kept until they are
    known."""
    if model.shares is None or model.shares.used != FOLDER:
        yield from model.see(images, features=features)
        return
    seen = [one._replace(features=one.features[:, :0]) for one in model.see_usual(images, features=features)]
    shares = model.shares.of_folder(torch.cat([one.probabilities for one in seen]).cpu())
    for one in seen:
        yield one._replace(probabilities=shares.adjusted(one.probabilities.cpu()))


def _rows(files: list[str], probabilities: Tensor, settings: TableSettings) -> list[Prediction]:
    if not files:
        return []
    confidence, label = probabilities.max(-1)
    every = probabilities.tolist() if settings.probabilities else [None] * len(files)
    columns = files, label.tolist(), confidence.tolist(), every
    return [
        Prediction(file, settings.classes[number], sure, all_)
        for file, number, sure, all_ in zip(*columns, strict=True)
    ]


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
) -> int:
    """Predict many photos into numbered tables: a manifest of names is written first, and table k has line k of it.

    As with features, the parts may be killed, repeated, and run anywhere and in any order. Tables that are there are
    not written again. Returns how many tables the part has. ``network`` is the code of the run's own network.
    """

    def make() -> Callable[[int], None]:
        """A function that writes one table, anywhere. The model is loaded once."""
        model = load_model(run, find_device(device), network)

        def write(number: int) -> None:
            names = _these(photos, read_manifest(out)[number])
            predict_folder(model, names, _table(out, number), probabilities, features=features)

        return write

    names = list_images(photos).files
    with alone_in(out):
        weights = digest_of_file(find_weights(chosen_folder(run)))
        _claim(out, {"model": weights, "probabilities": probabilities})
        files = read_manifest(out)
        known = {name for line in files for name in line}
        if new := [name for name in names if name not in known]:
            files = add_to_manifest(out, files, new)
    own = range(part[0], len(files), part[1])
    left = [number for number in own if not _table(out, number).exists()]
    if on_ray and left:
        run_on_ray(make, left)
    elif left:
        write = make()
        for done, number in enumerate(left):
            progress(len(own) - len(left) + done, len(own))
            write(number)
    progress(len(own), len(own))
    return len(own)


def _table(out: Path, number: int) -> Path:
    return out / f"{number:05d}.csv"


def _claim(out: Path, about: Mapping[str, Any]) -> None:
    """Raise where the folder holds tables of another model, or others than are asked for."""
    try:
        before = parse_json(regular_file(out / ABOUT).read_bytes())
    except FileNotFoundError:
        write_json(out / ABOUT, dict(about))
        return
    except (OSError, ValueError):
        before = None
    if before != about:
        what = f"{out} holds predictions of another model, or with other columns"
        raise FileError(f"{what}. Use the same run and --probabilities for all parts, or another --out.")
