"""What is written, and what must hold whatever happened in between: the old state or the new one, never half."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from debiaspl.data import ImageSet
from debiaspl.data.file_names import FileNames
from debiaspl.data.packed import open_packed, pack
from debiaspl.data.text import DataError
from debiaspl.deploy.tables import Prediction, write_csv
from debiaspl.files import FileError, locked, remove_leftovers, replacing, write_text, write_whole
from debiaspl.label.table import Table
from debiaspl.predictions import read_predictions
from debiaspl.training import RunError, train
from debiaspl.training.log import Log
from debiaspl.training.run import Checkpoint, checkpoint_steps, newest_checkpoint, save_checkpoint
from tests.training.tiny import TINY, changed, outcome

PLAIN = (FileError, DataError, RunError, OSError)
"""What the command line says in one line."""
SHORT = changed(TINY, "steps=4", "checkpoint_every=2", "log_every=1")


@dataclass(frozen=True)
class Scenario:
    """``before`` makes the old state, ``work`` is what is disturbed, ``check`` raises unless all is well."""

    before: Callable[[Path], object]
    work: Callable[[Path], object]
    check: Callable[[Path], None]


def _is_clean(folder: Path, name: str) -> None:
    """The next one that writes the same file removes what a killed one has left."""
    remove_leftovers.cache_clear()
    remove_leftovers(folder / name)
    left = [path.name for path in folder.iterdir() if path.name.endswith(".partial")]
    assert left == [], left


def _check_text(folder: Path) -> None:
    assert (folder / "t").read_text() in ("old" * 1000, "new" * 2000)
    _is_clean(folder, "t")


def _pack(folder: Path) -> None:
    pixels = torch.arange(6 * 48, dtype=torch.int64).to(torch.uint8).view(6, 3, 4, 4)
    pack(ImageSet(pixels, [0, 1] * 3, ("x", "y"), tuple("abcdef")), folder / "set")


def _check_packed(folder: Path) -> None:
    """Complete, or begun: then it is packed again."""
    if not (folder / "set" / "index.json").exists():
        _pack(folder)
    assert open_packed(folder / "set").ids == tuple("abcdef")


def _table(folder: Path) -> Table:
    return Table(folder / "labels.csv", FileNames(folder, ("a.jpg", "b.jpg")), ("x", "y"))


def _label(folder: Path) -> None:
    (folder / "a.jpg").touch()
    (folder / "b.jpg").touch()
    _table(folder).answer("a.jpg", "x")


def _check_labels(folder: Path) -> None:
    assert dict(_table(folder).answers) in ({"a.jpg": "x"}, {"a.jpg": "x", "b.jpg": "y"})
    _is_clean(folder, "labels.csv")


def _checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, {"w": torch.full((300,), float(step))}, {"recipe": {}})


def _save_two(folder: Path) -> None:
    for step in (1, 2):
        save_checkpoint(folder / "checkpoint", _checkpoint(step))


def _check_checkpoint(folder: Path) -> None:
    found = newest_checkpoint(folder / "checkpoint")
    assert found is not None
    assert found.step in (2, 3)
    assert float(found.tensors["w"][0]) == found.step
    save_checkpoint(folder / "checkpoint", _checkpoint(4))
    assert len(checkpoint_steps(folder / "checkpoint")) == 2


def _log(folder: Path) -> None:
    with Log(folder / "log.jsonl", 12) as log:
        log.write({"step": 2})
        log.length()


def _check_log(folder: Path) -> None:
    with Log(folder / "log.jsonl", 12) as log:
        log.write({"step": 2})
    assert (folder / "log.jsonl").read_text() == '{"step": 1}\n{"step": 2}\n'


def _old_run(folder: Path) -> None:
    (folder / "run").mkdir()
    for name in ("config.json", "results.json"):
        (folder / "run" / name).write_text("old")


def _overwrite(folder: Path) -> None:
    with replacing(folder / "run", True):
        (folder / "run").mkdir(exist_ok=True)
        write_text(folder / "run" / "config.json", "new")
        write_text(folder / "run" / "results.json", "new")


def _check_overwritten(folder: Path) -> None:
    """The old run or the new one is whole, and a further one finds its way."""
    whole = [(folder / name / "results.json").is_file() for name in ("run", "run.old")]
    assert any(whole), whole
    _overwrite(folder)
    assert (folder / "run" / "results.json").read_text() == "new"


def _hold(folder: Path) -> None:
    with locked(folder / ".lock"):
        pass


def _predict(folder: Path) -> None:
    rows = [Prediction(f"{number}.jpg", "xy"[number % 2], 0.5) for number in range(5)]
    write_whole(folder / "p.csv", lambda file: write_csv(file, (), rows))


def _check_predictions(folder: Path) -> None:
    if (folder / "p.csv").exists():
        assert len(read_predictions(folder / "p.csv")) == 5
    _is_clean(folder, "p.csv")


def _train(folder: Path) -> None:
    train(SHORT, folder / "run", resume=True)


_undisturbed: list[Any] = []


def _check_run(folder: Path) -> None:
    """A run resumes to the same bits, whichever of its writes failed."""
    if not _undisturbed:
        train(SHORT, folder / "whole")
        _undisturbed.append(outcome(folder / "whole"))
    _train(folder)
    assert outcome(folder / "run") == _undisturbed[0]


SCENARIOS: dict[str, Scenario] = {
    "write": Scenario(
        lambda folder: write_text(folder / "t", "old" * 1000),
        lambda folder: write_text(folder / "t", "new" * 2000),
        _check_text,
    ),
    "pack": Scenario(lambda folder: None, _pack, _check_packed),
    "label": Scenario(_label, lambda folder: _table(folder).answer("b.jpg", "y"), _check_labels),
    "checkpoint": Scenario(
        _save_two, lambda folder: save_checkpoint(folder / "checkpoint", _checkpoint(3)), _check_checkpoint
    ),
    "log": Scenario(lambda folder: (folder / "log.jsonl").write_text('{"step": 1}\nrest'), _log, _check_log),
    "overwrite": Scenario(_old_run, _overwrite, _check_overwritten),
    "lock": Scenario(lambda folder: None, _hold, _hold),
    "predict": Scenario(lambda folder: None, _predict, _check_predictions),
}
LONG = {"train": Scenario(lambda folder: None, _train, _check_run)}
"""About a second for each fault."""


def tried(scenario: Scenario, folder: Path, fault: str, at: int) -> bool:
    """One fault; False if the work has fewer operations. Raises AssertionError, or what the work must not raise."""
    from tests.faults.injector import struck

    os.makedirs(folder)
    scenario.before(folder)
    remove_leftovers.cache_clear()
    found = struck(lambda: scenario.work(folder), fault, at, PLAIN)
    scenario.check(folder)
    return found
