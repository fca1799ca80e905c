"""A run as its folder tells it, whether it has ended or not. Nothing is written."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debiaspl.predictions.read import classes_of_run
from debiaspl.report.runs.checks import check_config, check_log, check_results
from debiaspl.training import Run, RunError


@dataclass(frozen=True, eq=False)
class RunRecord:
    """``config.json``, ``log.jsonl`` and ``results.json`` as plain values: runs of other versions can be read too."""

    folder: Path
    recipe: Mapping[str, Any]
    log: list[dict[str, Any]]
    results: Mapping[str, Any] | None
    """None while the run has not ended."""
    classes: tuple[str, ...] | None
    """Class names, which the run writes when it ends."""

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def step(self) -> int:
        """Steps that the log knows of."""
        return int(self.log[-1]["step"]) if self.log else 0

    @property
    def steps(self) -> int:
        return int(self.recipe["steps"])

    def num_classes(self) -> int | None:
        """None for a run that has logged nothing that tells it."""
        if self.classes is not None:
            return len(self.classes)
        if self.results is not None:
            return len(self.results["recall"])
        vectors = (record.get(name) for record in self.log for name in ("pseudo_labels", "prior", "marginal"))
        return next((len(vector) for vector in vectors if vector), None)


def read_run(folder: Path) -> RunRecord:
    """Read the folder of a run."""
    if not (folder / "config.json").exists():
        raise RunError(
            f"{folder} is no run of debiaspl: it has no config.json, expected a folder that debiaspl train has made."
        )
    run = Run(folder)
    with _plain_errors(run.config_path):
        config = json.loads(run.config_path.read_text())
        check_config(config)
    with _plain_errors(run.log_path):
        log = run.log()
        check_log(log)
    with _plain_errors(run.results_path):
        # Asked first: a run may end meanwhile.
        ended = run.results_path.exists()
        results = run.results() if ended else None
        if ended:
            check_results(results)
    return RunRecord(folder, config["recipe"], log, results, classes_of_run(folder))


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Errors that name the file."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise RunError(
            f"{path} is damaged or of another version of debiaspl: {error}. Bring it back from a copy, or train anew."
        ) from error


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, if it is a run; else the runs that lie in it, by name."""
    if (folder / "config.json").exists() or not folder.is_dir():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/config.json"))
    if not found:
        raise RunError(f"{folder} is no run of debiaspl and holds none, expected the folder of a run, or of runs.")
    return found
