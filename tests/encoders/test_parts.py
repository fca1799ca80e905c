"""Features by parts: whoever computes them, in whatever order, however often killed, the files have the same bytes."""

import json
import signal
import time
from pathlib import Path

import pytest
import torch

from debiaspl.cli.options import part_of
from debiaspl.data import manifest
from debiaspl.data.listing import list_images
from debiaspl.encoders import encoding, features_of
from debiaspl.encoders.encoding import Encoding
from debiaspl.encoders.feature_folder import FeatureFolder
from tests.data.photos import write_shards
from tests.encoders.test_feature_folder import Flat, add, filled, opened
from tests.processes import forking
from tests.typed import done


def encode_slowly(photos: Path, folder: Path, number: int) -> None:
    class Slow(Flat):
        def features(self, images):
            time.sleep(0.05)
            return super().features(images)

    manifest.ROWS, encoding.BATCH, encoding.SECONDS = 5, {"cpu": 2}, 0.0
    Encoding(opened(photos), Slow(), folder).run((number, 4))


@pytest.fixture
def photos(tmp_path):
    return filled(tmp_path / "photos", 42)


def small(monkeypatch):
    monkeypatch.setattr(manifest, "ROWS", 5)
    monkeypatch.setattr(encoding, "BATCH", {"cpu": 2})


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*/[!.]*")}


@pytest.mark.slow
def test_four_processes_one_of_them_killed_twice(photos, tmp_path, monkeypatch):
    def part(number):
        process = forking().Process(target=encode_slowly, args=(photos, tmp_path / "parts", number), daemon=True)
        process.start()
        return process

    for _ in range(2):
        process, before = part(0), set((tmp_path / "parts").glob("*/[!.]*"))
        while len(set((tmp_path / "parts").glob("*/[!.]*")) - before) < 2 and process.is_alive():
            time.sleep(0.01)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    running = [part(number) for number in (3, 1, 0, 2)]
    for process in running:
        process.join(240)
    assert [process.exitcode for process in running] == [0] * 4
    small(monkeypatch)
    Encoding(opened(photos), Flat(), tmp_path / "one").run()
    assert contents(tmp_path / "parts") == contents(tmp_path / "one")
    assert len(contents(tmp_path / "one")) == 11


@pytest.mark.parametrize("parts", [1, 2, 3, 20])
def test_parts_in_any_order_and_photos_that_come_later(parts, photos, tmp_path, monkeypatch):
    small(monkeypatch)
    folder, seen = tmp_path / "features", 0
    for number in reversed(range(parts)):
        encoder = Flat()
        Encoding(opened(photos), encoder, folder).run((number, parts))
        seen += encoder.seen
    assert seen == 42 + sum(size % 2 for size in (5, 5, 5, 5, 5, 5, 5, 5, 2))  # batches are filled
    Encoding(opened(photos), Flat(), tmp_path / "one").run()
    assert contents(folder) == contents(tmp_path / "one")
    before = contents(folder)
    add(photos, "new.jpg", 50)
    for number in range(parts):
        Encoding(opened(photos), Flat(), folder).run((number, parts))
    after = contents(folder)
    assert after.keys() - before.keys() == {"00009.safetensors"}
    assert all(after[name] == before[name] for name in before if name != "manifest.jsonl")


def test_half_precision(photos, tmp_path):
    whole = features_of(opened(photos), Flat(), tmp_path / "whole").values
    Encoding(opened(photos), Flat(), tmp_path / "half", half=True).run()
    size = {name: sum(map(len, contents(tmp_path / name).values())) for name in ("whole", "half")}
    assert size["half"] < size["whole"]
    encoder = Flat()
    assert torch.equal(features_of(opened(photos), encoder, tmp_path / "half").values, whole.half().float())
    assert encoder.seen == 0


