"""A run that says which images to label next."""

import signal
import threading
import time

import pytest
import torch

from debiaspl.data.listing import list_images
from debiaspl.deploy.next import Pool
from debiaspl.deploy.saved import SavedModel
from debiaspl.features import choose
from debiaspl.label import guide as guide_module
from debiaspl.label.guide import Guide, Stopped, encoder_guide, run_guide
from debiaspl.models import MODELS
from debiaspl.photos.encoding import PhotoEncoding
from debiaspl.training import train
from tests.label.made import CLASSES, Client, Table, served, wait_until, write_photos
from tests.label.process import Labelling
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
    guide = run_guide(model, root, files, Table({"003.jpg": "a", "009.jpg": None}), model.classes)
    assert guide.note == "The images are being read: 0 of 20. They come in random order until 20 are read."
    assert not guide.learn()
    assert (guide.note, list(guide.unreadable)) == ("", [7])
    readable = [number for number in range(20) if number != 7]
    images = torch.stack([model.read(root / files[number]) for number in readable])
    pool = Pool(model.features(images), model.probabilities(images), model.classes)
    expected = pool.choose(200, {readable.index(3): "a", readable.index(9): None})
    order = guide.choose({3, 9, 7})
    assert sorted(key for key, _ in order) == sorted(readable[pick.place] for pick in expected)
    # Two are answered: the third one from here on is the fifth, and at random.
    chance = [key for key, asked in order if asked == "random"]
    assert [asked for _, asked in order[:8]] == ["uncertainty"] * 2 + ["random"] + ["uncertainty"] * 4 + ["random"]
    rest = [readable[pick.place] for pick in expected if readable[pick.place] not in chance]
    assert [key for key, asked in order if asked == "uncertainty"] == rest
    assert guide.choose(set(range(20))) == []


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    pytest.importorskip("transformers")
    from tests.encoders.tiny import save

    save("resnet", tmp_path_factory.mktemp("encoder") / "tiny")
    return str(next(tmp_path_factory.getbasetemp().glob("encoder*/tiny")))


def test_an_encoder_chooses_by_coverage_and_encodes_twice_as_many_each_time(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(guide_module, "FIRST", 8)
    listing = list_images(write_photos(tmp_path / "photos", 20))
    guide = encoder_guide(listing, encoder, tmp_path / "features", Table(), ("a", "b"))
    assert guide.choose(set()) == []
    for read in (8, 16, 20):
        assert guide.learn() == (read < 20)
        assert guide.looked == read
        assert len(guide.choose(set())) == read
    _, pool, _ = PhotoEncoding(listing, encoder, "cpu", tmp_path / "features").pool(range(20), lambda *done: None)
    order = guide.choose({3})
    assert {key for key, _ in order} == set(range(20)) - {3}
    assert [asked for _, asked in order[:5]] == ["coverage"] * 3 + ["random", "coverage"]
    assert [key for key, _ in order][:3] == choose(pool.features, 3, [-1, -1, -1, 0, *[-1] * 16]).tolist()


def test_the_page_goes_from_random_to_coverage_and_the_table_says_so(tmp_path, encoder):
    photos = write_photos(tmp_path / "photos", 30)
    with served(photos, encoder=encoder, features=tmp_path / "features") as client:
        client.answer(0)
        wait_until(lambda: not client.get("state")["notes"])
        for _ in range(20):  # the images are read; they are chosen from a moment later
            state = client.answer(1)
            if (photos / "labels.csv").read_text().endswith("coverage\n"):
                break
        first = client.post("undo")["upcoming"][0]
        assert first["name"] == state["last"]["name"]
        client.answer(0)
    header, *rows = (photos / "labels.csv").read_text().splitlines()
    assert header == "file_name,label,asked"
    assert (rows[0].split(",")[2], rows[-1].split(",")[1:]) == ("random", ["china", "coverage"])
    assert list((tmp_path / "features").glob("*/*.safetensors"))


@pytest.mark.slow
def test_a_kill_loses_no_answer_and_no_finished_features(tmp_path, encoder, monkeypatch):
    photos, features = write_photos(tmp_path / "photos", 60), tmp_path / "runs" / ".features"
    monkeypatch.chdir(tmp_path)
    given: list[str] = []
    # At once, while images are encoded; and when they have been chosen from.
    for encoded in (False, True):
        with Labelling(photos, "--classes", ",".join(CLASSES), "--encoder", encoder) as labelling:
            client = Client(labelling.url)
            wait_until(lambda client=client, now=not encoded: now or not client.get("state")["notes"])
            for number in range(12):
                given.append(f"{client.first()['name']},{CLASSES[number % 3]}")
                client.answer(number % 3)
            labelling.end(signal.SIGKILL)
        rows = (photos / "labels.csv").read_text().splitlines()[1:]
        assert [row.rpartition(",")[0] for row in rows] == given
    assert list(features.glob("*/*.safetensors"))
    again = PhotoEncoding(list_images(photos), encoder, "cpu", features)
    monkeypatch.setattr(type(again.encoder), "embed", None)  # nothing is left to be encoded
    assert len(again.pool(range(60), lambda done, total: None)[0]) == 60


def test_an_answer_does_not_wait_for_the_encoder(tmp_path, monkeypatch):
    started = threading.Event()

    def learn(guide):
        started.set()
        while not guide.stopped:
            time.sleep(0.01)
        raise Stopped

    monkeypatch.setattr(Guide, "learn", learn)
    with served(write_photos(tmp_path, 12), encoder="any", features=tmp_path / "features") as client:
        assert started.wait(20)
        for number in range(12):
            assert client.answer(0)["labeled"] == number + 1
        assert "0 of 12" in client.get("state")["notes"][0]


def test_a_trained_run_gives_its_classes_and_its_choice(tmp_path):
    train(EAGER, tmp_path / "run")
    photos = write_photos(tmp_path / "photos", 40)
    with served(photos, None, run=tmp_path / "run") as client:
        assert client.get("about")["classes"] == [str(digit) for digit in range(10)]
        wait_until(lambda: not client.get("state")["notes"])
        wait_until(lambda: client.answer(3) and "uncertainty" in (photos / "labels.csv").read_text())


def test_of_a_large_folder_some_are_compared_at_a_time_until_all_were(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(guide_module, "MOST", 6)
    monkeypatch.setattr(guide_module, "FIRST", 4)
    root, answers = write_photos(tmp_path / "photos", 20), Table({"003.jpg": "a", "009.jpg": None})
    guide = encoder_guide(list_images(root), encoder, tmp_path / "features", answers, ("a", "b"))
    seen = []
    while True:
        more = guide.learn()
        chosen = {key for key, _ in guide.choose({3, 9})}
        assert len(chosen) <= 6
        seen.append(chosen)
        if not more:
            break
    assert set.union(*seen) == set(range(20)) - {3, 9}
    assert guide.note == ""
