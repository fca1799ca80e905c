"""One road: what has one place in the package is defined there, and done nowhere else.

Each table below names a thing and its place. To hold a further one, add a line.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

import debiaspl
from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.cli import app
from debiaspl.recipes import RECIPES

HOME = Path(debiaspl.__file__).parent

DEFINED_ONCE = {
    "write_whole": "files/whole.py",
    "open_locked": "files/whole.py",
    "digest_of_file": "files/whole.py",
    "cell": "data/text.py",
    "read_label_table": "data/label_table.py",
    "match_files": "data/label_table.py",
    "shown": "data/text.py",
    "composed": "data/text.py",
    "list_folder": "data/listing.py",
    "list_images": "data/listing.py",
    "read_listing": "data/lazy.py",
    "left_in_files": "data/lazy.py",
    "read_predictions": "predictions/read.py",
    "read_class_names": "data/text.py",
    "in_order": "data/lazy.py",
    "predict_set": "models/predict.py",
    "train_as": "training/loop.py",
}
"""Functions -> the module that defines them. No other module has a function of that name."""

DONE_ONLY_IN = {
    "csv.reader csv.DictReader csv.writer csv.DictWriter": {
        "data/text.py",
        "predictions/read.py",  # which row is wrong
    },
    "os.replace os.rename Path.replace Path.rename": {"files/whole.py"},
    "tempfile.NamedTemporaryFile tempfile.mkstemp": set(),
    "fcntl.flock fcntl.lockf": {"files/whole.py"},
    "unicodedata.normalize": {"data/text.py"},
    "hashlib.file_digest": {"files/whole.py"},
    "typer.echo": {"cli/terminal.py"},  # names from untrusted files are made harmless there
    "os.scandir os.walk Path.rglob Path.walk": {"data/listing.py"},
    "FolderFiles": {"data/lazy.py", "deploy/saved.py"},
    "LazyImages": {"data/lazy.py", "deploy/saved.py"},  # photos and tar shards; files that are named
    "in_order": {"data/packed.py", "data/lazy.py", "models/predict.py"},
    "predict_set": {
        "deploy/saved.py",
        "estimator/classifier.py",
        "training/classifier.py",
        "training/evaluate.py",
        "training/monitor.py",
    },
    "step": {"training/loop.py", "training/step.py"},  # with a folder and without
}
"""Calls, by any of these names -> the modules that make them; all of these do."""

STILL_DOUBLE = {"Block", "NormActivate", "Predictions"}
"""Names of two classes each. No name is to be added."""


@cache
def nodes() -> dict[str, list[ast.AST]]:
    paths = {path.relative_to(HOME).as_posix(): path for path in sorted(HOME.rglob("*.py"))}
    return {name: list(ast.walk(ast.parse(path.read_bytes()))) for name, path in paths.items()}


@cache
def called() -> dict[str, set[str]]:
    return {path: set(calls(found)) for path, found in nodes().items()}


def homes(kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> dict[str, list[str]]:
    """Name -> the modules that define it."""
    found = defaultdict(list)
    for path, each in nodes().items():
        for node in each:
            if isinstance(node, kind):
                found[node.name].append(path)
    return found


def calls(found: Iterable[ast.AST]) -> Iterator[str]:
    """Names of what is called: ``csv.reader``; a method that only paths have is ``Path.rename``."""
    for node in found:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name):
                yield f"{node.func.value.id}.{node.func.attr}"
            # Text is replaced by something; a path takes one argument and no name, as dataclasses.replace wants.
            if node.func.attr != "replace" or (len(node.args) == 1 and not node.keywords):
                yield f"Path.{node.func.attr}"


@pytest.mark.parametrize(("name", "place"), DEFINED_ONCE.items())
def test_a_function_is_defined_once(name, place):
    assert homes(ast.FunctionDef)[name] == [place]


@pytest.mark.parametrize(("names", "places"), DONE_ONLY_IN.items())
def test_a_thing_is_done_in_its_place_alone(names, places):
    assert {path for path, found in called().items() if found & set(names.split())} == places


def test_a_class_has_its_name_for_itself():
    double = {name for name, places in homes(ast.ClassDef).items() if len(places) > 1 and name[0] != "_"}
    assert double == STILL_DOUBLE


def test_the_page_names_files_that_are_there_and_every_room():
    page = (HOME.parent / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`(\w+/\w+(?:/\w+)*\.py)`", page))
    assert len(named) > 30
    assert {path for path in named if not ((HOME / path).is_file() or (HOME.parent / path).is_file())} == set()
    table = page.split("## Which file to open")[1].split("## ")[0]
    assert all(re.search(r"`[\w/]+(\.py|/)`", row) for row in re.findall(r"^\| (?!for|---).*$", table, re.MULTILINE))
    rooms = {path.name for path in HOME.iterdir() if (path / "__init__.py").is_file()}
    assert set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE)) == rooms


def test_commands_and_recipes_do_not_grow_back_unseen():
    commands = typer.main.get_command(app).commands
    assert 10 < len(commands) <= 14, list(commands)
    assert 10 < len(RECIPES) <= 40, list(RECIPES)


CHOOSES_AN_ALGORITHM = {"training/recipe.py", "training/parts.py", "training/method.py"}
"""Defaults, and names of methods and parts."""


def test_the_training_loop_knows_no_algorithm_by_name():
    known = {*ALGORITHMS, *HINTED, *STARTS} - {"graph"}  # also a first classifier
    for name in (name for name in nodes() if name.startswith("training/") and name not in CHOOSES_AN_ALGORITHM):
        for node in nodes()[name]:
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("debiaspl.algorithms."), name
            assert not (isinstance(node, ast.Constant) and node.value in known), name
