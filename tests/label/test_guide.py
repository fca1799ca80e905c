"""A run that says which images to label next."""

import time

import pytest
import torch

from debiaspl.deploy import load_model
from debiaspl.deploy.next import Pool
from debiaspl.deploy.saved import SavedModel
from debiaspl.label.guide import RunGuide
from debiaspl.models import MODELS
from debiaspl.training import train
from tests.label.made import Client, served, write_photos
from tests.training.tiny import EAGER


@pytest.fixture
def model() -> SavedModel:
    torch.manual_seed(0)
    network = MODELS["small"](num_classes=3, channels=3, width=4).eval()
    return SavedModel(network, ("a", "b", "c"), 3, (16, 16))


def test_it_names_what_next_would_pick_and_nothing_that_was_answered(tmp_path, model):
    root = write_photos(tmp_path, 20)
    (root / "007.jpg").write_bytes(b"damaged")
    files = tuple(f"{number:03d}.jpg" for number in range(20))
    guide = RunGuide(model, root, files)
    assert guide.total == 20
    readable = [number for number in range(20) if number != 7]
    images = torch.stack([model.read(root / files[number]) for number in readable])
    features, probabilities = model.features(images), model.probabilities(images)
    pool = Pool(features, probabilities, model.classes)
    expected = pool.choose(200, {readable.index(3): None, readable.index(9): None})
    assert guide({3, 9, 7}) == [readable[one.place] for one in expected]
    assert guide.looked == 20
    assert set(guide({3, 9, 7})) == set(range(20)) - {3, 9, 7}
    assert guide(set(range(20))) == []


def test_answers_given_meanwhile_are_used(tmp_path, model, monkeypatch):
    root = write_photos(tmp_path, 20)
    files = tuple(f"{number:03d}.jpg" for number in range(20))
    answers: dict[str, str | None] = {}
    guide, seen, choose = RunGuide(model, root, files, answers), [], Pool.choose
    monkeypatch.setattr(Pool, "choose", lambda pool, count, labels: seen.append(labels) or choose(pool, count, labels))
    guide({3, 9, 12})
    answers |= {"003.jpg": "a", "009.jpg": "b", "012.jpg": None}
    guide({3, 9, 12})
    assert seen == [{3: None, 9: None, 12: None}, {3: "a", 9: "b", 12: None}]


def test_a_trained_run_gives_its_classes_and_its_choice(tmp_path):
    train(EAGER, tmp_path / "run")
    photos = write_photos(tmp_path / "photos", 40)
    with served(photos, None, run=tmp_path / "run") as client:
        assert client.get("about")["classes"] == [str(digit) for digit in range(10)]
        deadline = time.monotonic() + 20
        while client.get("state")["notes"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        client.answer(3)
        model = load_model(tmp_path / "run")
        files = sorted(path.name for path in photos.glob("*.jpg"))
        guide = RunGuide(model, photos, files)
        wanted = guide(())
        deadline = time.monotonic() + 20
        # The first two were on the screen or on their way there when the run had made up its mind.
        while [one["image"] for one in client.get("state")["upcoming"]][2:4] != (left := without(wanted, client))[:2]:
            assert time.monotonic() < deadline, left
            time.sleep(0.02)


def without(wanted: list[int], client: Client) -> list[int]:
    """What is left of the run's choice after the images that were shown before it."""
    state = client.get("state")
    shown = {one["image"] for one in state["upcoming"][:2]} | {int(state["last"]["name"][:3])}
    return [number for number in wanted if number not in shown]
