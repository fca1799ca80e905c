"""Predictions of many photos in numbered tables: a manifest of names is written first, and table k has line k of it.

As with features, the work may be shared by parts, which may be killed, repeated, and run anywhere and in any order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from debiaspl.data import UNLABELED
from debiaspl.data.listing import Listing, list_images
from debiaspl.data.manifest import ABOUT, add_to_manifest, alone_in, read_manifest, regular_file
from debiaspl.deploy.chosen import chosen_folder
from debiaspl.deploy.on_ray import run_on_ray
from debiaspl.deploy.predict import predict_listing
from debiaspl.deploy.saved import load_model
from debiaspl.encoders.trained import find_weights
from debiaspl.files import FileError, digest_of_file, parse_json, write_json
from debiaspl.training.process import find_device


@dataclass(frozen=True)
class TableWriter:
    """Writes one table, anywhere."""

    run: Path
    network: str | None
    """The code of the run's own network, if it has one."""
    photos: Path
    out: Path
    probabilities: bool = False
    features: Path | None = None
    device: str | None = None

    def ready(self) -> Callable[[int], None]:
        """The model is loaded once."""
        model = load_model(self.run, find_device(self.device), self.network)

        def write(number: int) -> None:
            names, path = read_manifest(self.out)[number], self.out / table_name(number)
            listing = Listing(self.photos, names, torch.full((len(names),), UNLABELED), (), ())
            predict_listing(model, listing, path, probabilities=self.probabilities, features=self.features)

        return write


def predict_parts(
    writer: TableWriter,
    part: tuple[int, int] = (0, 1),
    on_ray: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write the tables of this part that are not there yet; returns how many it has."""
    names, out = list_images(writer.photos).files, writer.out
    with alone_in(out):
        weights = digest_of_file(find_weights(chosen_folder(writer.run)))
        _claim(out, {"model": weights, "probabilities": writer.probabilities})
        files = read_manifest(out)
        known = {name for line in files for name in line}
        if new := [name for name in names if name not in known]:
            files = add_to_manifest(out, files, new)
    own = range(part[0], len(files), part[1])
    left = [number for number in own if not (out / table_name(number)).exists()]
    if on_ray and left:
        run_on_ray(writer.ready, left)
    elif left:
        write = writer.ready()
        for done, number in enumerate(left):
            progress(len(own) - len(left) + done, len(own))
            write(number)
    progress(len(own), len(own))
    return len(own)


def table_name(number: int) -> str:
    return f"{number:05d}.csv"


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
        raise FileError(
            f"{out} holds predictions of another model, or with other columns. Use the same run and --probabilities "
            "for all parts, or choose another --out."
        )
