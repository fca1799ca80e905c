"""The house keeps its rooms apart: an idea fits one screen, and the training loop knows no algorithm by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import debiaspl
from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS

ROOMS = Path(debiaspl.__file__).parent


@pytest.mark.parametrize("room", ["algorithms", "debias"])
def test_one_idea_is_one_file(room):
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOMS / room).glob("*.py")}
    assert lengths
    assert {file: length for file, length in lengths.items() if length > 250} == {}


# A recipe's default is the paper's; the strong views of FixMatch's paper have its name.
NAMED_FOR_A_REASON = {
    ("recipe.py", "algorithm"),
    ("recipe.py", "strong"),
    ("parts.py", "STRONG"),
    ("method.py", "_OTHER_NAMES"),
}


def names_in(path: Path) -> Iterator[tuple[str, int]]:
    """Every name, attribute, import and text in a file's code with its line; not its docstrings and comments."""
    tree = ast.parse(path.read_text())
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any((path.name, getattr(target, "id", None)) in NAMED_FOR_A_REASON for target in targets):
            skipped |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno
        elif isinstance(node, ast.Name | ast.Attribute):
            yield (node.id if isinstance(node, ast.Name) else node.attr), node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for part in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]:
                words = () if part == "collections.abc" else part.split(".")  # Python's own, and no algorithm
                yield from ((word, node.lineno) for word in words)


def test_training_names_no_algorithm():
    every = {**ALGORITHMS, **HINTED, **STARTS}
    modules = {algorithm.__module__.rpartition(".")[2] for algorithm in every.values()}
    # graph is a package too, and a first classifier; that algorithm is found by its class and its module.
    forbidden = {*every, *(algorithm.__name__ for algorithm in every.values()), *modules} - {"graph"}
    found = [
        f"{path.name}:{line}: {name}"
        for path in sorted((ROOMS / "training").rglob("*.py"))
        for name, line in names_in(path)
        if name in forbidden
    ]
    assert found == []


def test_a_named_algorithm_would_be_found(tmp_path):
    """The test of the test above."""
    (tmp_path / "code.py").write_text(
        '"""fixmatch in a docstring."""\n'
        "from debiaspl.algorithms.uda import UDA  # fixmatch in a comment\n"
        "strong = 'fixmatch'\n"
        "if isinstance(step.algorithm, algorithms.MixMatch) or name == 'crest+':\n    pass\n"
    )
    found = {name for name, _ in names_in(tmp_path / "code.py")}
    assert {"uda", "UDA", "fixmatch", "MixMatch", "crest+"} <= found
    (tmp_path / "recipe.py").write_text("class Recipe:\n    strong: Choice = Choice('fixmatch')\n    other = 'uda'\n")
    assert {name for name, _ in names_in(tmp_path / "recipe.py")} == {"uda", "other"}
