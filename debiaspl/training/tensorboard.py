"""TensorBoard event files, beside the log of a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from debiaspl._extras import extra


def summary_writer() -> Any:
    """The class that writes event files. Raises ImportError if TensorBoard is not installed."""
    missing = "--tensorboard needs TensorBoard. Install it with: pip install 'debiaspl[tensorboard]'"
    return extra("torch.utils.tensorboard", missing).SummaryWriter


@contextmanager
def event_files(folder: Path, number: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes the numbers of a record of the log. Events after step ``number`` are hidden, because a
    resumed run writes them again."""
    with summary_writer()(str(folder), purge_step=number + 1) as writer:

        def write(record: dict[str, Any]) -> None:
            for name, value in numbers(record).items():
                writer.add_scalar(name, value, record["step"])
            writer.flush()

        yield write


MOST = 20
"""Longest list, with a number per class, that is written: each becomes a chart."""


def numbers(record: dict[Any, Any], prefix: str = "") -> dict[str, float]:
    """All numbers of a record by name, those in groups and short lists as ``losses/labeled`` and ``prior/3``."""
    flat: dict[str, float] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) or (isinstance(value, list) and len(value) <= MOST):
            inner: dict[Any, Any] = value if isinstance(value, dict) else dict(enumerate(value))
            flat |= numbers(inner, f"{name}/")
        elif isinstance(value, int | float) and name != "step":
            flat[name] = value
    return flat
