"""Files of a job on a Ray cluster of two nodes, one of whose workers is killed in the middle."""

import os
import signal
import time
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("ray", reason="needs ray")
pytest.importorskip("transformers")

import ray
from ray.cluster_utils import Cluster

from debiaspl.data import manifest
from debiaspl.data.manifest import run_on_ray
from debiaspl.data.open import list_place
from debiaspl.encoders.encoding import Encoding
from debiaspl.photos.encoding import PhotoEncoding, file_encoder
from tests.data.photos import write_folder
from tests.encoders.test_parts import contents
from tests.typed import done

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("OMP_NUM_THREADS", "1")
        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        nodes.add_node(num_cpus=2)
        patch.setenv("RAY_ADDRESS", nodes.address)
        yield nodes
        ray.shutdown()
        nodes.shutdown()


@pytest.fixture
def photos(tmp_path, monkeypatch):
    from tests.encoders.tiny import save

    save("resnet", tmp_path / "encoder")
    monkeypatch.setattr(manifest, "ROWS", 5)
    return write_folder(tmp_path / "photos", per_class=21)


def slow(make, folder):
    """Workers that note who made which file, and take their time."""
    work = make()

    def noted(number: int) -> None:
        time.sleep(0.3)
        work(number)
        (folder / f"{number} {os.getpid()}").touch()

    return noted


def kill_one(folder, killed):
    while not (made := list(folder.iterdir())):
        time.sleep(0.05)
    killed.append(int(made[0].name.split()[1]))
    os.kill(killed[0], signal.SIGKILL)


def test_a_worker_is_killed(cluster, photos, tmp_path):
    encoding = PhotoEncoding(list_place(photos), str(tmp_path / "encoder"), "cpu", tmp_path / "ray")
    size = encoding.images.images.shape[2], encoding.encoder.image_size
    make = partial(file_encoder, photos, str(tmp_path / "encoder"), size, tmp_path / "ray", False)
    numbers = Encoding(encoding.images, encoding.encoder, tmp_path / "ray").plan()
    assert numbers == list(range(9))
    notes, killed = tmp_path / "notes", list[int]()
    notes.mkdir()
    killer = Thread(target=kill_one, args=(notes, killed), daemon=True)
    killer.start()
    run_on_ray(partial(slow, make, notes), numbers)
    killer.join()
    by = {int(path.name.split()[1]) for path in notes.iterdir()}
    assert len(by) > 1
    assert killed[0] in by
    assert {int(path.name.split()[0]) for path in notes.iterdir()} == set(numbers)
    Encoding(encoding.images, encoding.encoder, tmp_path / "one").run()
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")


def test_what_was_begun_in_parts_is_finished_on_ray(cluster, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the workers began elsewhere
    what = "encode", "photos", "--encoder", "encoder", "--device", "cpu", "--out"
    for out, further in (("one", ()), ("both", ("--part", "2/3")), ("both", ("--on", "ray"))):
        done(*what, out, *further)
    assert contents(tmp_path / "both") == contents(tmp_path / "one")
    known = "--features", tmp_path / "one", "--encoder", tmp_path / "encoder", "--set", "steps=5"
    done("train", photos, *known, "--out", tmp_path / "run")
    (photos / "zz.jpg").write_bytes(b"damaged")
    for out, further in (("tables", ()), ("shared", ("--on", "ray"))):
        ran = done("predict", "run", "photos", "--out", out, "--device", "cpu", *further)
        assert "zz.jpg: its content is not" in ran
    tables = [{path.name: path.read_bytes() for path in (tmp_path / out).glob("*.csv")} for out in ("tables", "shared")]
    assert len(tables[0]) == 9
    assert tables[0] == tables[1]
