"""Checkpoints: the complete state of a run in one safetensors file, whose digest covers the tensors and the text in its
header. Reading it executes no code."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from debiaspl.data.tensor_file import Damaged, read_tensor_file, tensor_file
from debiaspl.files import parse_json, write_bytes
from debiaspl.training.errors import RunError

FORMAT = 2
TEXT = "debiaspl"
KEEP = 2
_NAME = re.compile(r"step-(\d+)\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after ``step`` steps."""

    step: int
    tensors: Mapping[str, Tensor]
    """Weights, average, optimiser, correction, generators, monitors, by name."""
    facts: Mapping[str, Any]
    """Everything that is not a tensor: the recipe, the length of the log."""


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write the checkpoint, then delete all but the newest two: one is left if the newest turns out to be damaged."""
    tensors = {name: own_memory(tensor) for name, tensor in checkpoint.tensors.items()}
    header = {"format": FORMAT, "step": checkpoint.step, "facts": dict(checkpoint.facts)}
    path = folder / f"step-{checkpoint.step:09d}.safetensors"
    write_bytes(path, tensor_file(tensors, TEXT, json.dumps(header)))
    for _, old in _numbered(folder)[:-KEEP]:
        old.unlink()
    return path


def own_memory(tensor: Tensor) -> Tensor:
    """A copy on the CPU: parameters are parts of larger tensors, which safetensors would treat as shared memory."""
    return tensor.detach().to("cpu", copy=True).contiguous()


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint of a folder, or None."""
    numbered = _numbered(folder)
    if not numbered:
        return None
    path = numbered[-1][1]
    try:
        return read(path)
    except RunError as error:
        before = f"the one before it is at step {numbered[-2][0]}" if len(numbered) > 1 else "there is none before it"
        raise RunError(f"{error} Delete that file to continue without it; {before}.") from error


def steps(folder: Path) -> list[int]:
    """The steps of the checkpoints in a folder, ascending."""
    return [step for step, _ in _numbered(folder)]


def read(path: Path) -> Checkpoint:
    """Read a checkpoint and check that it is complete."""
    try:
        tensors, texts, _ = read_tensor_file(path)
        header = parse_json(texts[TEXT])
        step, facts, form = header["step"], dict(header["facts"]), header["format"]
    except OSError as error:
        raise RunError(f"could not read {path}: {error.strerror or error}.") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
        raise RunError(f"{path} is damaged or not a checkpoint of debiaspl ({why}).") from error
    if form != FORMAT:
        raise RunError(f"{path} has format {form!r}, expected {FORMAT}. It is damaged, or of another version.")
    named = _NAME.fullmatch(path.name)
    if type(step) is not int or named is None or step != int(named[1]):
        raise RunError(f"{path} is damaged: it contains the checkpoint of step {step!r}.")
    return Checkpoint(step, tensors, facts)


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    matches = [(match, path) for path in folder.glob("step-*.safetensors") if (match := _NAME.fullmatch(path.name))]
    return sorted((int(match[1]), path) for match, path in matches)
