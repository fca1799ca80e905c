"""``python -m tests.faults --minutes 10``: faults and bad files until the time is over; prints tried and failed."""

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

import torch
from hypothesis import HealthCheck, Phase, Verbosity, given, seed as seeded, settings

from tests.faults.attacked import ATTACKED
from tests.faults.injector import FAULTS, KILL
from tests.faults.readers import READERS, refused_or_read
from tests.faults.scenarios import LONG, SCENARIOS, Scenario, tried

ALL = READERS | ATTACKED
EXAMPLES = 150
"""Bad files of one reader, at the most, before the next one has its turn."""


class Tally:
    """What was tried, what failed, and how the first of each kind failed."""

    def __init__(self) -> None:
        self.tried: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.read: dict[str, int] = {}

    def add(self, name: str, read: bool = False) -> None:
        """One more; whether it was a file that its reader took, where it was one."""
        self.tried[name] = self.tried.get(name, 0) + 1
        self.read[name] = self.read.get(name, 0) + read

    def fail(self, name: str, what: str) -> None:
        self.failed[name] = self.failed.get(name, 0) + 1
        if self.failed[name] <= 3:
            print(f"FAILED {name}: {what}", flush=True)

    def show(self) -> None:
        """Of bad files, some are good enough to be read; the others are refused."""
        print(f"{'what':<22}{'tried':>10}{'read':>10}{'failed':>8}")
        for name, number in self.tried.items():
            print(f"{name:<22}{number:>10,}{self.read[name]:>10,}{self.failed.get(name, 0):>8,}")
        sums = (sum(found.values()) for found in (self.tried, self.read, self.failed))
        print("{:<22}{:>10,}{:>10,}{:>8,}".format("all", *sums))


def operations(name: str, scenario: Scenario, fault: str, tally: Tally) -> Iterator[None]:
    """Every operation of a scenario fails once."""
    for at in count():
        with tempfile.TemporaryDirectory() as folder:
            try:
                more = tried(scenario, Path(folder) / "here", fault, at)
            except Exception as error:
                tally.fail(f"{fault} {name}", f"operation {at}: {_short(error)}")
                more = at < 500
        if not more:
            return
        tally.add(f"{fault} {name}")
        yield


def bad_files(name: str, number: int, tally: Tally) -> None:
    """A batch of bad files for one reader; another one for every number."""
    reader = ALL[name]

    @seeded(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(reader.files)
    def bad_file(files: dict[str, bytes]) -> None:
        read = False
        try:
            with tempfile.TemporaryDirectory() as folder:
                read = refused_or_read(reader, Path(folder), files)
        finally:
            tally.add(f"read {name}", read)

    try:
        bad_file()
    except* Exception as group:
        for error in group.exceptions:
            tally.fail(f"read {name}", f"seed {number}: {_short(error)}")


def _short(error: BaseException) -> str:
    where = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in where if "debiaspl" in frame.filename] or list(where)
    return f"{type(error).__name__}: {str(error)[:200]} ({Path(ours[-1].filename).name}:{ours[-1].lineno})"


def torture(seconds: float, kills_alone: bool = False, seed: int | None = None) -> Tally:
    """Operations first, all of them once; then bad files and disturbed runs in turn until the time is over."""
    tally, deadline = Tally(), time.monotonic() + seconds
    faults = [KILL] if kills_alone else list(FAULTS)
    for name, scenario in SCENARIOS.items():
        for fault in faults:
            for _ in operations(name, scenario, fault, tally):
                pass
    runs = cycle(step for fault in faults for step in [operations("train", LONG["train"], fault, tally)])
    started = int(time.time()) if seed is None else seed
    for number in count(started):
        if kills_alone or time.monotonic() >= deadline:
            return tally
        for name in ALL:
            if time.monotonic() < deadline:
                bad_files(name, number, tally)
        for _ in range(6):
            next(next(runs), None)
    raise AssertionError("numbers do not end")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; 10 unless given")
    parser.add_argument("--kills", action="store_true", help="only kill a process at every operation, once")
    parser.add_argument("--seed", type=int, help="of the first bad files; the time unless given")
    told = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
    tally = torture(60 * told.minutes, told.kills, told.seed)
    tally.show()
    sys.exit(bool(tally.failed))


if __name__ == "__main__":
    main()
