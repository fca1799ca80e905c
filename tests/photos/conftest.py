"""Photos of a user, and runs on them that several files of tests look at."""

import pytest

from tests.data.photos import write_labels, write_photos
from tests.photos.digits import write_digits
from tests.photos.starts import pretrain
from tests.photos.user import CLASSES, asked
from tests.typed import done


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """photos/, labels.csv with three labels a class, and a tiny encoder."""
    root = tmp_path_factory.mktemp("user")
    names = [f"{number:02d}.jpg" for number in range(30)]
    write_photos(root / "photos", names)
    write_labels(root / "labels.csv", {name: CLASSES[number % 2] for number, name in enumerate(names[:6])})
    pytest.importorskip("transformers")
    from tests.encoders.tiny import save

    save("resnet", root / "encoder")
    return root


@pytest.fixture(scope="module")
def trained(place):
    return done(*asked(place, place / "runs" / "first")), place / "runs" / "first"


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
