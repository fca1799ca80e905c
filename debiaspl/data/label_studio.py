"""Labels as Label Studio exports them: "JSON", with whole tasks, and "JSON-MIN", with a flat object for each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from debiaspl.data.errors import DataError, shown

IMAGE = "image"
CHOICE = "choice"
"""What Label Studio's own template for classes calls the answer."""

Given = tuple[str, str, str]
"""Where in the file, which image, which label; empty for none."""


def read_tasks(table: Path, file_key: str | None, label_key: str | None) -> Iterator[Given]:
    """What people have chosen, a row for each choice. The keys are those of the file and of the choice, if not the
    usual ones."""
    try:
        tasks = json.loads(table.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{table} cannot be read: {error.strerror}. Expected an export of Label Studio.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{table} is not JSON: {error}. Expected an export of Label Studio, or a .csv file.") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{table} holds no list of tasks. Expected an export of Label Studio: JSON or JSON-MIN.")
    for number, task in enumerate(tasks, 1):
        place = f"task {number}"
        whole = isinstance(task.get("data"), dict)
        name = _file_of(task["data"] if whole else task, file_key, f"{table} has no image in {place}")
        labels = list(_of_task(task, label_key, table, place) if whole else _of_flat(task, label_key))
        if any(len(choices) != 1 for choices in labels):
            raise DataError(f"{table} has several choices for {shown([name])} in {place}, expected one class each.")
        for choices in labels or [[""]]:
            yield place, name, choices[0]


def choices_of(entries: Any) -> Iterator[tuple[dict[str, Any], str, list[str]]]:
    """Of annotations or predictions that were not cancelled: the entry, the question, and what was chosen."""
    for entry in _objects(entries):
        for result in [] if entry.get("was_cancelled") else _objects(entry.get("result")):
            value = result.get("value")
            choices = value.get("choices") if isinstance(value, dict) else None
            if isinstance(choices, list) and choices:
                yield entry, str(result.get("from_name")), [str(choice) for choice in choices]


def _file_of(data: dict[str, Any], key: str | None, found: str) -> str:
    keys = (key,) if key else ("file_name", IMAGE)
    name = next((data[each] for each in keys if isinstance(data.get(each), str) and data[each].strip()), None)
    if name is None:
        raise DataError(f"{found}; it has {shown(list(data)) or 'nothing'}. Say which it is: --file-column.")
    return str(name)


def _of_task(task: dict[str, Any], key: str | None, table: Path, place: str) -> Iterator[list[str]]:
    found = [(question, choices) for _, question, choices in choices_of(task.get("annotations"))]
    questions = sorted({question for question, _ in found})
    if key is None and len(questions) > 1:
        raise DataError(f"{table} answers {shown(questions)} in {place}. Say which is the class: --label-column.")
    return (choices for question, choices in found if key in (None, question))


def _of_flat(task: dict[str, Any], key: str | None) -> Iterator[list[str]]:
    value = next((task[each] for each in ((key,) if key else ("label", CHOICE)) if each in task), None)
    if isinstance(value, dict):
        value = value.get("choices")
    if value:
        yield [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _objects(entries: Any) -> list[dict[str, Any]]:
    """Those of a list, if it is one; anything else is passed over."""
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
