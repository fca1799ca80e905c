"""Commands and programs in processes of their own that need not import torch: forks of a process that has.

Such a process has its own folder, environment, output and exit status, and knows nothing of the test or of other
commands, but starts in a tenth of a second instead of two. That a command also starts from nothing is for
``subprocess``: test_public.py, the tests of signals and those of torchrun.
"""

import atexit
import os
import runpy
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

from tests.processes import descendants, forking

DEADLINE = 300.0
"""Seconds."""


def command(
    *arguments: object, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """``debiaspl`` with these arguments."""
    return _ended(None, list(map(str, arguments)), folder, environment)


def program(
    code: str, *arguments: object, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """``python -W error -c`` with these arguments."""
    return _ended(code, list(map(str, arguments)), folder, environment)


def torchrun(
    typed: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """``python -m torch.distributed.run ...``, whose ranks start from nothing as always."""
    before, arguments = list(typed[:3]), typed[3:]
    assert before == [sys.executable, "-m", "torch.distributed.run"]
    code = "from torch.distributed.run import main; main()"
    return program(code, *arguments, folder=folder, environment=environment)


def _ended(
    code: str | None, arguments: list[str], folder: Path | None, environment: Mapping[str, str] | None
) -> CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as place:
        said = Path(place) / "stdout", Path(place) / "stderr"
        given = code, arguments, str(folder or Path.cwd()), dict(environment or os.environ), *map(str, said)
        process = forking().Process(target=_run, args=given)
        process.start()
        assert process.pid is not None
        try:
            process.join(DEADLINE)
            assert process.exitcode is not None, f"{arguments} has not ended after {DEADLINE:g} s"
        finally:
            for one in [process.pid, *descendants(process.pid)] if process.is_alive() else []:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            process.join()
        return CompletedProcess(arguments, process.exitcode, *(path.read_text(encoding="utf-8") for path in said))


def _run(
    code: str | None, arguments: list[str], folder: str, environment: dict[str, str], stdout: str, stderr: str
) -> None:
    for number, path in ((1, stdout), (2, stderr)):
        written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(written, number)
        os.close(written)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, encoding="utf-8", closefd=False) for number in (1, 2))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        if code is None:
            sys.argv = ["debiaspl", *arguments]
            runpy.run_module("debiaspl", run_name="__main__", alter_sys=True)
        else:
            warnings.simplefilter("error")
            sys.argv = ["-c", *arguments]
            sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
    finally:
        atexit._run_exitfuncs()  # a process of multiprocessing leaves without
