"""Predict a label for every photo of a folder, with the model of a run."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, ImageSet
from debiaspl.data.listing import Listing, list_images
from debiaspl.data.text import shown
from debiaspl.deploy.saved import SavedModel
from debiaspl.deploy.shares import FOLDER
from debiaspl.deploy.tables import TABLES, Prediction, TableSettings
from debiaspl.files import refuse_existing, write_whole
from debiaspl.models import Seen

Progress = Callable[[int, int], None]
Watch = Callable[[list[Prediction]], None]


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
    photos: Path | str,
    out: Path | str,
    format_name: str = "csv",
    probabilities: bool = False,
    overwrite: bool = False,
    image_prefix: str | None = None,
    progress: Progress = lambda done, total: None,
    watch: Watch = lambda rows: None,
    features: Path | None = None,
) -> Predicted:
    """Predict every image of a folder into one file, which is written completely or not at all.

    Rows are written as they are predicted, so that 100,000 photos need no more memory than a batch.

    Args:
        model: the result of ``load_model``.
        photos: a folder, including its subfolders, or one image.
        out: the file to write.
        format_name: ``csv``, ``jsonl``, ``parquet`` or ``label-studio``.
        probabilities: also write the probability of every class.
        overwrite: replace an existing file.
        image_prefix: address of the images for Label Studio; by default its local files.
        progress: called with the number of images done and the total.
        watch: called with the rows as they are written.
        features: a folder of features of the run's encoder, which are not computed again.
    """
    out = Path(out)
    refuse_existing(out, overwrite)
    return predict_listing(
        model, _images(Path(photos)), out, format_name, probabilities, image_prefix, progress, watch, features
    )


def predict_listing(
    model: SavedModel,
    found: Listing,
    out: Path,
    format_name: str = "csv",
    probabilities: bool = False,
    image_prefix: str | None = None,
    progress: Progress = lambda done, total: None,
    watch: Watch = lambda rows: None,
    features: Path | None = None,
) -> Predicted:
    """``predict_folder`` for images that are listed already; a file that exists is replaced."""
    if probabilities and format_name == "label-studio":
        raise ValueError("Label Studio's format cannot store the probabilities of every class. Leave them out.")
    # Label Studio serves files below a folder, here the one that contains the photos.
    local = f"/data/local-files/?d={quote(found.root.resolve().name)}/"
    prefix = local if image_prefix is None else image_prefix
    settings = TableSettings(model.classes, probabilities, prefix)
    counts: Counter[str] = Counter()
    bad: dict[str, str] = {}

    def rows() -> Iterator[list[Prediction]]:
        done = 0
        for seen in _for_shares(model, model.photos(found.root, found.files), features):
            files = [found.files[position] for position in seen.positions.tolist()]
            made = _rows(files, seen.probabilities, settings)
            made = [row for row in made if _can_hold(format_name, row.file_name, bad)]
            watch(made)
            yield made
            counts.update(row.label for row in made)
            bad.update({found.files[position]: reason for position, reason in seen.skipped.items()})
            done += len(files) + len(seen.skipped)
            progress(done, len(found.files))
        if not counts:
            reasons = shown([f"{file} ({reason})" for file, reason in bad.items()])
            raise DataError(f"none of the {len(found.files)} images in {found.root} can be read: {reasons}.")

    write_whole(out, lambda file: TABLES[format_name](file, settings, rows()))
    shares = model.shares
    usual = shares is not None and shares.used == shares.usual
    different = shares.differs(counts, model.classes) if shares is not None and usual else ""
    return Predicted(dict(counts.most_common()), bad, found.skipped, different)


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


def _images(photos: Path) -> Listing:
    """The images of a folder, or the one image that is named."""
    if not photos.is_file():
        return list_images(photos)
    return Listing(photos.parent, (photos.name,), torch.full((1,), UNLABELED), (), ())


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


def _can_hold(format_name: str, file: str, bad: dict[str, str]) -> bool:
    """Whether the format can store the file's name: text in Parquet is UTF-8, file names may not be."""
    if format_name == "parquet" and any("\ud800" <= letter <= "\udfff" for letter in file):
        bad[file] = "its name is not UTF-8, which Parquet cannot store; CSV can"
        return False
    return True
