"""Class names as they are typed, stand in a file or come in a list."""

import pytest

from debiaspl.data import DataError
from debiaspl.data.text import check_class_names, class_names_in, read_class_names


@pytest.mark.parametrize(
    ("typed", "classes"),
    [
        ("owl,heron", ("owl", "heron")),
        (" river, forest ,sea or lake", ("river", "forest", "sea or lake")),
        ('owl,"heron, grey"', ("owl", "heron, grey")),
        ('owl, "the ""big"" one"', ("owl", 'the "big" one')),
        ('owl,5" pipe', ("owl", '5" pipe')),
        ("Eule,Мышь,鳥", ("Eule", "Мышь", "鳥")),
        ("\u5730\u3000\u56f3,x", ("\u5730\u3000\u56f3", "x")),
        ("Ba\u0308r,Wolf", ("Bär", "Wolf")),
        ("a" * 300 + "," + "b" * 300, ("a" * 300, "b" * 300)),
        ("a\0b,c", ("a\0b", "c")),
    ],
)
def test_names_with_commas_between(typed, classes):
    assert read_class_names(typed) == classes


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (" owl , grey heron ,", "--classes: class 3 of 3 has no name. Expected names separated by single commas"),
        ("owl", "--classes has one class, 'owl'. Expected two or more names, separated by commas or one per line"),
        ("nowhere.txt", "--classes is 'nowhere.txt', and there is no such file"),
        ("lists/birds", "--classes is 'lists/birds', and there is no such file"),
        ("", "--classes has no class. Expected two or more"),
        ("a,b,a", "--classes has the class 'a' twice"),
        ("owl,owl", "--classes has the class 'owl' twice"),
        ("Forest,forest", r"--classes has the class 'forest' twice"),
        ("cafe\u0301,caf\u00e9", "has the class 'café' twice"),
        ("owl,unlabeled", "contains 'unlabeled'. Expected names .* which means no label"),
        ('"two\nlines",owl', r"contains 'two\\nlines'. Expected names on one line in UTF-8"),
        ("owl,\udce4", r"contains '\\udce4'. Expected names on one line in UTF-8"),
        ('owl,"heron', "--classes is .* Expected names separated by commas. Put .* in quotes"),
    ],
)
def test_what_cannot_be_class_names(typed, message):
    with pytest.raises(DataError, match=message):
        read_class_names(typed)


def test_a_file_of_names_takes_them_as_they_are(tmp_path):
    file = tmp_path / "classes.txt"
    file.write_bytes('\ufeffowl, snowy\r\n\r\n"quoted"\n鳥\n'.encode())
    assert class_names_in(file) == read_class_names(str(file)) == ("owl, snowy", '"quoted"', "鳥")
    file.write_bytes(b"owl\nB\xe4r\n")
    with pytest.raises(DataError, match=r"not UTF-8"):
        read_class_names(str(file))
    with pytest.raises(DataError, match="cannot be read: No such file"):
        class_names_in(tmp_path / "missing.txt")


def test_a_list_of_names():
    assert check_class_names([" river ", "lake"]) == ("river", "lake")
    with pytest.raises(DataError, match="expected a list of names"):
        check_class_names("river")
    with pytest.raises(DataError, match=r"'river' twice"):
        check_class_names(["river", "river"])
    with pytest.raises(DataError, match="expected a list of names"):
        check_class_names([1, 2])
    assert check_class_names(["Forest", "forest"], alike=True) == ("Forest", "forest")
    with pytest.raises(DataError, match="'Forest' twice"):
        check_class_names(["Forest", "forest", "Forest"], alike=True)
