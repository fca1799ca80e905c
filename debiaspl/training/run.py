"""A run folder, with its checkpoints."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from debiaspl._version import __version__
from debiaspl.data.tensor_file import Damaged, read_tensor_file, tensor_file
from debiaspl.files import Busy, locked, parse_json, replacing, write_bytes, write_json, write_text
from debiaspl.training.log import parse_log
from debiaspl.training.process import RunError
from debiaspl.training.recipe import Recipe
from debiaspl.training.settings import as_text

_NO_RECIPE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions from values that are not a recipe."""
_FACTS = {"recipe", "device", "data", "seconds", "log_length", "skipped", "files"}
"""Entries of a checkpoint, in addition to its tensors."""
_RESULTS: dict[str, Any] = {"accuracy": int | float, "recall": list, "confusion": list | dict, "test": int}
FORMAT = 2
TEXT = "debiaspl"
KEEP = 2
NAME = "step-{:09d}.safetensors"
"""Of a checkpoint, with its step."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after ``step`` steps."""

    step: int
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]
    """Everything that is not a tensor: the recipe, the length of the log."""


class Run:
    """The files of a run; ``results.json`` is written last. A run without labels has no predictions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config_path, self.log_path = folder, folder / "config.json", folder / "log.jsonl"
        self.results_path, self.checkpoints = folder / "results.json", folder / "checkpoint"

    @classmethod
    def at(cls, folder: Path, recipe: Recipe, resume: bool) -> "Run":
        """A free folder or, with ``resume``, one with an earlier part of the same run. Writes nothing."""
        run = cls(folder)
        check_place(folder, "config.json", "run of debiaspl", resume)
        if run.config_path.exists() and (differing := _differences(run.recipe(), recipe)):
            raise RunError(f"{folder} contains a run of another recipe: {'; '.join(differing)}. Use another --out.")
        return run

    @contextmanager
    def begin(self, recipe: Recipe) -> Iterator[None]:
        """Create the folder, unless an earlier part of the run has created it, and lock it for this process."""
        with ExitStack() as stack:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.folder / ".lock"))
            except Busy as error:
                todo = "Wait for it or stop it, or choose another --out."
                raise RunError(f"another process is training in {self.folder}. {todo}") from error
            except OSError as error:
                raise RunError(f"could not write {self.folder}: {error.strerror}. Choose another --out.") from error
            if not self.config_path.exists():
                write_json(self.config_path, {"debiaspl": __version__, "recipe": recipe.to_json()})
            yield

    def replacing(self, recipe: Recipe, overwrite: bool) -> AbstractContextManager[None]:
        """Around the training; with ``overwrite``, an earlier run in the folder is renamed before."""
        begun = self.config_path.exists()
        if overwrite and begun:
            self.recipe()  # raises for the config.json of something else
        return replacing(self.folder, overwrite and begun, [recipe.to_json()])

    def recipe(self) -> Recipe:
        """The recipe with which this folder was started."""
        try:
            return Recipe.from_json(parse_json(self.config_path.read_text())["recipe"])
        except OSError as error:
            raise RunError(f"{self.folder} is not a run: its config.json cannot be read ({error.strerror}).") from error
        except _NO_RECIPE as error:
            raise RunError(f"{self.config_path} is damaged or of another version of debiaspl: {error}") from error

    def results(self) -> dict[str, Any] | None:
        """The results; None before the run has ended."""
        if not self.results_path.exists():
            return None
        try:
            results: dict[str, Any] = parse_json(self.results_path.read_text())
            measured = {} if results.get("labels") == [] else _RESULTS  # nothing can be measured without labels
            if all(isinstance(results[name], kind) for name, kind in measured.items()):
                return results
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        raise RunError(f"{self.results_path} is damaged. Remove it and use --resume: the run is then measured again.")

    def log(self) -> list[dict[str, Any]]:
        return parse_log(self.log_path.read_text(errors="replace"), self.log_path) if self.log_path.exists() else []

    def checkpoint(self) -> Checkpoint | None:
        saved = newest_checkpoint(self.checkpoints)
        if saved is None:
            return None
        which = f"the checkpoint of step {saved.step} in {self.folder}"
        if missing := _FACTS - saved.facts.keys():
            raise RunError(f"{which} is damaged: it has no {', '.join(sorted(missing))}.")
        try:
            begun = Recipe.from_json(saved.facts["recipe"])
        except _NO_RECIPE as error:
            raise RunError(f"{which} has no recipe: {error}") from error
        if _differences(begun, self.recipe()):
            raise RunError(f"{which} belongs to another recipe than config.json.")
        return saved

    def save(self, checkpoint: Checkpoint) -> None:
        save_checkpoint(self.checkpoints, checkpoint)

    def finish(self, weights: dict[str, Tensor], about: dict[str, Any], predictions: str | None, results: Any) -> None:
        """Write the results of the run. results.json comes last: if it exists, everything else does."""
        _write_tensors(self.folder / "model.safetensors", weights, about)
        if predictions is not None:
            write_text(self.folder / "predictions.csv", predictions)
        write_json(self.results_path, results)


def check_place(folder: Path, mark: str, kind: str, resume: bool) -> None:
    """Raise unless the folder is free or, with ``resume``, has the file ``mark`` of an earlier part. Hidden files,
    which may be features that were computed before, do not count."""
    if folder.is_file():
        raise RunError(f"{folder} is a file, expected a folder or an unused name. Choose another --out.")
    if folder.exists() and any(not path.name.startswith(".") for path in folder.iterdir()):
        if not (folder / mark).exists():
            raise RunError(f"{folder} is not empty and contains no {kind}. Choose another --out.")
        if not resume:
            how = "Use --resume to resume it, --overwrite to replace it, or choose another --out."
            raise RunError(f"{folder} already contains a {kind}. {how}")


def _differences(begun: Recipe, asked: Recipe) -> list[str]:
    """The settings in which two recipes compute something else, in words; of another part, only its name. With half as
    many GPUs, a resumed run may need twice as many pieces of a batch, so ``accumulate`` does not count."""
    then, now = asked.diff(begun), begun.diff(asked)
    keys = [key for key in now if key != "accumulate" and key.partition(".")[0] not in now.keys() - {key}]
    shown = [(as_text(then[key]) or "not set", as_text(now[key]) or "not set") for key in keys]
    return [f"{key.rpartition('.')[2]}: {old} then, {new} now" for key, (old, new) in zip(keys, shown, strict=True)]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write the checkpoint, then delete all but the newest two: the newest may be damaged."""
    path = folder / NAME.format(checkpoint.step)
    header = {"format": FORMAT, "step": checkpoint.step, "facts": dict(checkpoint.facts)}
    _write_tensors(path, checkpoint.tensors, header)
    for _, old in _numbered(folder)[:-KEEP]:
        old.unlink()
    return path


