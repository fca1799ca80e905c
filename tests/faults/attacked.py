"""What a second attack found, as bad files: features and chosen.json behind links and pipes, labels that are no
classes, photos that were changed before a run is resumed."""

import os
import tempfile
from functools import cache
from pathlib import Path

import torch
from hypothesis import strategies as st

from debiaspl.data import DataError, ImageSet, Task
from debiaspl.data.lazy import left_in_files
from debiaspl.data.listing import list_folder
from debiaspl.data.task import digest
from debiaspl.data.text import means_no_value
from debiaspl.deploy.saved import CHOSEN, chosen_folder
from debiaspl.encoders import features_of
from debiaspl.photos.survey import survey
from tests.data.photos import jpeg, patch, read_folder
from tests.encoders.test_feature_folder import Flat
from tests.faults.readers import LINK, PIPE, Files, Reader, altered, as_json, deep, mutated, values


def odd(content: bytes) -> st.SearchStrategy[bytes]:
    """A file that is damaged, a link or a pipe."""
    return st.one_of(mutated(content), st.just(PIPE), st.just(LINK + content), deep)


# Kept features: whatever lies in their folder, they are those of the images
def images() -> ImageSet:
    pixels = torch.arange(4 * 3 * 3 * 3, dtype=torch.int64).to(torch.uint8).view(4, 3, 3, 3)
    return ImageSet(pixels, torch.tensor([0, 1, 0, 1]), ("a", "b"), tuple("wxyz"))


@cache
def good_features() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        features_of(images(), Flat(), folder)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {f"features/{path.relative_to(folder)}": path.read_bytes() for path in files}


@st.composite
def feature_files(draw: st.DrawFn) -> Files:
    files = dict(good_features())
    for name in draw(st.lists(st.sampled_from(sorted(files)), max_size=2)):
        files[name] = draw(odd(good_features()[name]))
    return files


def _read_features(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as clean:
        expected = features_of(images(), Flat(), clean).values
    assert torch.equal(features_of(images(), Flat(), folder / "features").values, expected)


# Labels that no class has
ODD = ("nan", "NaN ", "NA", "None", "null", "?", "-1", "todo", "Cat", "cat;dog", "", "ant")
label_tables = st.dictionaries(st.integers(0, 11), st.sampled_from(ODD), max_size=2).map(
    lambda odd: "\n".join(["file_name,label", *(f"{n}.jpg,{odd.get(n, ('cat', 'dog')[n % 2])}" for n in range(12))])
)


def _read_labels(folder: Path) -> None:
    for number in range(12):
        (folder / f"{number}.jpg").write_bytes(jpeg(patch(number % 2, number, 8)))
    photos = survey(folder, None)
    assert not any(map(means_no_value, photos.classes))


# Photos that were changed, swapped or damaged
PHOTOS = {f"{name}/{number}.jpg": jpeg(patch(number, number)) for number in range(3) for name in ("x", "y")}
changed_photos = st.dictionaries(
    st.sampled_from(sorted(PHOTOS)),
    st.sampled_from([*PHOTOS.values(), jpeg(patch(0, 9)), jpeg(patch(1, 5, 16)), b"", b"\xff\xd8"]),
    max_size=3,
).map(lambda changes: {f"photos/{name}": content for name, content in (PHOTOS | changes).items()})


def _digests(folder: Path) -> list[str]:
    kinds = (lambda: left_in_files(list_folder(folder), 16), lambda: read_folder(folder, (16, 16))[0])
    return [digest(Task.of_given(kind())) for kind in kinds]


@cache
def first_digests() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in PHOTOS.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_bytes(content)
        return _digests(Path(folder))


def _read_changed(folder: Path) -> None:
    for name in PHOTOS:
        os.utime(folder / "photos" / name, (1, 1))  # a copy of the folder is the same folder
    same = all((folder / "photos" / name).read_bytes() == content for name, content in PHOTOS.items())
    try:
        now = _digests(folder / "photos")
    except DataError:
        assert not same
        raise
    assert [one == other for one, other in zip(now, first_digests(), strict=True)] == [same, same]


chosen = (
    (altered({"folder": "taught"}) | values).map(as_json) | odd(as_json({"folder": "taught"})) | st.just(b" " * 20_000)
)
ATTACKED: dict[str, Reader] = {
    "chosen": Reader(chosen.map(lambda made: {CHOSEN: made}), chosen_folder),
    "kept features": Reader(feature_files(), _read_features),
    "class names": Reader(label_tables.map(lambda made: {"labels.csv": made.encode()}), _read_labels),
    "changed photos": Reader(changed_photos, _read_changed),
}
