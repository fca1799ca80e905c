"""Real runs on photos, trained once for all tests of what comes out of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl.deploy import SavedModel, load_model
from debiaspl.training import Choice, Recipe, train
from tests.data.photos import write_folder

PHOTOS = Recipe(
    name="photos",
    protocol=Choice("few-labels", {"per_class": 4}),
    network=Choice("small", {"width": 4}),
    steps=12,
    labeled_batch=8,
    unlabeled_batch=8,
    average_decay=0.5,
    average_statistics=True,
)


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    """Class folders of small photographs."""
    return write_folder(tmp_path_factory.mktemp("data") / "photos", per_class=12)


@pytest.fixture(scope="session")
def runs(tmp_path_factory, photos) -> dict[str, Path]:
    """Two networks, trained with images of two sizes."""
    folder = tmp_path_factory.mktemp("runs")
    wide = Choice("wrn", {"depth": 10, "width": 1, "norm_momentum": 0.1})
    for name, changes in {"small": {"image_size": 24}, "wide": {"image_size": 16, "network": wide}}.items():
        train(replace(PHOTOS, data=str(photos), **changes), folder / name)
    return {name: folder / name for name in ("small", "wide")}


@pytest.fixture(scope="session")
def run(runs) -> Path:
    return runs["small"]


@pytest.fixture(scope="session")
def model(run) -> SavedModel:
    return load_model(run)
