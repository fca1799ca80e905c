"""Images that stay in files: lazy reading, feeds with worker processes and with ranks."""

import math
import os
import signal
import sys
import time
from pathlib import Path
from random import Random

import pytest
import torch
from PIL import Image

from debiaspl.data import DataError, ImageSet, IndexStream, LazyImages, feed, open_data
from debiaspl.data.decode import decode
from debiaspl.data.feed import FileFeed, load_crops, resized_crop_box
from debiaspl.data.lazy import FolderFiles
from debiaspl.data.open import read_place
from tests.data.photos import jpeg, patch, write_folder, write_shards
from tests.processes import started
from tests.ranks import on_ranks

CPU = torch.device("cpu")


def lazy(root: Path, side: int = 16) -> LazyImages:
    images = read_place(root, side).images
    assert isinstance(images, LazyImages)
    return images


def test_lazy_images_are_the_decoded_files(tmp_path):
    images = lazy(write_folder(tmp_path))
    assert images.shape == (20, 3, 16, 16)
    chosen = images.select(torch.tensor([11, 3]))
    expected = [decode(tmp_path / name, (16, 16)) for name in ("flower/0001.jpg", "china/0003.jpg")]
    assert torch.equal(chosen[torch.arange(2)], torch.stack(expected))
    assert read_place(tmp_path, 0).images.shape == (20, 3, 24, 24)  # the size of the first image


def test_a_resized_crop_is_a_part_of_the_image():
    random = Random(0)
    boxes = [resized_crop_box(100, 60, random) for _ in range(2000)]
    areas = [(right - left) * (bottom - top) / 6000 for left, top, right, bottom in boxes]
    ratios = [(right - left) / (bottom - top) for left, top, right, bottom in boxes]
    assert all(left >= 0 and top >= 0 and right <= 100 and bottom <= 60 for left, top, right, bottom in boxes)
    assert 0.2 <= min(areas) < 0.22
    assert 0.7 < max(areas) <= 1
    assert min(ratios) >= 3 / 4 - 1e-9
    assert max(ratios) <= 4 / 3 + 1e-9
    assert resized_crop_box(3000, 1, random)[2:] == pytest.approx((1500 + 2 / 3, 1))  # no draw fits a strip


def test_views_are_other_crops_of_the_same_image(tmp_path):
    red, blue = Image.new("RGB", (40, 40), "red"), Image.new("RGB", (40, 40), "blue")
    for name, image in (("a", red), ("b", blue)):
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"{number}.png").write_bytes(jpeg(image))
    pictures = torch.empty((2, 6, 3, 16, 16), dtype=torch.uint8)
    load_crops(lazy(tmp_path), torch.arange(6), 1, pictures)
    strongest = pictures.float().mean((3, 4)).argmax(-1)
    assert strongest.tolist() == [[0, 0, 0, 2, 2, 2]] * 2
    load_crops(lazy(write_folder(tmp_path / "photos")), torch.arange(4), 1, pictures[:, :4])
    assert not torch.equal(pictures[0, :4], pictures[1, :4])


def test_a_file_that_cannot_be_read_is_named_and_another_stands_in(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "china" / "0004.jpg").write_bytes(b"")
    images = lazy(tmp_path)
    pictures, alone = (torch.empty((1, count, 3, 16, 16), dtype=torch.uint8) for count in (3, 1))
    positions, skipped = load_crops(images, torch.tensor([3, 4, 5]), 0, pictures)
    assert positions == [3, 5, 5]
    assert list(skipped) == [4]
    assert "zero bytes" in skipped[4]
    load_crops(images, torch.tensor([5]), 1, alone)
    assert torch.equal(pictures[0, 1], alone[0, 0])
    with pytest.raises(DataError, match="image 4 cannot be read"):
        images[torch.tensor([4])]
    broken = LazyImages(FolderFiles(tmp_path, ("china/0004.jpg",)), torch.arange(1), (8, 8))
    with pytest.raises(DataError, match="none of 1 images can be read"):
        load_crops(broken, torch.tensor([0]), 0, alone)


def batches(images: ImageSet, numbers: list[int], workers: int) -> list[tuple[torch.Tensor, ...]]:
    drawn = feed(images, batch=6, views=2, seed=5, device=CPU, workers=workers)
    return [(part.positions, *part.pictures) for part in (drawn[number] for number in numbers)]


