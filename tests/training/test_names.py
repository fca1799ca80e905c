"""The training loop knows no algorithm by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import debiaspl
from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS

ROOMS = Path(debiaspl.__file__).parent


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
    forbidden = {*every, *(algorithm.__name__ for algorithm in every.values()), *modules} - {"graph", "algorithm"}
    found = [
        f"{path.name}:{line}: {name}"
        for path in sorted((ROOMS / "training").rglob("*.py"))
        for name, line in names_in(path)
        if name in forbidden
    ]
    assert found == []
