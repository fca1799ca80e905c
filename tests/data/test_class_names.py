"""Class names as they are typed, stand in a file or come in a list."""

import re
from pathlib import Path

import pytest

from debiaspl.data import DataError
from debiaspl.data.text import check_class_names, class_names_in, read_class_names
from debiaspl.predictions import parse_classes

PACKAGE = Path(__file__).parents[2] / "debiaspl"


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
        (
            "nowhere.txt",
            "--classes is 'nowhere.txt', and there is no such file. Expected names separated by commas, or",
        ),
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


def test_what_is_found_may_differ_in_capitals_where_it_is_allowed():
    assert check_class_names(["Forest", "forest"], alike=True) == ("Forest", "forest")
    with pytest.raises(DataError, match="'Forest' twice"):
        check_class_names(["Forest", "forest", "Forest"], alike=True)


@pytest.mark.parametrize("typed", ['owl,"heron, grey"', "Forest,forest", "owl,unlabeled", "owl,,heron"])
def test_an_audit_reads_them_by_the_same_rules(typed):
    """Which also takes a number of classes."""
    found = []
    for read in (read_class_names, parse_classes):
        try:
            found.append(read(typed))
        except DataError as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert parse_classes("3") == ("0", "1", "2")


def test_there_is_no_other_reader():
    """Every command that has --classes hands it to the one function, and nobody else normalises names."""
    commands = [path for path in (PACKAGE / "cli").glob("*.py") if re.search(r"\bclasses: Annotated", path.read_text())]
    assert {path.stem for path in commands} == {"audit", "label", "zeroshot"}
    for path in commands:
        assert re.search(r"\b(read_class_names|parse_classes|named_classes)\(classes\)", path.read_text()), path.name
    normalising = {path.name for path in PACKAGE.rglob("*.py") if "unicodedata.normalize" in path.read_text()}
    assert normalising == {"text.py"}
