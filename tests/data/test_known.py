"""Known sets, read from small sets in the official formats, and from the real ones where they are."""

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from debiaspl.data import cifar, formats, open_data
from debiaspl.data.decode import decode
from debiaspl.data.formats import EUROSAT_SIZES, held_out_numbers, read_imagenet, read_mnist
from debiaspl.data.images import TrainTest
from debiaspl.data.known import SETS, data_folders, find, load
from debiaspl.data.splits import FewLabels
from debiaspl.data.text import DataError
from tests.data.test_unpickle import python2_pickle

CIFAR10 = replace(cifar.CIFAR10_LAYOUT, train={f"data_batch_{k}": 10 for k in range(1, 6)}, test={"test_batch": 20})
CIFAR100 = replace(cifar.CIFAR100_LAYOUT, train={"train": 200}, test={"test": 100})
MNIST = {"train": 30, "test": 20}


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch, tmp_path):
    """No set of the machine's is found."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DEBIASPL_DATA", raising=False)


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randint(0, 256, size=shape, dtype=np.uint8)


def write_cifar(folder: Path, layout: cifar.CifarLayout) -> dict[str, dict[bytes, object]]:
    """Small batches with the official keys; returns what was written."""
    names = [f"class {k}".encode() for k in range(layout.classes)]
    written: dict[str, dict[bytes, object]] = {layout.meta: {layout.classes_key: names, b"num_vis": 3072}}
    for seed, (name, count) in enumerate({**layout.train, **layout.test}.items()):
        labels = [(seed + position) % layout.classes for position in range(count)]
        files = [f"{name}_{position}.png".encode() for position in range(count)]
        coarse = {b"coarse_labels": [0] * count} if layout.classes == 100 else {}
        pixels = noise(count, 3072, seed=seed)
        written[name] = {b"data": pixels, layout.labels_key: labels, b"filenames": files, **coarse}
    folder.mkdir(parents=True)
    for name, content in written.items():
        (folder / name).write_bytes(python2_pickle(content))
    return written


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100], ids=["cifar10", "cifar100"])
def test_cifar(tmp_path, layout):
    written = write_cifar(tmp_path / "cifar", layout)
    read = cifar.read_cifar(layout, tmp_path / "cifar")
    for part, batches in ((read.train, layout.train), (read.test, layout.test)):
        assert len(part) == sum(batches.values())
        assert part.classes == tuple(f"class {k}" for k in range(layout.classes))
        assert part.labels.tolist() == [label for name in batches for label in written[name][layout.labels_key]]
        assert part.ids == tuple(file.decode() for name in batches for file in written[name][b"filenames"])
    last = list(layout.train)[-1]
    row, column = 5, 7
    red, green, blue = (written[last][b"data"][-1, plane * 1024 + row * 32 + column] for plane in range(3))
    assert read.train.images[-1, :, row, column].tolist() == [red, green, blue]


def refused(monkeypatch, name: str, read: Callable[[Path], TrainTest], folder: Path, message: str) -> None:
    monkeypatch.setitem(SETS, name, replace(SETS[name], read=read))
    with pytest.raises(DataError, match=message) as error:
        load(name, folder)
    assert str(error.value).endswith(f"remove {folder} and run: debiaspl data get {name}")


def change(name: str, **changes: object) -> Callable[[Path, dict[str, dict[bytes, object]]], None]:
    def spoil(folder: Path, written: dict[str, dict[bytes, object]]) -> None:
        content = {**written[name], **{key.encode(): value for key, value in changes.items()}}
        (folder / name).write_bytes(python2_pickle(content))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder, _: (folder / "data_batch_3").unlink(), "data_batch_3 missing, expected 7 files"),
        (lambda folder, _: os.truncate(folder / "data_batch_3", 9999), "data_batch_3 is not a complete pickle"),
        (lambda folder, _: os.truncate(folder / "test_batch", 0), "test_batch is not a complete pickle"),
        (lambda folder, _: (folder / "test_batch").write_bytes(b"cos\nsystem\n."), "test_batch .* uses os.system"),
        (change("test_batch", data=noise(19, 3072)), "its data"),
        (change("test_batch", data=b"no"), "its data"),
        (change("test_batch", labels=[0] * 19 + [10]), "its labels, expected 20 of 0 to 9"),
        (change("test_batch", labels=[b"0"] * 20), "its labels"),
        (change("test_batch", filenames=[b"a"]), "its filenames"),
        (change("batches.meta", label_names=[b"a"]), "batches.meta .* 10 names"),
    ],
)
def test_damaged_cifar_teaches(tmp_path, monkeypatch, spoil, message):
    folder = tmp_path / "cifar"
    spoil(folder, write_cifar(folder, CIFAR10))
    refused(monkeypatch, "cifar10", partial(cifar.read_cifar, CIFAR10), folder, message)


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes() + values.tobytes()


def write_mnist(folder: Path) -> None:
    folder.mkdir(parents=True)
    for prefix, count in (("train", MNIST["train"]), ("t10k", MNIST["test"])):
        labels = np.arange(count, dtype=np.uint8) % 10
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(noise(count, 28, 28))))
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def test_mnist(tmp_path):
    write_mnist(tmp_path / "mnist")
    read = read_mnist(tmp_path / "mnist", **MNIST)
    assert read.train.images.shape == (30, 1, 28, 28)
    assert torch.equal(read.test.images[:, 0], torch.from_numpy(noise(20, 28, 28)))
    assert read.test.labels.tolist() == [k % 10 for k in range(20)]
    assert read.train.classes == tuple("0123456789")
    assert not set(read.train.ids) & set(read.test.ids)


LABELS = idx(np.arange(20, dtype=np.uint8) % 10)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LABELS[:-1], "it has 27 bytes"),
        (LABELS + b"\0", "expected 28 bytes"),
        (idx(noise(1, 1, 28)), "begins with 00000803"),
        (LABELS[:-1] + b"\x0a", "run to 10, expected 0 to 9"),
        (gzip.compress(LABELS)[:-9], "complete .gz"),
        (gzip.compress(LABELS)[:5], "complete .gz"),
        (b"<html>not found</html>", "complete .gz"),
        (None, "missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_damaged_mnist_teaches(tmp_path, monkeypatch, content, message):
    write_mnist(tmp_path / "mnist")
    file = tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content if message == "complete .gz" else gzip.compress(content))
    refused(monkeypatch, "mnist", partial(read_mnist, **MNIST), tmp_path / "mnist", message)


def write_eurosat(folder: Path, numbers: range = range(1, 21)) -> None:
    for shade, name in enumerate(EUROSAT_SIZES):
        (folder / name).mkdir(parents=True)
        for number in numbers:
            image = Image.new("RGB", (64, 64), (10 * shade, number, 200))
            image.save(folder / name / f"{name}_{number}.jpg", quality=100, subsampling=0)


def test_eurosat(tmp_path):
    write_eurosat(tmp_path / "2750")
    read = load("eurosat", tmp_path)
    assert (read.train.counts(), read.test.counts()) == ([16] * 10, [4] * 10)
    assert read.train.classes == tuple(sorted(EUROSAT_SIZES))
    assert list(read.train.ids) == sorted(read.train.ids)
    for part in (read.train, read.test):
        for image, label, file in zip(part.images, part.labels.tolist(), part.ids, strict=True):
            assert file.startswith(f"{part.classes[label]}/{part.classes[label]}_")
            number = int(file.split("_")[1].removesuffix(".jpg"))
            told = torch.tensor([10 * label, number, 200]).view(3, 1, 1)
            assert (image.int() - told).abs().max() <= 3


def test_half_of_eurosat_holds_out_a_fifth_of_what_the_whole_set_holds_out(tmp_path):
    for folder, numbers in (("whole", range(1, 21)), ("odd", range(1, 21, 2)), ("even", range(2, 21, 2))):
        write_eurosat(tmp_path / folder / "2750", numbers)
    whole, odd, even = (load("eurosat", tmp_path / folder) for folder in ("whole", "odd", "even"))
    assert odd.test.counts() == even.test.counts() == [2] * 10
    assert {*odd.test.ids, *even.test.ids} == set(whole.test.ids)
    assert {*odd.train.ids, *even.train.ids} == set(whole.train.ids)


def test_the_test_images_of_eurosat_are_the_same_on_every_machine():
    for name, size in EUROSAT_SIZES.items():
        numbers = np.flatnonzero(held_out_numbers(name))
        assert len(numbers) == size // 5
        assert numbers.max() <= size
    assert np.flatnonzero(held_out_numbers("AnnualCrop"))[:8].tolist() == [9, 10, 11, 16, 27, 30, 37, 38]
    assert np.flatnonzero(held_out_numbers("SeaLake"))[-8:].tolist() == [2961, 2968, 2971, 2974, 2983, 2990, 2995, 2996]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: os.truncate(file, 300), r"River_7.jpg is damaged .*debiaspl data get eurosat"),
        (lambda file: file.rename(file.with_stem("River_2501")), r"River_2501.jpg is not an image of the set"),
        (lambda file: file.rename(file.with_stem("River_7 copy")), r"River_7 copy.jpg is not an image"),
        (lambda file: file.parent.rename(file.parent.with_name("Sea")), "the folders .*Sea"),
        (lambda file: [other.unlink() for other in file.parent.iterdir()], "River"),
    ],
)
def test_damaged_eurosat_teaches(tmp_path, spoil, message):
    write_eurosat(tmp_path / "2750")
    spoil(tmp_path / "2750" / "River" / "River_7.jpg")
    with pytest.raises(DataError, match=message):
        load("eurosat", tmp_path)


def test_sets_are_looked_for_in_the_data_folders_and_then_in_the_one_given(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBIASPL_DATA", str(tmp_path / "data"))
    known = SETS["eurosat"]
    folders = [tmp_path / "given" / "EuroSAT", tmp_path / "home" / ".cache" / "debiaspl", tmp_path / "data"]
    for folder in folders:  # the last one comes first; the one given may be the set's own
        (folder / "2750" / "River").mkdir(parents=True)
        assert find(known, data_folders(), tmp_path / "given" / "EuroSAT") == folder / "2750"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("cifar10", "cifar-10-batches-py/data_batch_1"),
        ("cifar100", "cifar-100-python/train"),
        ("mnist", "mnist/train-images-idx3-ubyte.gz"),
        ("mnist", "MNIST/raw/t10k-labels-idx1-ubyte.gz"),
        ("imagenet", "imagenet/train/n01440764/a.JPEG"),
    ],
)
def test_a_set_is_found_by_any_of_its_files_and_then_checked(tmp_path, name, file):
    assert find(SETS[name], [tmp_path]) is None
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_bytes(b"not it")
    place = find(SETS[name], [tmp_path])
    assert place is not None
    assert place == tmp_path / file or place in (tmp_path / file).parents
    assert find(SETS[name], [], place) == place
    with pytest.raises(DataError, match=str(place)):
        load(name, tmp_path)


def test_a_set_that_is_nowhere_teaches(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DEBIASPL_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match=r"Get it with: debiaspl data get cifar10$") as error:
        load("cifar10", tmp_path / "given")
    looked = f"{tmp_path}/data, {tmp_path}/home/.cache/debiaspl (does not exist), {tmp_path}/given (does not exist)."
    assert f"cifar-10-batches-py in {looked}" in str(error.value)
    with pytest.raises(DataError, match=r"register at https://image-net.org"):
        load("imagenet")


def write_imagenet(folder: Path) -> None:
    for part, files in (("train", ("b.JPEG", "a.JPEG", "notes.txt")), ("val", ("c.JPEG",))):
        for name in ("n00000002", "n00000001"):
            (folder / part / name).mkdir(parents=True)
            for file in files:
                (folder / part / name / file).touch()


def test_imagenet_is_listed(tmp_path):
    write_imagenet(tmp_path / "imagenet")
    parts = read_imagenet(tmp_path / "imagenet", classes=2)
    train, val = parts.train, parts.test
    names = ("n00000001", "n00000002")
    assert list(train.ids) == [f"train/{name}/{file}" for name in names for file in ("a.JPEG", "b.JPEG")]
    assert (train.labels.tolist(), val.labels.tolist()) == ([0, 0, 1, 1], [0, 1])
    assert train.classes == val.classes == names
    assert train.images.shape == (4, 3, 224, 224)
    with pytest.raises(DataError, match=r"train has 2 class folders, expected 1000"):
        load("imagenet", tmp_path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "train" / "n00000003").mkdir(), "train has 1 class folder without an image"),
        (lambda folder: (folder / "val" / "n00000001").rename(folder / "val" / "x"), "val has 2 class folders"),
        (lambda folder: (folder / "val").rename(folder / "valid"), "val does not exist"),
    ],
)
def test_damaged_imagenet_teaches(tmp_path, spoil, message):
    write_imagenet(tmp_path / "imagenet")
    spoil(tmp_path / "imagenet")
    with pytest.raises(DataError, match=message):
        read_imagenet(tmp_path / "imagenet", classes=2)


REAL = Path(os.environ.get("DEBIASPL_DATA", "nowhere"))


@pytest.mark.skipif(find(SETS["cifar10"], [REAL]) is None, reason="a real set is not in $DEBIASPL_DATA")
def test_the_real_cifar10():
    read = load("cifar10", REAL)
    assert (read.train.counts(), read.test.counts()) == ([5000] * 10, [1000] * 10)
    assert (read.train.classes[0], read.test.ids[0]) == ("airplane", "domestic_cat_s_000907.png")
    # The channel means that the literature normalises with.
    means = read.train.images.float().mean((0, 2, 3)) / 255
    assert means.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)


def test_they_are_scikit_learns():
    theirs = load_digits()
    images = torch.from_numpy(np.rint(theirs.images * (255 / 16)).astype(np.uint8))[:, None]
    labels = torch.from_numpy(theirs.target).long()
    test, train = FewLabels(50, False).split(labels, seed=0)
    found = formats.digits()
    for part, places in ((found.train, train), (found.test, test)):
        assert torch.equal(part.images, images[places])
        assert torch.equal(part.labels, labels[places])
    assert found.test.counts() == [50] * 10
    found.train.images.zero_()  # what is read once is nobody's to change
    found.train.labels.zero_()
    assert torch.equal(formats.digits().train.images, images[train])
    assert torch.equal(formats.digits().train.labels, labels[train])


@pytest.mark.slow
def test_neither_scikit_learn_nor_scipy_is_imported():
    program = (
        "import sys; from debiaspl.data import load; assert len(load('digits').train) == 1297; "
        "print([name for name in ('sklearn', 'scipy') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout == "[]\n"


def test_without_it_they_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    formats._digits_columns.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'debiaspl\[digits\]'"):
        formats.digits()


@pytest.mark.parametrize("side", [4, 12])
def test_a_set_in_memory_is_given_another_size_as_files_are(side, tmp_path):
    plain, sized = open_data("digits"), open_data("digits", image_size=side)
    assert tuple(sized.train.images.shape[1:]) == tuple(sized.test.images.shape[1:]) == (1, side, side)
    assert torch.equal(sized.train.labels, plain.train.labels)
    for place in (0, 100):
        Image.fromarray(plain.train.images[place, 0].numpy()).save(tmp_path / "one.png")
        assert torch.equal(sized.train.images[place], decode(tmp_path / "one.png", (side, side), 1))
    assert torch.equal(open_data("digits", image_size=8).train.images, plain.train.images)
