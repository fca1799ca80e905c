"""What a run says while it goes on: lines of JSON for programs, one moving line for a person."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from debiaspl._printable import printable
from debiaspl.files import open_own
from debiaspl.training.errors import RunError

if TYPE_CHECKING:
    from rich.console import Console

MORE = "..."
"""In place of what is cut off, in letters that any terminal has."""


_told = logging.getLogger("debiaspl")


class Log:
    """``log.jsonl``: a line per ``log_every`` steps. Its length is in the checkpoint, so that a resumed run first drops
    the lines that came after it. If it is shorter, lines are lost: the whole ones that are left stay."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        with self._plain_errors(), ExitStack() as opened:
            # Not through a link: a run that is resumed cuts its log. Nothing is left to be written when it is closed.
            self._file = opened.enter_context(open(open_own(path), "ab", buffering=0))
            if os.fstat(self._file.fileno()).st_size < length:
                _told.warning("%s is shorter than the checkpoint says: lines of it are lost. The run goes on.", path)
                length = path.read_bytes().rfind(b"\n") + 1
            self._file.truncate(length)
            self._file.seek(length)
            opened.pop_all()

    def write(self, record: Mapping[str, Any]) -> None:
        with self._plain_errors():
            line = (json.dumps(record) + "\n").encode()
            while line:  # a disk that is nearly full takes a part before it refuses
                line = line[self._file.write(line) :]

    def length(self) -> int:
        """Bytes so far, all of them on the disk: a checkpoint must not count lines that a power cut can take away."""
        with self._plain_errors():
            os.fsync(self._file.fileno())
            return self._file.tell()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(f"could not write {self.path}: {error.strerror or error}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class NoLog(Log):
    """Of a rank that is not the first, whose log is that of the run."""

    def __init__(self) -> None:
        pass

    def write(self, record: Mapping[str, Any]) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class ProgressLine:
    """Step, losses, share kept, how far the prior is from the true shares, how the features are and time left, on one
    line of a terminal. Elsewhere it is silent, but for warnings."""

    def __init__(
        self,
        name: str,
        first_step: int,
        steps: int,
        stream: TextIO | None = None,
        unit: str = "step",
        part: str = "",
    ) -> None:
        """``part`` says of what the time is left, where this is one of several: ``run 2 of 8``."""
        self.name, self.first_step, self.steps = name, first_step, steps
        self.unit, self.part = unit, part
        self._stream = sys.stderr if stream is None else stream
        self._started = time.monotonic()
        self._health: list[str] = []
        self._console: Console | None = None

    def show(self, step: int, record: Mapping[str, Any]) -> None:
        elapsed = time.monotonic() - self._started
        left = elapsed / max(step - self.first_step, 1) * (self.steps - step)
        parts = [f"{self.name} {self.unit} {step:,}/{self.steps:,}"]
        parts += [f"{name} {value:.3f}" for name, value in record["losses"].items()]
        if "kept" in record:
            parts.append(f"kept {record['kept']:.0%}")
        if "distance" in record:
            parts.append(f"off shares {record['distance']:.0%}")
        if "health" in record:
            self._health = _health(record["health"])
        parts += self._health
        for kind in ("warning", "note"):
            if kind in record:
                self.tell(f"{kind}: {self.name}, step {step:,}: {record[kind]['fact']} {record[kind]['todo']}")
        parts.append(f"{_clock(left)} left" + (f" of {self.part}" if self.part else ""))
        self.say(*parts)

    def tell(self, line: str) -> None:
        """A line that stays, on a terminal and elsewhere; the moving one goes on below it."""
        if self._console is not None:
            self._replace_line("")
        print(line, file=self._stream, flush=True)

    def say(self, *parts: str) -> None:
        """These beside each other; of those that there is no room for, the last but one goes first, and of the last
        two the name, then all of the first: the end of the last one is what tells where in the whole this is."""
        if not self._stream.isatty():
            return
        from rich.cells import cell_len
        from rich.console import Console

        self._console = self._console or Console(file=self._stream)
        room, kept = self._console.width, list(parts)
        while len(kept) > 2 and cell_len("  ".join(kept)) > room:
            del kept[-2]
        if len(kept) == 2 and cell_len("  ".join(kept)) > room:
            first = self._shortened(kept[0], room - cell_len(kept[1]) - 2)
            kept = [first, kept[1]] if first else [kept[1]]
        self._replace_line("  ".join(kept))

    def _shortened(self, first: str, room: int) -> str:
        """With less of the name, or none; nothing where what follows it has no room: a cut number would mislead."""
        from rich.cells import cell_len, set_cell_size

        name, rest = (self.name, first[len(self.name) :]) if first.startswith(self.name) else (first, "")
        start = set_cell_size(name, max(room - cell_len(rest) - len(MORE), 0)).rstrip()
        if start:
            return start + MORE + rest
        rest = rest.lstrip(" ,")
        return rest if cell_len(rest) <= room else ""

    def _replace_line(self, text: str) -> None:
        """Not with ``rich.live``, which hides the cursor: a run that is killed would leave the terminal without one."""
        from rich.control import Control
        from rich.segment import ControlType
        from rich.text import Text

        if self._console is not None and not self._console.is_dumb_terminal:
            self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 0)))
            self._console.print(Text(printable(text)), end="", no_wrap=True, overflow="crop")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._console is not None:
            self._replace_line("")


def _health(measured: Mapping[str, Any]) -> list[str]:
    """The latest measurement, until the next one."""
    parts = [f"rank {measured['rank']:.0f}", f"overlap {measured['overlap']:.2f}"]
    return parts if measured["neighbours"] is None else [*parts, f"nn {measured['neighbours']:.0%}"]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
