"""A teacher from arrays: embeddings of images and classes, or probabilities, computed with another program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import DataError, ImageSet
from debiaspl.data.text import shown
from debiaspl.predictions import PredictionsError
from debiaspl.predictions.npz import arrays_in, load_npy
from debiaspl.predictions.read import read_csv
from debiaspl.zeroshot.teacher import Progress, no_progress

ENDINGS = (".npy", ".npz", ".csv")
TEMPERATURE = 0.01
"""CLIP's temperature after training; the default for embeddings without one."""
_EXPECTED = (
    "Expected an .npz with 'probabilities' (N, C), or 'image_embeddings' (N, D) and 'class_embeddings' (C, D), perhaps "
    "'temperature' and 'file_name'; an .npy of probabilities; or a CSV with file_name and a column per class"
)


def check_embeddings(name: str, values: Any, width: int | None = None) -> Tensor:
    """Convert to a float32 matrix of finite numbers."""
    found = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    if found.ndim != 2 or 0 in found.shape or found.is_complex():
        raise DataError(f"{name} have shape {tuple(found.shape)}, expected (rows, width): one embedding per row.")
    found = found.detach().to("cpu", torch.float32)
    if bad := (~found.isfinite()).any(-1).nonzero().flatten().tolist():
        raise DataError(f"{name} contain NaN or infinity in {len(bad):,} rows, first in row {bad[0]} (from 0).")
    if width is not None and found.shape[1] != width:
        widths = f"width {found.shape[1]}, but the class embeddings have width {width}"
        raise DataError(f"{name} have {widths}. Both must come from the same model, after its projections.")
    return found


def cosine_logits(image_embeddings: Tensor, class_embeddings: Tensor, temperature: float) -> Tensor:
    if not 0 < temperature < float("inf"):
        raise DataError(f"temperature is {temperature}, expected a number above 0; CLIP's is 0.01.")
    return F.normalize(image_embeddings, dim=-1) @ F.normalize(class_embeddings, dim=-1).T / temperature


class ArraysTeacher:
    """Reads a file; its rows are the images in the order of their names, or of its ``file_name``."""

    default_templates = "name"

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.name = self.path.name
        self.about = f"{self.name}, which another program has computed; what its model was trained with is not known."

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        try:
            names, found = self._csv(classes) if self.path.suffix == ".csv" else self._arrays()
        except (DataError, PredictionsError):
            raise
        except (TypeError, ValueError) as error:  # text, or an array, where a number is expected
            raise DataError(f"{self.path} cannot be read: {error}. {_EXPECTED}.") from error
        names = names or images.ids
        if found.shape[1] != len(classes):
            raise DataError(f"{self.path} has {found.shape[1]} classes, but {len(classes)} are named: {classes}.")
        if len(found) != len(names):
            rows = f"{len(found):,} rows for {len(names):,} images"
            raise DataError(f"{self.path} has {rows}, expected one each, in the order of the sorted file names.")
        row = {name: number for number, name in enumerate(names)}
        if missing := [name for name in images.ids if name not in row]:
            raise DataError(f"{self.path} has no row for {shown(missing)}. Expected all files, named as in the folder.")
        found = found[[row[name] for name in images.ids]]
        sums = found.sum(-1)
        if float(found.min()) < 0 or float((sums - 1).abs().max()) > 1e-2:
            rows = f"rows of {self.path} sum to {float(sums.min()):g} to {float(sums.max()):g}, or are below 0"
            raise DataError(f"{rows}. Expected probabilities, which sum to 1; for logits, take the softmax first.")
        return found / sums[:, None], {}

    def _arrays(self) -> tuple[Sequence[str], Tensor]:
        if self.path.suffix == ".npy":
            held = {"probabilities": load_npy(self.path, "probabilities")}
        else:
            held = arrays_in(self.path)
        names = list(map(str, held.get("file_name", np.empty(0)).tolist()))
        if "probabilities" in held:
            return names, check_embeddings(f"the probabilities in {self.path}", held["probabilities"])
        if not {"image_embeddings", "class_embeddings"} <= set(held):
            raise DataError(f"{self.path} contains {shown(list(held)) or 'nothing'}. {_EXPECTED}.")
        class_embeddings = check_embeddings(f"the class_embeddings in {self.path}", held["class_embeddings"])
        width = class_embeddings.shape[1]
        images = check_embeddings(f"the image_embeddings in {self.path}", held["image_embeddings"], width)
        temperature = float(held["temperature"]) if "temperature" in held else TEMPERATURE
        return names, cosine_logits(images, class_embeddings, temperature).softmax(-1)

    def _csv(self, classes: Sequence[str]) -> tuple[Sequence[str], Tensor]:
        raw = read_csv(self.path, {})
        # Columns named as in debiaspl predict, or just like the classes.
        shares = raw.matrices.get("probabilities", np.empty((raw.rows, 0)))
        columns = {**raw.fields, **dict(zip(raw.classes or (), shares.T, strict=True))}
        if absent := [name for name in ("file_name", *classes) if name not in columns]:
            raise DataError(f"{self.path} has no column {', '.join(absent)}; it has {', '.join(columns)}. {_EXPECTED}.")
        values = np.array([columns[name] for name in classes], dtype=np.float64).T
        return list(map(str, columns["file_name"])), check_embeddings(f"the probabilities in {self.path}", values)
