"""A run folder gives its model again, wherever it lies, and a folder that is none says so."""

import json
import shutil
import struct

import pytest
import torch
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
        with pytest.raises(ValueError, match=r"expected \(N, C, H, W\) with C, H, W = 3, 24, 24"):
            model.probabilities(images)
    with pytest.raises(ValueError, match=r"dtype torch.float32, expected uint8 \(N, C, H, W\) with C = 1 or 3"):
        model.probabilities(torch.full((2, 3, 24, 24), 7.0))
    with pytest.raises(ValueError, match="there are no images"):
        model.predict([])


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


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_file_cut_short(broken, length):
    path = broken / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RunError, match=r"model.safetensors is damaged.*Restore it from a copy, or train again"):
        load_model(broken)


def test_a_file_that_claims_to_be_huge(broken):
    (broken / "model.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    with pytest.raises(RunError, match="is damaged"):
        load_model(broken)


def test_weights_of_another_program(broken):
    save_file(load_file(broken / "model.safetensors"), broken / "model.safetensors")
    with pytest.raises(RunError, match="does not name its network"):
        load_model(broken)


@pytest.mark.parametrize("place", [-3, -400])
def test_a_flipped_bit_is_found(broken, place):
    path = broken / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(RunError, match=r"model\.safetensors is damaged: its content does not match its digest"):
        load_model(broken)


GOOD = {"network": {"name": "small", "settings": {"width": 4}}, "classes": ["a", "b"], "channels": 3, "size": [24, 24]}
CHANGES = {"classes": ["a", "a"]}, {"classes": "ab"}, {"size": [24, 0]}, {"channels": 4}, {"network": {"name": "small"}}


@pytest.mark.parametrize("text", [*(json.dumps(GOOD | changes) for changes in CHANGES), "", "[]", "[" * 100_000])
def test_facts_that_are_not_what_they_must_be(broken, text):
    _rewrite(broken, text)
    with pytest.raises(RunError, match="is damaged or of another version"):
        load_model(broken)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"name": "huge", "settings": {}}, "cannot be built: there is no network named 'huge'"),
        ({"name": "small", "settings": {"depth": 3}}, "cannot be built: TypeError: .* unexpected .* 'depth'"),
        ({"name": "encoder", "settings": {"architecture": "lite0"}}, "cannot be built: AttributeError"),
        ({"name": "small", "settings": {"width": 8}}, "not those of the network"),
    ],
)
def test_a_network_that_is_not_the_one_of_the_weights(broken, network, message):
    _rewrite(broken, json.dumps(GOOD | {"network": network}))
    with pytest.raises(RunError, match=message):
        load_model(broken)


def test_the_good_facts_are_good(broken):
    _rewrite(broken, json.dumps(GOOD))
    assert load_model(broken).classes == ("a", "b")


def _rewrite(folder, facts: str) -> None:
    path = folder / "model.safetensors"
    save_file(load_file(path), path, metadata={"debiaspl": facts})
