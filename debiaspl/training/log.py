"""The output of a run while it trains: lines of JSON for programs, and one progress line for people."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from debiaspl._checks import extra
from debiaspl._printable import printable, prose
from debiaspl.files import open_own, parse_json
from debiaspl.training.process import RunError

_logger = logging.getLogger("debiaspl")
ERASE = "\r\x1b[0K"
"""Go to the beginning of the line, and erase it."""


def parse_log(text: str, path: Path) -> list[dict[str, Any]]:
    """The records of a log. An incomplete last line, left by a kill, is ignored."""
    *lines, _ = text.split("\n")
    return [_record(line, number, path) for number, line in enumerate(lines, 1)]


def _record(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = parse_json(line)
        if type(record["step"]) is int:
            return record
    except (KeyError, TypeError, ValueError):
        pass
    raise RunError(f"line {number:,} of {path} is damaged: no record of a step. Remove it, and use --resume.")


class Log(AbstractContextManager["Log"]):
    """``log.jsonl``. Its length is in the checkpoint: a resumed run drops the lines after it. Of a shorter file, the
    complete lines are kept."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        """All records of the run, those of its earlier parts first."""
        with self._plain_errors(), ExitStack() as opened:
            # Not through a link, because it is truncated. Unbuffered: nothing is written on closing.
            self._file = opened.enter_context(open(open_own(path), "ab", buffering=0))
            size = os.fstat(self._file.fileno()).st_size
            before = os.pread(self._file.fileno(), max(min(length, size), 0), 0)
            if len(before) < length:
                _logger.warning("%s is shorter than the checkpoint says: some lines are lost. The run continues.", path)
                before = before[: before.rfind(b"\n") + 1]
            self.records += parse_log(before.decode(errors="replace"), path)
            self._file.truncate(len(before))
            self._file.seek(len(before))
            opened.pop_all()

    def write(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        with self._plain_errors():
            line = (json.dumps(record) + "\n").encode()
            while line:  # a nearly full disk accepts a part before it fails
                line = line[self._file.write(line) :]

    def length(self) -> int:
        """Bytes so far, synced to disk: a checkpoint must not count lines that a power cut can remove."""
        with self._plain_errors():
            os.fsync(self._file.fileno())
            return self._file.tell()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(f"could not write {self.path}: {error.strerror or error}.") from error

    def __exit__(self, *error: object) -> None:
        self._file.close()


@dataclass
class ProgressLine(AbstractContextManager["ProgressLine"]):
    """Shows where a run is on one line of a terminal. Elsewhere it prints a line a minute."""

    name: str
    first_step: int
    steps: int
    part: str = ""
    """Which of several runs this is: ``run 2 of 8``."""
    after: float = 0.0
    """What the remaining time includes after this run, in its steps."""
    shown: bool = True
    """If not, only warnings are printed."""
    unit: str = "step"
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _started: float = field(default_factory=time.monotonic, init=False)
    _printed: float = field(default_factory=time.monotonic, init=False)
    _health: list[str] = field(default_factory=list, init=False)
    _drawn: bool = field(default=False, init=False)

    def show(self, step: int, record: Mapping[str, Any]) -> None:
        elapsed = time.monotonic() - self._started
        left = elapsed / max(step - self.first_step, 1) * (self.steps - step + self.after)
        parts = [f"{self.name} {self.unit} {step:,}/{self.steps:,}"]
        parts += [f"{name} {value:.3f}" for name, value in record["losses"].items()]
        if "kept" in record:
            parts.append(f"kept {record['kept']:.0%}")
        if "distance" in record:
            parts.append(f"off shares {record['distance']:.0%}")
        if "health" in record:
            measured = record["health"]
            self._health = [f"rank {measured['rank']:.0f}", f"spread {measured['spread']:.2f}"]
        parts += self._health
        if "warning" in record:
            self.tell(f"warning: {self.name}, step {step:,}: {record['warning']['fact']} {record['warning']['todo']}")
        parts.append(f"{_clock(left)} left" + (f", {self.part}" if self.part else ""))
        self.say(*parts)

    def tell(self, line: str) -> None:
        """Print a permanent line, with or without a terminal; the progress line continues below it."""
        self._erase()
        print(prose(line, self.stream), file=self.stream, flush=True)

    def say(self, *parts: str) -> None:
        """Show these parts on one line, without those before the last one that do not fit. There is room left for
        ``^C``, which a terminal adds when it is typed: a full line would then stay."""
        if not self.shown:
            return
        if not self.stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
            if time.monotonic() - self._printed >= 60:
                self._printed = time.monotonic()
                self.tell("  ".join(parts))
            return
        from rich.cells import cell_len
        from rich.console import Console

        columns, kept = Console(file=self.stream).width, list(parts)
        while len(kept) > 1 and cell_len("  ".join(kept)) > columns - len("^C") - 1:
            del kept[-2]
        # Not with rich.live, which hides the cursor: a killed run would leave the terminal without one.
        print(ERASE + printable("  ".join(kept))[:columns], end="", file=self.stream, flush=True)
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            print(ERASE, end="", file=self.stream, flush=True)

    def __exit__(self, *error: object) -> None:
        self._erase()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


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
"""Longest list, with a number per class, that is written: each number becomes a chart."""


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