def _write_tensors(path: Path, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> None:
    # Copies on the CPU: parameters are parts of larger tensors, which safetensors would treat as shared memory.
    copies = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    write_bytes(path, tensor_file(copies, TEXT, json.dumps(header)))


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    numbered = _numbered(folder)
    if not numbered:
        return None
    path = numbered[-1][1]
    try:
        return read_checkpoint(path)
    except RunError as error:
        before = f"the one before it is at step {numbered[-2][0]}" if len(numbered) > 1 else "there is none before it"
        raise RunError(f"{error} Delete that file to continue without it; {before}.") from error


def checkpoint_steps(folder: Path) -> list[int]:
    return [step for step, _ in _numbered(folder)]


def read_checkpoint(path: Path) -> Checkpoint:
    try:
        tensors, texts = read_tensor_file(path)
        header = parse_json(texts[TEXT])
        step, facts, form = header["step"], dict(header["facts"]), header["format"]
    except OSError as error:
        raise RunError(f"could not read {path}: {error.strerror or error}.") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
        raise RunError(f"{path} is damaged or not a checkpoint of debiaspl ({why}).") from error
    if form != FORMAT:
        raise RunError(f"{path} has format {form!r}, expected {FORMAT}. It is damaged, or of another version.")
    if type(step) is not int or path.name != NAME.format(step):
        raise RunError(f"{path} is damaged: it contains the checkpoint of step {step!r}.")
    return Checkpoint(step, tensors, facts)


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    numbers = ((path.stem.removeprefix("step-"), path) for path in folder.glob(NAME.replace("{:09d}", "*")))
    return sorted((int(number), path) for number, path in numbers if number.isdecimal())
