"""The examples: short, on public names alone, and they print what their docstrings say, within a wide margin, as other
processors round differently."""

import ast
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
LINES = 70


def shares(text: str) -> list[float]:
    """Every percentage in a text."""
    return [float(found) / 100 for found in re.findall(r"([\d.]+) %", text)]


def said_by(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_there_are_seven_and_the_table_names_each():
    assert len(FILES) == 7
    table = re.findall(r"^\| \[(.*?)\]\((.*?)\)", (EXAMPLES / "README.md").read_text(), flags=re.M)
    assert sorted(table) == sorted((file.name, file.name) for file in FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_short_and_uses_public_names_alone(file):
    text = file.read_text()
    assert len(text.splitlines()) <= LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("debiaspl") for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("debiaspl"):
            assert node.module.count(".") <= 1


@pytest.mark.slow(seconds=15)
def test_plain_loop(capsys):
    plain, plain_shares, debiased, debiased_shares = map(shares, said_by("plain_loop.py", capsys))
    assert [len(plain), len(debiased)] == [4, 4]  # the mean, and three seeds
    assert debiased[0] > plain[0] - 0.02
    assert debiased_shares[0] < plain_shares[0] + 0.02
    for found in plain_shares, debiased_shares:
        assert len(found) == 10
        assert sum(found) == pytest.approx(1, abs=0.06)


@pytest.mark.slow
def test_own_tensors(capsys):
    counts, accuracy, predicted, probabilities = said_by("own_tensors.py", capsys)
    assert counts == "40 labels and 1,160 images without a label"
    assert shares(accuracy)[0] > 0.8
    assert re.fullmatch(r"predicted:( \d){5}  truth:( \d){5}", predicted)
    assert len(re.findall(r"[01]\.\d\d", probabilities)) == 5


@pytest.mark.slow
def test_own_algorithm(capsys):
    *said, last = said_by("own_algorithm.py", capsys)
    assert last == "One seed and 100 steps show how it is done, not which is better."
    pairs = [["fixmatch", "debiaser"], ["Agreement", "none"], ["Agreement", "debiaser"]]
    assert [[line.split()[0], line.split()[3]] for line in said] == pairs
    assert min(shares(line)[0] for line in said) > 0.3


@pytest.mark.slow
def test_own_correction(capsys):
    *said, last = said_by("own_correction.py", capsys)
    assert last == "One seed and 100 steps show how it is done, not which is better."
    assert [line.split()[0] for line in said] == ["none", "debiaser", "Centred"]
    assert min(shares(line)[0] for line in said) > 0.3


@pytest.mark.slow
def test_own_network(capsys):
    accuracy, width = said_by("own_network.py", capsys)
    assert shares(accuracy)[0] > 0.3
    assert width == "features of width 32"


@pytest.mark.slow
def test_scikit_learn(capsys):
    counts, supervised, debiased, new = said_by("scikit_learn.py", capsys)
    assert counts == "4 labels, 516 pieces without a label"
    assert shares(debiased)[0] > shares(supervised)[0]
    assert shares(debiased)[0] > 0.9
    assert new.startswith("new images: temple, flower")


def test_zero_shot(capsys):
    methods, *rows, new = said_by("zero_shot.py", capsys)
    assert methods.split() == ["zero-shot", "debiased", "trained"]
    assert max(map(len, rows)) <= 80
    columns = zip(*map(shares, rows), strict=True)
    zero_shot, debiased, trained = ((accuracy, max(found)) for accuracy, *found in columns)
    assert zero_shot[0] < debiased[0] < trained[0]
    assert zero_shot[1] > debiased[1] > trained[1]  # dog is predicted too often, less and less
    assert new == "a new image of a ship: ship"
