"""Labels exported by Label Studio: "JSON", with whole tasks, and "JSON-MIN", with one flat object each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from debiaspl.data.text import DataError, read_text, shown

IMAGE = "image"
CHOICE = "choice"
"""Name of the answer in Label Studio's own template for classification."""

Given = tuple[str, str, str]
"""Place in the file, image, and label; empty for no label."""


def read_tasks(table: Path, file_key: str | None, label_key: str | None) -> Iterator[Given]:
    """The answers, one row per choice; the keys are those of the file and of the choice, unless they are the usual."""
    text = read_text(table, "an export of Label Studio").removeprefix("\ufeff")
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{table} is not JSON: {error}. Expected an export of Label Studio, or a .csv file.") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError(f"{table} contains no list of tasks. Expected an export of Label Studio: JSON or JSON-MIN.")
    for number, task in enumerate(tasks, 1):
        place = f"task {number}"
        whole = isinstance(task.get("data"), dict)
        name = _file_of(task["data"] if whole else task, file_key, f"{table} has no image in {place}")
        try:
            labels = _of_task(task, label_key, table, place) if whole else _of_flat(task, label_key)
        except (AttributeError, TypeError) as error:
            raise DataError(f"{table} has another form in {place} than exports of Label Studio: {error}.") from error
        if any(len(choices) != 1 for choices in labels):
            raise DataError(f"{table} has several choices for {shown([name])} in {place}, expected one class each.")
        for choices in labels or [[""]]:
            yield place, name, choices[0]


def _file_of(data: dict[str, Any], key: str | None, found: str) -> str:
    keys = (key,) if key else ("file_name", IMAGE)
    name = next((data[each] for each in keys if isinstance(data.get(each), str) and data[each].strip()), None)
    if name is None:
        raise DataError(f"{found}; it has {shown(list(data)) or 'nothing'}. Name the right one: --column file=NAME.")
    return str(name)


def _of_task(task: dict[str, Any], key: str | None, table: Path, place: str) -> list[list[str]]:
    """The choices of each annotation that was not cancelled."""
    entries = [entry for entry in task.get("annotations") or () if not entry.get("was_cancelled")]
    results = [result for entry in entries for result in entry.get("result") or ()]
    answers = [(str(result.get("from_name")), (result.get("value") or {}).get("choices")) for result in results]
    found = [(question, list(map(str, choices))) for question, choices in answers if choices]
    questions = sorted({question for question, _ in found})
    if key is None and len(questions) > 1:
        raise DataError(f"{table} has the answers {shown(questions)} in {place}. Choose one with --column label=NAME.")
    return [choices for question, choices in found if key in (None, question)]


def _of_flat(task: dict[str, Any], key: str | None) -> list[list[str]]:
    value = next((task[each] for each in ((key,) if key else ("label", CHOICE)) if each in task), None)
    if isinstance(value, dict):
        value = value.get("choices")
    return [list(map(str, value)) if isinstance(value, list) else [str(value)]] if value else []
