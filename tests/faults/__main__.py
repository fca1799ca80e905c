"""``python -m tests.faults --minutes 10``: faults and bad files until the time is over; prints tried and failed."""

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
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
TRIED, READ, FAILED = Counter[str](), Counter[str](), Counter[str]()
"""Of bad files, some are good enough to be read; the others are refused."""


def failed(name: str, what: str, error: BaseException) -> None:
    FAILED[name] += 1
    if FAILED[name] <= 3:
        where = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in where if "debiaspl" in frame.filename] or list(where)
        line = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        print(f"FAILED {name}: {what}: {type(error).__name__}: {str(error)[:200]} ({line})", flush=True)


def show() -> None:
    print(f"{'what':<22}{'tried':>10}{'read':>10}{'failed':>8}")
    for name, number in (*TRIED.items(), ("all", TRIED.total())):
        read, wrong = (found.total() if name == "all" else found[name] for found in (READ, FAILED))
        print(f"{name:<22}{number:>10,}{read:>10,}{wrong:>8,}")


def operations(name: str, scenario: Scenario, fault: str) -> Iterator[None]:
    """Every operation of a scenario fails once."""
    for at in count():
        with tempfile.TemporaryDirectory() as folder:
            try:
                more = tried(scenario, Path(folder) / "here", fault, at)
            except Exception as error:
                failed(f"{fault} {name}", f"operation {at}", error)
                more = at < 500
        if not more:
            return
        TRIED[f"{fault} {name}"] += 1
        yield


def bad_files(name: str, number: int) -> None:
    """A batch of bad files for one reader; another one for every number."""
    how = {"max_examples": EXAMPLES, "deadline": None, "database": None, "verbosity": Verbosity.quiet}

    @seeded(number)
    @settings(**how, phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck))
    @given(ALL[name].files)
    def bad_file(files: dict[str, bytes]) -> None:
        TRIED[f"read {name}"] += 1
        with tempfile.TemporaryDirectory() as folder:
            READ[f"read {name}"] += refused_or_read(ALL[name], Path(folder), files)

    try:
        bad_file()
    except* Exception as group:
        for error in group.exceptions:
            failed(f"read {name}", f"seed {number}", error)


def torture(seconds: float, kills_alone: bool = False, seed: int | None = None) -> None:
    """Operations first, all of them once; then bad files and disturbed runs in turn until the time is over."""
    deadline, faults = time.monotonic() + seconds, [KILL] if kills_alone else list(FAULTS)
    for name, scenario in SCENARIOS.items():
        for fault in faults:
            for _ in operations(name, scenario, fault):
                pass
    runs = cycle(step for fault in faults for step in [operations("train", LONG["train"], fault)])
    for number in count(int(time.time()) if seed is None else seed):
        if kills_alone or time.monotonic() >= deadline:
            return
        for name in ALL:
            if time.monotonic() < deadline:
                bad_files(name, number)
        for _ in range(6):
            next(next(runs), None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; 10 unless given")
    parser.add_argument("--kills", action="store_true", help="only kill a process at every operation, once")
    parser.add_argument("--seed", type=int, help="of the first bad files; the time unless given")
    told = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
    torture(60 * told.minutes, told.kills, told.seed)
    show()
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
