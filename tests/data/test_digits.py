"""The digits: those of scikit-learn's loader, without the seconds that importing it takes."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from debiaspl.data import formats, open_data
from debiaspl.data.decode import decode
from debiaspl.data.splits import FewLabels


def expected() -> tuple[torch.Tensor, torch.Tensor]:
    found = load_digits()
    grey = np.rint(found.images * (255 / 16)).astype(np.uint8)
    return torch.from_numpy(grey)[:, None], torch.from_numpy(found.target).long()


def test_they_are_scikit_learns():
    images, labels = expected()
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
