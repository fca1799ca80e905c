"""What the files of a run must hold for its report. They may hold more: other versions write other things too."""

from typing import Any

NUMBERS = ("worst_recall", "pseudo_imbalance", "pseudo_accuracy")
VECTORS = ("pseudo_labels", "prior", "marginal")


def check_config(config: Any) -> None:
    """Refuse what tells no recipe."""
    recipe = config.get("recipe") if isinstance(config, dict) else None
    if not isinstance(recipe, dict):
        raise ValueError("it tells no recipe")
    for name in ("steps", "seed"):
        _expect(_is_whole(recipe.get(name)), f"{name!r} of its recipe is {recipe.get(name)!r}, expected a whole number")
    for name in ("about", "name"):
        _expect(isinstance(recipe.get(name), str), f"{name!r} of its recipe is {recipe.get(name)!r}, expected text")
    parts = {name: part for name, part in recipe.items() if isinstance(part, dict)}
    for name, part in parts.items():
        whole = isinstance(part.get("name"), str) and isinstance(part.get("settings"), dict)
        _expect(whole, f"{name!r} of its recipe is not a name with settings")
    for name in ("algorithm", "correction"):
        _expect(name in parts, f"its recipe has no {name}")
    _expect("data" in recipe, "its recipe has no data")


def check_log(log: list[Any]) -> None:
    """Refuse lines that are no records of steps, or that count different classes."""
    sizes = set()
    for number, record in enumerate(log, 1):
        line = f"line {number:,}"
        _expect(isinstance(record, dict), f"{line} is no record of a step")
        _expect(_is_whole(record.get("step")), f"{line} tells no step")
        losses = record.get("losses")
        _expect(isinstance(losses, dict) and all(map(_is_number, losses.values())), f"{line} tells no losses")
        _expect(_is_number(record.get("seconds")), f"{line} tells no seconds")
        for name in VECTORS:
            vector = record.get(name) or []
            _expect(_is_numbers(vector), f"{name!r} in {line} is not a list of numbers")
            sizes |= {len(vector)} - {0}
        _expect(len(sizes) < 2, f"{line} speaks of another number of classes than the lines above it")


def check_results(results: Any) -> None:
    """Refuse what is not the measurement of a run that has ended."""
    found = {list: "a list", str: "text", type(None): "null"}.get(type(results), "a number")
    _expect(isinstance(results, dict), f"it holds {found}, expected names with numbers")
    _expect(_is_number(results.get("accuracy")), f"'accuracy' is {results.get('accuracy')!r}, expected a number")
    images = results.get("test")
    _expect(_is_whole(images) and images > 0, f"'test' is {images!r}, expected the number of test images")
    for name in NUMBERS:
        value = results.get(name)
        _expect(value is None or _is_number(value), f"{name!r} is {value!r}, expected a number")
    recall, confusion = results.get("recall"), results.get("confusion")
    _expect(isinstance(recall, list) and len(recall) > 0, "'recall' is not a list with a number per class")
    _expect(all(value is None or _is_number(value) for value in recall), "'recall' is not a number for each class")
    square = isinstance(confusion, list) and [len(row) if _is_numbers(row) else 0 for row in confusion]
    _expect(square == [len(recall)] * len(recall), "'confusion' is not a square of numbers with a row per class")
    _expect("labels" not in results or _is_numbers(results["labels"]), "'labels' is not a list of numbers")


def _expect(holds: Any, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))
