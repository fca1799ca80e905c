"""Result files: those in ``results/`` of a checkout, or the copy of them that is part of the package.

The copy, ``results.json`` beside this module, keeps what ``debiaspl results`` and ``debiaspl repeat`` read of each
file. Its entries have paths of their own, below that of the copy: ``.../results.json/gain/cifar10-40/NAME.json``.
After results have changed, ``python benchmarks/copy_results.py`` writes it again.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from debiaspl.files import parse_json

COPY = Path(__file__).with_name("results.json")
FOLDERS = ("gain", "start", "long-tail")
"""Folders of results/ that are copied."""
SEARCH = "search"
"""In the names of files that say how settings were chosen; they are no results of a recipe."""
_KEPT = ("recipe", "command", "start_command", "device", "together")
_KEPT_OF_FOLD = ("fold", "accuracy", "seconds")


def home() -> Path:
    """``results/`` of the checkout, by the current folder or by the package; else the copy."""
    for parent in (Path.cwd(), Path(__file__).parents[2]):
        if (parent / "results" / "gain").is_dir():
            return parent / "results"
    return COPY


def json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder, and of the folders in it."""
    if folder.is_relative_to(COPY):
        return [COPY / name for name in _entries() if (COPY / name).is_relative_to(folder)]
    return sorted((*folder.glob("*.json"), *folder.glob("*/*.json")))


def read_result(path: Path) -> Any:
    """What a result file holds. Raises OSError, or ValueError where it is not JSON."""
    if path.is_relative_to(COPY):
        return _entries()[path.relative_to(COPY).as_posix()]
    named = path.as_posix().removeprefix("results/")
    if not path.exists() and named != path.as_posix() and named in _entries():
        return _entries()[named]  # as the tables of an installed package call it
    return parse_json(path.read_text())


def shown_path(path: Path) -> str:
    """A path as it is shown: that of an entry is the one it has in a checkout."""
    return f"results/{path.relative_to(COPY).as_posix()}" if path.is_relative_to(COPY) else str(path)


def copy_text(results: Path) -> str:
    """The text of the copy, made from ``results/``."""
    entries = {}
    for folder in FOLDERS:
        for path in json_files(results / folder):
            if SEARCH not in path.stem:
                whole = parse_json(path.read_text())
                kept = {key: whole[key] for key in _KEPT if key in whole}
                folds = [{key: fold[key] for key in _KEPT_OF_FOLD if key in fold} for fold in whole["folds"]]
                entries[path.relative_to(results).as_posix()] = kept | {"folds": folds}
    lines = [f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def _entries() -> dict[str, Any]:
    found: dict[str, Any] = parse_json(COPY.read_text())
    return found
