"""Reads torchrun's environment variables. Does not import torch: the command line needs it before it loads anything."""

import json
import os
import time
from pathlib import Path

from debiaspl.files import FileError, write_text


def rank() -> int | None:
    """Rank of this process among those that torchrun started; None if it is the only one."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    return int(os.environ["RANK"]) if several else None


def tell(error: str) -> None:
    """Write the error to torchrun's error file, so that torchrun's final summary shows the reason."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or not Path(path).parent.is_dir():
        return
    more = {"py_callstack": error, "timestamp": str(int(time.time()))}
    try:
        # torchrun may kill this process at any moment and cannot read a partial file.
        write_text(Path(path), json.dumps({"message": {"message": error, "extraInfo": more}}))
    except FileError:
        return  # the error was already printed on the terminal
