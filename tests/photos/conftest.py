"""Photos of a user, and runs on them that several files of tests look at."""

import csv

import pytest

from tests.data.photos import jpeg, patch
from tests.photos.digits import write_digits
from tests.photos.starts import pretrain
from tests.photos.user import CLASSES, PER_CLASS, SIDE, train


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """photos/, labels.csv with three labels a class, and a tiny encoder."""
    root = tmp_path_factory.mktemp("user")
    (root / "photos").mkdir()
    table = [("file_name", "label")]
    for number in range(2 * PER_CLASS):
        name = f"{number:02d}.jpg"
        (root / "photos" / name).write_bytes(jpeg(patch(number % 2, number, SIDE)))
        if number < 6:
            table.append((name, CLASSES[number % 2]))
    with (root / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(table)
    pytest.importorskip("transformers")
    from tests.encoders.tiny import save

    save("resnet", root / "encoder")
    return root


@pytest.fixture(scope="module")
def trained(place):
    return train(place, place / "runs" / "first"), place / "runs" / "first"


@pytest.fixture(scope="session")
def flat(tmp_path_factory):
    """A folder of digits without labels."""
    return write_digits(tmp_path_factory.mktemp("flat") / "photos")


@pytest.fixture(scope="session")
def start(flat):
    """A start of that folder, and what was said."""
    return flat.parent / "start", pretrain(flat, flat.parent / "start")


@pytest.fixture(autouse=True)
def no_encoder_installed(monkeypatch):
    """Without --encoder a small network is trained, whatever is installed on this machine."""
    monkeypatch.setattr("debiaspl.photos.api.lite0_is_installed", lambda: False)
