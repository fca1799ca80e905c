"""Class names as they are typed."""

from pathlib import Path

import pytest

from debiaspl.data import DataError
from debiaspl.label.classes import read_classes, split_classes


@pytest.mark.parametrize(
    ("typed", "classes"),
    [
        ("owl,heron", ("owl", "heron")),
        (" owl , grey heron ,", None),
        ('owl,"heron, grey"', ("owl", "heron, grey")),
        ('owl, "the ""big"" one"', ("owl", 'the "big" one')),
        ('owl,5" pipe', ("owl", '5" pipe')),
        ('"two\nlines",owl', ("two\nlines", "owl")),
        ("Eule,Мышь,鳥", ("Eule", "Мышь", "鳥")),
        ("Ba\u0308r,Wolf", ("Bär", "Wolf")),
        ("owl", None),
        ("owl,owl", None),
        ("owl,unlabeled", None),
        ('owl,"heron', None),
        ("owl,\udce4", None),
        ("", None),
    ],
)
def test_names_with_commas_between(typed, classes):
    if classes is not None:
        assert split_classes(typed) == classes
        return
    with pytest.raises(DataError, match=r"--classes .*\. Expected .*"):
        split_classes(typed)


def test_a_file_of_names_takes_them_as_they_stand(tmp_path):
    file: Path = tmp_path / "classes.txt"
    file.write_bytes('\ufeffowl, snowy\r\n\r\n"quoted"\n鳥\n'.encode())
    assert read_classes(file) == ("owl, snowy", '"quoted"', "鳥")
    file.write_bytes(b"owl\nB\xe4r\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_classes(file)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_classes(tmp_path / "missing.txt")
