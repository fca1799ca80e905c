"""Checkpoints: everything a run is, in one file that is either whole or absent.

A checkpoint is a safetensors file: tensors, and in its header a text with the step, the recipe and a digest of the
tensors. Reading one executes nothing.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from debiaspl.files import write_bytes
from debiaspl.training.errors import RunError

FORMAT = 1
KEEP = 2
_NAME = re.compile(r"step-(\d+)\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after ``step`` steps."""

    step: int
    tensors: Mapping[str, Tensor]
    """Weights, average, optimiser, correction, generators, monitors, by name."""
    facts: Mapping[str, Any]
    """What is not a tensor: the recipe, the length of the log."""


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write the checkpoint, then forget all but the newest two: one stays if the newest is ever found damaged."""
    tensors = {name: own_memory(tensor) for name, tensor in checkpoint.tensors.items()}
    header = {
        "format": FORMAT,
        "step": checkpoint.step,
        "digest": _digest(tensors),
        "facts": dict(checkpoint.facts),
    }
    path = folder / f"step-{checkpoint.step:09d}.safetensors"
    write_bytes(path, to_bytes(tensors, metadata={"debiaspl": json.dumps(header)}))
    for _, old in _numbered(folder)[:-KEEP]:
        old.unlink()
    return path


def own_memory(tensor: Tensor) -> Tensor:
    """A copy on the CPU: parameters are parts of larger tensors, which safetensors would take for shared ones."""
    return tensor.detach().to("cpu", copy=True).contiguous()


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint of a folder, or None where there is none."""
    numbered = _numbered(folder)
    if not numbered:
        return None
    path = numbered[-1][1]
    try:
        return read(path)
    except RunError as error:
        before = f"the one before it is at step {numbered[-2][0]}" if len(numbered) > 1 else "there is none before it"
        raise RunError(f"{error} Delete that file to go on without it; {before}.") from error


def steps(folder: Path) -> list[int]:
    """The steps of the checkpoints in a folder, ascending."""
    return [step for step, _ in _numbered(folder)]


def read(path: Path) -> Checkpoint:
    """Read a checkpoint and prove it whole."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads(file.metadata()["debiaspl"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except OSError as error:
        raise RunError(f"could not read {path}: {error.strerror or error}.") from error
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is damaged or not a checkpoint of debiaspl ({error}).") from error
    if header["format"] != FORMAT:
        raise RunError(f"{path} has format {header['format']}, expected {FORMAT}: it is of another version.")
    if header["digest"] != _digest(tensors):
        raise RunError(f"{path} is damaged: its tensors do not match its digest.")
    return Checkpoint(header["step"], tensors, header["facts"])


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    found = [(match, path) for path in folder.glob("step-*.safetensors") if (match := _NAME.fullmatch(path.name))]
    return sorted((int(match[1]), path) for match, path in found)


def _digest(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
