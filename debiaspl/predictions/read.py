"""Read predictions from a file or a run folder."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError, safe_open

from debiaspl.files import parse_json
from debiaspl.predictions.json_text import read_jsonl, read_tasks
from debiaspl.predictions.npz import load_npy, read_npz
from debiaspl.predictions.parquet import read_parquet
from debiaspl.predictions.predictions import Predictions, predictions_from
from debiaspl.predictions.raw import MATRICES, Names, PredictionsError, Raw, listed, refuse_larger_than_memory
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
    """Read a CSV, ``.jsonl``, ``.npz`` or Parquet file, tasks of Label Studio, or the folder of a finished run.

    Args:
        path: the file or folder.
        names: names of its columns, if they are not the default ones.
        classes: all class names, in order, if the file does not contain them.
    """
    names = names or Names()
    embeddings = names.embeddings if (names.embeddings or "").endswith(".npy") else None
    if embeddings is not None:
        names = replace(names, embeddings=None)
    if path.is_dir():
        classes = classes_of_run(path) if classes is None else classes
        raw = replace(read_csv(_predictions_of_run(path), names), origin=str(path))
    else:
        raw = _read_file(path, names)
    for matrix in MATRICES:
        given = getattr(names, matrix)
        if given is not None and matrix not in raw.matrices:
            raise PredictionsError(
                f"{raw.origin} has no {matrix} named {given!r}, expected an array, or two or more columns with this "
                f"prefix. It has {listed([*raw.fields, *raw.matrices]) or 'none'}."
            )
    if embeddings is not None:
        raw = replace(raw, matrices={**raw.matrices, "embeddings": load_npy(Path(embeddings), "embeddings")})
    return predictions_from(raw, names, classes)


def _read_file(path: Path, names: Names) -> Raw:
    if not path.exists():
        raise PredictionsError(f"{path} does not exist, expected {READ}, or the folder of a run.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise PredictionsError(
            f"{path} ends in {path.suffix or 'nothing'!r}, expected {READ}, or the folder of a run. "
            "docs/audit.md describes these files."
        )
    refuse_larger_than_memory(path, path.stat().st_size)
    return reader(path, names)


def _predictions_of_run(folder: Path) -> Path:
    """``predictions.csv`` of a finished run."""
    path = folder / "predictions.csv"
    if path.exists():
        return path
    if held := [] if (folder / "config.json").exists() else sorted(folder.glob("*/predictions.csv")):
        raise PredictionsError(f"{folder} contains runs, expected one of them: debiaspl audit {held[0].parent}")
    if classes_of_run(folder) == ():
        raise PredictionsError(
            f"the run in {folder} has learned features without labels, so it predicts nothing. Expected a run that "
            f"started from it and learned from labels: debiaspl train PHOTOS --set start={folder}"
        )
    if (folder / "results.json").exists():
        raise PredictionsError(
            f"the run in {folder} has ended, but its predictions.csv is missing, expected beside results.json. Restore "
            f"it from a copy, or train again. For the rest of the run: debiaspl report {folder}"
        )
    if (folder / "config.json").exists():
        raise PredictionsError(
            f"the run in {folder} has not ended: it has no predictions.csv yet. Look at it meanwhile: "
            f"debiaspl report {folder}"
        )
    raise PredictionsError(
        f"{folder} is not a run of debiaspl: it has neither config.json nor predictions.csv. Expected a run or a file."
    )


def classes_of_run(folder: Path) -> tuple[str, ...] | None:
    """All class names, including classes never predicted, from the header of ``model.safetensors``; None without it."""
    try:
        with safe_open(folder / "model.safetensors", "np") as file:  # no tensor is read
            facts = parse_json((file.metadata() or {}).get("debiaspl", "{}"))
    except (OSError, SafetensorError, ValueError):
        return None
    names = facts.get("classes") if isinstance(facts, dict) else None
    return tuple(map(str, names)) if isinstance(names, list) else None
