"""Templates and arrays: what users write, and what they are told when it cannot be."""

import numpy as np
import pytest
import torch

from debiaspl.data import DataError, ImageSet
from debiaspl.encoders.templates import TEMPLATES, filled, read_templates
from debiaspl.predictions import PredictionsError
from debiaspl.zeroshot.arrays import ArraysTeacher


def images(count: int = 4) -> ImageSet:
    ids = tuple(f"{number}.jpg" for number in range(count))
    return ImageSet(torch.zeros(count, 3, 2, 2, dtype=torch.uint8), torch.full((count,), -1), ("a", "b"), ids)


def test_templates_are_ours_or_come_from_a_file(tmp_path):
    assert list(TEMPLATES) == ["digits", "general", "imagenet", "name", "satellite", "texture"]
    assert len(set(TEMPLATES["imagenet"])) == 80
    assert filled(["a {}.", "{} b"], "{0}") == ["a {0}.", "{0} b"]
    file = tmp_path / "templates.txt"
    file.write_text("a photo of {}.\n\n  {} from above\n")
    assert read_templates(str(file)) == ("a photo of {}.", "{} from above")
    for text, noun in (("\n \n", "empty"), ("a photo of {}.\na photo\n", "template 2")):
        file.write_text(text)
        with pytest.raises(DataError, match=noun):
            read_templates(str(file))
    with pytest.raises(DataError, match="satelite"):
        read_templates("satelite")


def _with_label(lines: list[str]) -> list[str]:
    """As ``debiaspl predict --probabilities`` writes them."""
    return [line.replace(",", ",a,", 1) for line in lines]


def test_probabilities_are_in_the_order_of_the_images_or_those_of_embeddings(tmp_path):
    table = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    np.save(tmp_path / "p.npy", table)
    names = np.array(["3.jpg", "2.jpg", "1.jpg", "0.jpg"])
    np.savez(tmp_path / "p.npz", probabilities=table[::-1], file_name=names)
    lines = [f"{name},{row[1]},{row[0]}" for name, row in zip(names, table[::-1], strict=True)]
    (tmp_path / "p.csv").write_text("\n".join(["file_name,b,a", *lines]) + "\n")
    (tmp_path / "q.csv").write_text("\n".join(["file_name,label,probability:b,probability:a", *_with_label(lines)]))
    for name in ("p.npy", "p.npz", "p.csv", "q.csv"):
        found, skipped = ArraysTeacher(tmp_path / name).predict(images(), ("a", "b"), ("{}",))
        np.testing.assert_allclose(found.numpy(), table, rtol=1e-6)
        assert skipped == {}
    rng = np.random.default_rng(0)
    own, known = rng.normal(size=(4, 5)), rng.normal(size=(2, 5))
    np.savez(tmp_path / "e.npz", image_embeddings=own, class_embeddings=known, temperature=0.5)
    found, _ = ArraysTeacher(tmp_path / "e.npz").predict(images(), ("a", "b"), ("{}",))
    for row, image in enumerate(own):
        cosines = [image @ other / np.sqrt(image @ image) / np.sqrt(other @ other) for other in known]
        powers = np.exp(np.array(cosines) / 0.5)
        np.testing.assert_allclose(found[row].numpy(), powers / powers.sum(), rtol=1e-5)


EMBEDDED = {"image_embeddings": np.ones((4, 5)), "class_embeddings": np.ones((2, 5))}


@pytest.mark.parametrize(
    ("arrays", "noun"),
    [
        ({"image_embeddings": np.ones((4, 5)), "class_embeddings": np.ones((2, 6))}, "width"),
        ({"image_embeddings": np.full((4, 5), np.nan), "class_embeddings": np.ones((2, 5))}, "NaN"),
        ({"image_embeddings": np.ones((4, 5))}, "probabilities"),
        ({"probabilities": np.ones((4, 2))}, "sum"),
        ({"probabilities": np.full((4, 2), 0.5 + 1j)}, "shape"),
        ({"probabilities": np.full((4, 2), "much")}, "cannot be read"),
        ({**EMBEDDED, "temperature": "low"}, "cannot be read"),
        ({**EMBEDDED, "temperature": [1, 2]}, "cannot be read"),
        ({"probabilities": np.ones((4, 3)) / 3}, "3 classes"),
        ({"probabilities": np.ones((3, 2)) / 2}, "3 rows"),
        ({"probabilities": np.ones((1, 2)) / 2, "file_name": np.array(["0.jpg"])}, "1.jpg, 2.jpg, 3.jpg"),
    ],
)
def test_arrays_that_cannot_be(tmp_path, arrays, noun):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=noun):
        ArraysTeacher(tmp_path / "bad.npz").predict(images(), ("a", "b"), ("{}",))


def test_files_that_hold_no_arrays(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "pickled.npy").write_bytes(b"")
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)  # would execute code when it is read
    for name in ("text.npz", "pickled.npy", "objects.npy"):
        with pytest.raises(PredictionsError, match="Write it with numpy"):
            ArraysTeacher(tmp_path / name).predict(images(), ("a", "b"), ("{}",))
    for name in ("missing.npz", "missing.npy", "missing.csv"):
        with pytest.raises((PredictionsError, OSError), match="No such file"):
            ArraysTeacher(tmp_path / name).predict(images(), ("a", "b"), ("{}",))
    (tmp_path / "t.csv").write_text("file_name,a\n0.jpg,1\n")
    with pytest.raises(DataError, match="has no column b; it has file_name, a"):
        ArraysTeacher(tmp_path / "t.csv").predict(images(), ("a", "b"), ("{}",))
    (tmp_path / "t.csv").write_text("file_name,a,b\n0.jpg,1,much\n")
    with pytest.raises(DataError, match="cannot be read: could not convert"):
        ArraysTeacher(tmp_path / "t.csv").predict(images(), ("a", "b"), ("{}",))