def test_a_large_table_is_a_memory_map_and_files_of_other_photos_are_not_read(photos, tmp_path, monkeypatch):
    small(monkeypatch)
    values = features_of(opened(photos), Flat(), tmp_path / "features").values
    monkeypatch.setattr(encoding, "MAPPED", 1000)
    before = contents(tmp_path / "features")
    assert torch.equal(features_of(opened(photos), Flat(), tmp_path / "features").values, values)
    assert contents(tmp_path / "features") == before
    some, read, whole = opened(photos).select(range(7, 12)), [], FeatureFolder.read
    monkeypatch.setattr(FeatureFolder, "read", lambda self, *how: read.append(how[0]) or whole(self, *how))
    assert torch.equal(features_of(some, Flat(), tmp_path / "features").values, values[7:12])
    assert read == [1, 2]


def test_a_folder_of_features_takes_the_place_of_photos(photos, tmp_path):
    folder = tmp_path / "features"
    values = features_of(opened(photos), Flat(), folder).values
    add(photos, "03.jpg", 60)
    changed = features_of(opened(photos), Flat(), folder).values
    assert not torch.equal(changed, values)
    listing = list_images(folder)
    assert listing.files == list_images(photos).files
    encoder = Flat()
    assert torch.equal(features_of(opened(folder), encoder, folder).values, changed)
    assert encoder.seen == 0
    next(folder.glob("*/00001.safetensors")).unlink()
    with pytest.raises(ValueError, match=r"by flat at 8 pixels"):
        features_of(opened(folder), Flat(), folder)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        *(
            ("about.json", text)
            for text in (
                *("{", "[]", '{"encoder": "x"}'),
                *(f'{{"encoder": "x", "image_size": {size}, "side": 1}}' for size in ("[]", -1, 0, 10**9)),
            )
        ),
        *(("manifest.jsonl", json.dumps([name])) for name in ("../x.jpg", "/etc/x.jpg", "a/../../x.jpg")),
    ],
)
def test_a_damaged_folder_or_one_with_names_outside_is_written_again(file, text, photos, tmp_path):
    features_of(opened(photos), Flat(), tmp_path)
    next(tmp_path.glob(f"*/{file}")).write_text(text)
    assert manifest.encoded_names(tmp_path) == ()
    features_of(opened(photos), Flat(), tmp_path)
    assert manifest.encoded_names(tmp_path) == list_images(photos).files


ARRAY = {"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "1"}


@pytest.mark.parametrize(
    ("environment", "text", "part"),
    [
        ({}, None, (0, 1)),
        ({}, "3/4", (2, 4)),
        ({"JOB_COMPLETION_INDEX": "2"}, "/4", (2, 4)),
        ({"JOB_COMPLETION_INDEX": "2"}, None, (0, 1)),
        ({"RANK": "1", "WORLD_SIZE": "3"}, None, (1, 3)),
        ({"RANK": "1", "WORLD_SIZE": "3"}, "1/2", (0, 2)),
        ({**ARRAY, "SLURM_ARRAY_TASK_ID": "3"}, None, (2, 3)),
        ({**ARRAY, "SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_STEP": "4"}, None, (2, 3)),
    ],
)
def test_which_part(environment, text, part, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert part_of(text) == part


def test_parts_that_do_not_exist(monkeypatch):
    for text in ("", "3", "0/4", "5/4", "a/4", "1/0", "/4", "-1/4", "1/4/2", None):
        if text is None:  # an irregular array
            for name, value in (ARRAY | {"SLURM_ARRAY_TASK_ID": "9"}).items():
                monkeypatch.setenv(name, value)
        with pytest.raises(ValueError, match="--part"):
            part_of(text)
    monkeypatch.delenv("SLURM_ARRAY_TASK_COUNT")
    with pytest.raises(ValueError, match="--part"):
        part_of(None)


def test_shards(tmp_path):
    pytest.importorskip("transformers")
    from tests.encoders.tiny import save

    save("resnet", tmp_path / "encoder")
    shards = write_shards(tmp_path / "shards")
    for part in ("2/2", "1/2"):
        where = shards, "--out", tmp_path / "features", "--encoder", tmp_path / "encoder"
        assert "20 images" in done("encode", *where, "--part", part).replace("\n", " ")
    names = manifest.encoded_names(tmp_path / "features")
    assert len(names) == 20
    assert names[0].startswith("part-000.tar/")
