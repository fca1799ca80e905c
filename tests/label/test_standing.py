"""What the labels so far are worth, and a second look at those that look wrong."""

from threading import Event

import pytest

from debiaspl.deploy.next import Pool
from debiaspl.label.guide import EVERY, Guide, standing
from debiaspl.label.order import Order
from tests.features.test_estimate import made
from tests.label.made import CLASSES, served, wait_until, write_photos

FILES = tuple(f"{number:03d}.jpg" for number in range(60))


def answered(count: int, **changed: str | None) -> dict[str, str | None]:
    """Labels of the first files; every third one is of a class."""
    return {file: CLASSES[number % 3] for number, file in enumerate(FILES[:count])} | changed


def test_it_is_said_for_the_files_that_are_encoded():
    features, _ = made(rows=60)
    answers = answered(30) | {"not encoded.jpg": "china", FILES[40]: None}
    found = standing(features, FILES, CLASSES, answers, dict.fromkeys(FILES[:30:5], "random"))
    assert found.estimate.labels == 30
    assert found.estimate.low < found.estimate.accuracy < found.estimate.high
    wrong = standing(features, FILES, CLASSES, answers | {FILES[3]: "other"}, {})
    assert wrong.doubts[0] == {"name": FILES[3], "other": "china", "twin": False}


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {FILES[0]: "china"},
        {FILES[0]: "china", FILES[3]: "china"},
        answered(60),
        {FILES[0]: "china", FILES[1]: None},
    ],
)
def test_nothing_is_said_without_two_classes_or_without_other_images(answers):
    assert standing(made(rows=60)[0], FILES, CLASSES, answers, {}) is None


def learned(guide) -> bool:
    """Made features of 60 images: the classes in turn."""
    guide._keys, guide._pool, guide.looked = list(range(60)), Pool(made(rows=60)[0]), 60
    return False


@pytest.fixture
def client(tmp_path, monkeypatch):
    chosen, put = Event(), Order._put
    monkeypatch.setattr(Guide, "learn", learned)
    monkeypatch.setattr(Order, "_put", lambda order, keys: (put(order, keys), chosen.set()))
    with served(write_photos(tmp_path, 60), encoder="any", features=tmp_path / "features") as one:
        one.table = tmp_path / "labels.csv"
        assert chosen.wait(20), "until then images come at random"
        yield one


def waited(client, labels: int):
    """The state when this is said of so many labels."""
    wait_until(lambda: (client.get("state")["standing"] or {"labels": 0})["labels"] >= labels)
    return client.get("state")


def label(client, count: int, wrong: int) -> str:
    """Label the next images, one of them with another class, whose name is returned."""
    name = ""
    for number in range(count):
        image = client.first()
        place = (image["image"] + (number == wrong)) % 3
        name = image["name"] if number == wrong else name
        client.post("answer", image=image["image"], **{"class": place})
    return name


def test_after_ten_labels_the_page_says_what_they_are_worth_and_one_in_five_is_random(client):
    assert client.get("state")["standing"] is None
    label(client, 2 * EVERY, wrong=-1)
    found = waited(client, 2 * EVERY)["standing"]
    assert 0 < found["low"] < found["accuracy"] < found["high"] <= 1
    assert len(found["doubts"]) <= 2
    asked = [row.rpartition(",")[2] for row in client.table.read_text().splitlines()[1:]]
    assert 3 <= asked.count("random") <= 5


def test_a_second_look_replaces_a_label_or_keeps_it(client):
    name = label(client, 2 * EVERY, wrong=12)
    (doubt,) = [one for one in waited(client, 2 * EVERY)["standing"]["doubts"] if one["name"] == name]
    before = client.table.read_text()
    for place, kept in ((None, True), (CLASSES.index(doubt["label"]), True), (CLASSES.index(doubt["other"]), False)):
        state = client.post("look", image=doubt["image"])
        assert state["upcoming"][0]["name"] == name
        state = client.post("answer", image=doubt["image"], **{"class": place})
        assert state["upcoming"][0]["name"] != name
        assert state["labeled"] == 2 * EVERY
        assert (client.table.read_text() == before) == kept
        assert name not in [one["name"] for one in state["standing"]["doubts"]]
    rows = [row.split(",") for row in client.table.read_text().splitlines()]
    assert [row[1] for row in rows if row[0] == name] == [doubt["other"]]
    assert {row[2] for row in rows if row[0] == name} == {
        row.split(",")[2] for row in before.splitlines() if name in row
    }
    assert client.post("answer", image=doubt["image"], **{"class": 0})[0] == 409


def test_only_labels_can_be_looked_at_again(client):
    assert client.post("look", image=client.first()["image"])[0] == 409
    assert client.post("look", image=60)[0] == 404
