"""A file or a run folder -> predictions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from debiaspl.predictions.errors import PredictionsError, listed
from debiaspl.predictions.folder import classes_of_run, predictions_of_run
from debiaspl.predictions.jsonl import read_jsonl
from debiaspl.predictions.label_studio import read_tasks
from debiaspl.predictions.npz import load_npy, read_npz
from debiaspl.predictions.parquet import read_parquet
from debiaspl.predictions.predictions import Predictions, predictions_from
from debiaspl.predictions.raw import MATRICES, Names, Raw
from debiaspl.predictions.table import read_csv

READERS: dict[str, Callable[[Path, Names], Raw]] = {
    ".csv": read_csv,
    ".json": read_tasks,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}
READ = "a .csv, .jsonl, .npz or .parquet file, tasks of Label Studio (.json)"


def read_predictions(path: Path, names: Names | None = None, classes: Sequence[str] | None = None) -> Predictions:
    """Read a CSV, ``.jsonl``, ``.npz`` or Parquet file, tasks of Label Studio, or the folder of a run that has ended.

    Args:
        path: the file or folder.
        names: what its columns are called, where they are not called as usual.
        classes: all class names, in order, where the file does not tell them.
    """
    names = names or Names()
    embeddings_file = _embeddings_file(names)
    if embeddings_file is not None:
        names = replace(names, embeddings=None)
    if path.is_dir():
        classes = classes_of_run(path) if classes is None else classes
        raw = replace(read_csv(predictions_of_run(path), names), origin=str(path))
    else:
        raw = _read_file(path, names)
    _refuse_unfound(raw, names)
    if embeddings_file is not None:
        raw = replace(raw, matrices={**raw.matrices, "embeddings": load_npy(embeddings_file, "embeddings")})
    return predictions_from(raw, names, classes)


def _read_file(path: Path, names: Names) -> Raw:
    if not path.exists():
        raise PredictionsError(f"there is no {path}, expected {READ}, or the folder of a run.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise PredictionsError(
            f"{path} ends in {path.suffix or 'nothing'!r}, expected {READ}, or the folder of a run. "
            "docs/audit.md says what such a file holds."
        )
    return reader(path, names)


def _refuse_unfound(raw: Raw, names: Names) -> None:
    for matrix in MATRICES:
        given = getattr(names, matrix)
        if given is not None and matrix not in raw.matrices:
            raise PredictionsError(
                f"{raw.origin} has no {matrix} called {given!r}, expected an array, or two or more columns that begin "
                f"so. It has {listed([*raw.fields, *raw.matrices]) or 'none'}."
            )


def _embeddings_file(names: Names) -> Path | None:
    given = names.embeddings
    return Path(given) if given is not None and given.endswith(".npy") else None
