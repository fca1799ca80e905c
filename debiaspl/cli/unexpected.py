"""Unexpected errors are printed as two lines; the traceback goes to a file."""

import os
import platform
import secrets
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path

from debiaspl._processes import rank
from debiaspl._version import __version__


def explain(error: Exception) -> bool:
    """Print the error and where its traceback is. Returns False where the traceback should be printed instead: for
    errors in a user's own file, and under torchrun, where only the logs are left."""
    parts = sys.modules.get("debiaspl.training.parts")  # if it is not loaded, no user file is
    if rank() is not None or (parts is not None and parts.went_through(error)):
        return False
    kind, said = type(error).__name__, (str(error).strip().splitlines() or ["no message"])[0]
    no_memory = isinstance(error, MemoryError) or kind == "OutOfMemoryError" or "DefaultCPUAllocator" in said
    if no_memory:
        lines = [f"error: not enough memory: {said}", "Use smaller batches or images, or fewer workers."]
    else:
        try:
            place = _write(error)
        except OSError:
            return False
        lines = [
            f"error: unexpected {kind}: {said}",
            f"This is a bug in debiaspl. Please report it in the project's issue tracker, with this file: {place}",
        ]
    from debiaspl.cli.terminal import say

    for line in lines:
        say(line, err=True)
    return True


def _write(error: Exception) -> Path:
    """Write the traceback, readable by this user only: it contains names of folders and files."""
    place = Path(tempfile.gettempdir()) / f"debiaspl-error-{time.strftime('%Y%m%d')}-{secrets.token_hex(6)}.txt"
    about = f"debiaspl {__version__}, Python {platform.python_version()}, {sys.platform} {platform.machine()}"
    text = "\n".join([about, shlex.join(["debiaspl", *sys.argv[1:]]), "", *traceback.format_exception(error)])
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return place
