"""A run folder gives its model again, wherever it lies, and a folder that is none says so."""

import json
import shutil
import struct
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from debiaspl.data import open_data
from debiaspl.deploy import load_model
from debiaspl.training import RunError, train
from debiaspl.training.evaluate import evaluate
from tests.training.tiny import TINY


def test_a_moved_run_predicts_the_same_bits_and_what_the_run_itself_said(run, photos, tmp_path):
    moved = shutil.copytree(run, tmp_path / "elsewhere" / "gelaufen ü")
    (moved / "config.json").unlink()  # the weights' file is enough
    one, other = load_model(run), load_model(moved)
    test = open_data(str(photos), 24).test
    assert torch.equal(one.probabilities(test.images), other.probabilities(test.images))
    assert torch.equal(one.features(test.images), other.features(test.images))
    assert evaluate(other.network, test).to_csv() == (run / "predictions.csv").read_text()
    assert (one.classes, one.channels, one.size) == (("china", "flower"), 3, (24, 24))
    assert not one.network.training
    assert not any(value.requires_grad for value in one.network.parameters())
    assert one.probabilities(test.images).sum(-1).allclose(torch.ones(len(test)))


def test_a_grey_model_reads_colour_photos_as_grey_ones(photos, tmp_path):
    train(TINY, tmp_path / "digits")
    model = load_model(tmp_path / "digits")
    picture = model.read(photos / "china" / "0001.jpg")
    assert picture.shape == (1, 8, 8)
    assert model.probabilities(picture[None]).shape == (1, 10)


def test_images_of_another_shape_are_refused(model):
    for images in (torch.zeros(2, 3, 24, 25, dtype=torch.uint8), torch.zeros(3, 24, 24)):
        with pytest.raises(ValueError, match=r"expected \('N', 3, 24, 24\)"):
            model.probabilities(images)
    with pytest.raises(ValueError, match=r"dtype torch.float32, expected uint8 \(N, C, H, W\) with C = 1 or 3"):
        model.probabilities(torch.full((2, 3, 24, 24), 7.0))
    with pytest.raises(ValueError, match="there are no images"):
        model.predict([])
    for images in (None, Path().glob("*.jpg"), Image.new("RGB", (24, 24))):
        with pytest.raises(ValueError, match=f"type {type(images).__name__}, expected a list"):
            model.predict(images)


def test_arrays_as_people_have_them_are_predicted_alike(model):
    """Bytes or numbers from 0 to 1, with channels first or last, as a tensor, an array or a list."""
    pixels = torch.randint(256, (3, 3, 24, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    expected = model.predict(pixels)
    assert set(expected) <= set(model.classes)
    last = pixels.permute(0, 2, 3, 1).numpy()
    for images in (pixels.numpy(), last, last / 255, last.tolist(), pixels.float() / 255):
        assert model.predict(images) == expected


@pytest.fixture
def broken(run, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(run, tmp_path / "broken")


def test_a_folder_that_is_no_run(tmp_path, run):
    with pytest.raises(RunError, match=r"nowhere does not exist\. Expected the folder of a run"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(RunError, match=r"is a file; did you mean .*small\?"):
        load_model(run / "model.safetensors")
    with pytest.raises(RunError, match=r"is not a run of debiaspl: it has no model.safetensors"):
        load_model(tmp_path)
    with pytest.raises(RunError, match=r"It contains runs, such as .*small\."):
        load_model(run.parent)
    # What debiaspl zeroshot has made has results of its own beside its runs.
    shutil.copytree(run, tmp_path / "zeroshot" / "debiaspl")
    (tmp_path / "zeroshot" / "results.json").write_text("{}")
    with pytest.raises(RunError, match=r"It contains runs, such as .*zeroshot/debiaspl\."):
        load_model(tmp_path / "zeroshot")


def test_an_unfinished_run_says_how_to_go_on(broken):
    (broken / "model.safetensors").unlink()
    with pytest.raises(RunError, match="has ended"):
        load_model(broken)
    (broken / "results.json").unlink()
    with pytest.raises(RunError, match="--resume"):
        load_model(broken)


GOOD = {"network": {"name": "small", "settings": {"width": 4}}, "classes": ["a", "b"], "channels": 3, "size": [24, 24]}
CLAIMS_TO_BE_HUGE = struct.pack("<Q", 2**60) + b"{}"


def flipped(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize(
    ("damage", "noun"),
    [
        (lambda c: c[:5], "Restore"),
        (lambda c: c[:-1], "Restore"),
        (flipped, "digest"),
        (lambda _: CLAIMS_TO_BE_HUGE, ""),
    ],
)
def test_damaged_weights_are_refused(broken, damage, noun):
    path = broken / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunError, match=f"is damaged.*{noun}"):
        load_model(broken)


def network(name, **settings):
    return {"network": {"name": name, "settings": settings}}


@pytest.mark.parametrize(
    ("changes", "noun"),
    [
        *((bad, "another version") for bad in ({"classes": ["a", "a"]}, {"classes": "ab"}, {"size": [24, 0]})),
        *((bad, "another version") for bad in ({"channels": 4}, {"network": {"name": "small"}}, "[]", "[" * 100_000)),
        (network("huge"), "no network named 'huge'"),
        (network("small", depth=3), "TypeError: .* 'depth'"),
        (network("encoder", architecture="lite0"), "AttributeError"),
        (network("small", width=8), "not those of the network"),
        (None, "does not name its network"),
    ],
)
def test_facts_that_are_not_those_of_the_weights(broken, changes, noun):
    path = broken / "model.safetensors"
    text = changes if isinstance(changes, str) else json.dumps(GOOD | (changes or {}))
    save_file(load_file(path), path, metadata=None if changes is None else {"debiaspl": text})
    with pytest.raises(RunError, match=noun):
        load_model(broken)
    save_file(load_file(path), path, metadata={"debiaspl": json.dumps(GOOD)})
    assert load_model(broken).classes == ("a", "b")
