"""Runs that several modules look at."""

import json
import os
from pathlib import Path

import pytest
from filelock import FileLock

from tests import forked
from tests.training.torchrun import ENVIRONMENT, command, counting


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A run of two ranks that nobody has stopped: trained once, whichever of pytest's own processes need it."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    place /= "undisturbed"
    with FileLock(place.with_suffix(".lock")):
        if not (place / "checked").exists():
            _train(place)
    return place / "run"


def _train(place: Path) -> None:
    place.mkdir()
    folder, typed = place / "run", command(place / "run", 2, program=counting(place))
    said = forked.torchrun(typed, environment=ENVIRONMENT)
    assert said.returncode == 0, said.stderr
    # One that is left when Python ends, and holds a tensor, aborts the process.
    assert said.stderr.count("threads of gloo: 0") == 2, said.stderr
    assert said.stdout.count("accuracy") == 1, "the first rank speaks for all"
    assert json.loads((folder / "results.json").read_text())["timing"]["processes"] == 2
    (place / "checked").touch()
