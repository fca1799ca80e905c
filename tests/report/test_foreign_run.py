"""A run folder may be somebody else's: what its config names is not opened."""

import json

import pytest

from tests.data.photos import write_folder
from tests.typed import done


def foreign(folder, data):
    """A run that names a folder of the reader's."""
    (folder / "config.json").write_text(json.dumps({"recipe": {"data": data, "image_size": 8, "stream": False}}))
    rows = "".join(f"china/{number:04d}.jpg,china,0.9,flower\n" for number in range(10))
    (folder / "predictions.csv").write_text(
        f"file_name,label,confidence,truth\n{rows}flower/0000.jpg,flower,0.9,china\n"
    )
    return folder


@pytest.mark.parametrize("more", [(), ("--images", "{photos}")])
def test_pictures_are_shown_only_from_a_folder_that_was_named(tmp_path, more):
    photos = write_folder(tmp_path / "private")
    (tmp_path / "run").mkdir()
    run = foreign(tmp_path / "run", str(photos))
    options = [word.format(photos=photos) for word in more]
    done("audit", run, "--out", tmp_path / "page.html", *options)
    assert ("data:image/webp" in (tmp_path / "page.html").read_text()) == bool(more)
