"""Pictures and files larger than memory are refused; large ones wait for each other."""

import io
import os
import threading
import time

import pytest
from PIL import Image

from debiaspl.data.decode import BYTES_PER_PIXEL, BadImage, decode
from debiaspl.data.lazy import FolderFiles
from debiaspl.files import memory
from debiaspl.predictions import PredictionsError, read_predictions

MEGAPIXELS = 9


def large(kind: str = "PNG", **options) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (3000, 1000 * MEGAPIXELS // 3)).save(content, kind, **options)
    return content.getvalue()


def free(monkeypatch, amount: float) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: int(amount))


def test_a_picture_that_does_not_fit_is_refused_and_the_limit_told(monkeypatch):
    need = MEGAPIXELS * 1e6 * BYTES_PER_PIXEL
    free(monkeypatch, need)
    with pytest.raises(BadImage, match=r"its 3,000 x 3,000 pixels need 0\.1 GB of memory, but only 0\.1 GB are free"):
        decode(large(), (8, 8))
    free(monkeypatch, 1.3 * need)
    assert decode(large(), (8, 8)).shape == (3, 8, 8)


def test_a_jpeg_read_at_a_smaller_scale_needs_less(monkeypatch):
    free(monkeypatch, 1e6)
    assert decode(large("JPEG"), (8, 8)).shape == (3, 8, 8)
    for content, size in ((large("JPEG"), None), (large("JPEG", progressive=True), (8, 8))):
        with pytest.raises(BadImage, match="of memory"):
            decode(content, size)


def test_large_pictures_wait_for_each_other(monkeypatch):
    """Eight at once would take six times what there is."""
    free(monkeypatch, 1e9)
    count, now, most, lock = 8, 0, 0, threading.Lock()

    def upright(*_):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return Image.new("RGB", (8, 8))

    monkeypatch.setattr("debiaspl.data.decode._upright", upright)
    threads = [threading.Thread(target=decode, args=(large(), (8, 8))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (now, most) == (0, 1)


def test_a_file_larger_than_memory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.jpg").touch()
    os.truncate(tmp_path / "a.jpg", 60_000_000)
    free(monkeypatch, 60_000_000)
    with pytest.raises(BadImage, match=r"the file needs 0\.1 GB of memory, but only 0\.1 GB are free"):
        FolderFiles(tmp_path, ("a.jpg",)).read(0)
    (tmp_path / "a.jpg").rename(tmp_path / "a.csv")
    with pytest.raises(PredictionsError, match=r"needs 0\.1 GB of memory"):
        read_predictions(tmp_path / "a.csv")


def test_a_container_has_less_than_its_machine(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 100\n")
    assert memory._of_container(tmp_path) == 400
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._of_container(tmp_path) is None
    assert 0 < memory.free_memory() < 2**50