@pytest.mark.slow
def test_a_feed_gives_the_same_bits_with_any_number_of_workers_and_from_any_step(tmp_path):
    images = read_place(write_shards(tmp_path), 16)
    alone = batches(images, [0, 1, 2, 3, 4, 5], workers=0)
    for numbers, workers in (([0, 1, 2, 3], 2), ([3, 4, 5], 1), ([2, 5, 0], 0)):
        for number, found in zip(numbers, batches(images, numbers, workers), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(found, alone[number], strict=True))
    stream = IndexStream(20, 6, seed=5)
    assert torch.equal(alone[2][0], stream[2])


def test_a_feed_from_memory_gives_the_images_of_the_stream(tmp_path):
    images = open_data(str(write_folder(tmp_path)), image_size=16).train
    source = feed(images, batch=4, views=2, seed=1, device=CPU, workers=0)
    positions = IndexStream(len(images), 4, seed=1)[3]
    assert torch.equal(source[3].positions, positions)
    first, second = source.look_up(positions)
    assert torch.equal(first, images.images[positions])
    assert torch.equal(second, first)


class Slow:
    """Files whose reading tells which process reads, and waits for the test."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __len__(self) -> int:
        return 8

    def read(self, position: int) -> bytes:
        (self.place / str(os.getpid())).touch()
        while not (self.place / "go").exists():
            time.sleep(0.01)
        return jpeg(patch(0, position))


@pytest.mark.slow
def test_a_worker_that_dies_is_reported_and_does_not_hang_the_run(tmp_path):
    source = FileFeed(LazyImages(Slow(tmp_path), torch.arange(8), (8, 8)), IndexStream(8, 2, 0), 1, CPU, workers=1)

    import threading

    def kill() -> None:
        while not (found := [path for path in tmp_path.iterdir() if path.name.isdecimal()]):
            time.sleep(0.01)
        os.kill(int(found[0].name), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(DataError, match=r"a worker process that reads images has died.*--resume"):
        source[0]
    assert time.monotonic() - started < 60


@pytest.mark.slow
def test_workers_of_a_feed_that_is_still_held_do_not_keep_python_from_ending(tmp_path):
    write_folder(tmp_path / "photos")
    program = (
        "import sys, torch\n"
        "from pathlib import Path\n"
        "from debiaspl.data import feed\n"
        "from debiaspl.data.open import read_place\n"
        "if __name__ == '__main__':\n"
        "    images = read_place(Path(sys.argv[1]), 16)\n"
        "    sys.kept = feed(images, 4, 1, 0, torch.device('cpu'), 1)\n"
        "    sys.kept[0]"
    )
    (tmp_path / "program.py").write_text(program)
    typed = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "photos")]
    with started(typed) as process:
        assert process.wait(60) == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_folder_is_opened_with_a_fifth_held_out(tmp_path, stream):
    parts = open_data(str(write_folder(tmp_path)), image_size=16, stream=stream)
    assert parts.train.counts() == [8, 8]
    assert parts.test.counts() == [2, 2]
    assert not set(parts.train.ids) & set(parts.test.ids)
    assert isinstance(parts.train.images, LazyImages) == stream
    whole = torch.cat([parts.train.images[torch.arange(16)], parts.test.images[torch.arange(4)]])
    assert whole.dtype == torch.uint8
    assert math.prod(whole.shape) == 20 * 3 * 16 * 16
    (tmp_path / "unlabeled").mkdir()
    (tmp_path / "unlabeled" / "x.jpg").write_bytes(jpeg(patch(0, 3)))
    with pytest.raises(DataError, match="1 of 21 images have no label"):
        open_data(str(tmp_path), image_size=16)


STEPS = 5
"""Of 6 images from 20: the end of an epoch lies inside a batch, and inside a rank's part of it."""


def drawn_batches(root: Path) -> list[tuple[list[int], torch.Tensor]]:
    source = feed(read_place(root, 16), 6, 2, 3, CPU, workers=0)
    return [(drawn.positions.tolist(), torch.stack(drawn.pictures)) for drawn in (source[k] for k in range(STEPS))]


@pytest.mark.slow
def test_ranks_read_unequal_shards_past_the_end_of_an_epoch(tmp_path):
    root = write_shards(tmp_path, per_class=10, shards=3)
    alone = drawn_batches(root)
    for count in (2, 3):
        parts = on_ranks(count, drawn_batches, root)
        for step, (positions, pictures) in enumerate(alone):
            assert [place for part in parts for place in part[step][0]] == positions
            assert torch.cat([part[step][1] for part in parts], dim=1).equal(pictures)
    assert len({place for positions, _ in alone for place in positions}) == 20
