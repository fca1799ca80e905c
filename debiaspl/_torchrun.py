"""What torchrun says in the environment; without torch, for the command line asks before it loads anything."""

import json
import os
import time
from pathlib import Path

from debiaspl.files import FileError, write_text


def rank() -> int | None:
    """Of this process among those that torchrun has started together; None where it is the only one."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    return int(os.environ["RANK"]) if several else None


def tell(error: str) -> None:
    """torchrun ends in a traceback of its own and a list of who has failed: let the list, at the very end, say why."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or not Path(path).parent.is_dir():
        return
    more = {"py_callstack": error, "timestamp": str(int(time.time()))}
    try:
        # torchrun may end this process at any moment, and cannot bear half a file.
        write_text(Path(path), json.dumps({"message": {"message": error, "extraInfo": more}}))
    except FileError:
        return  # it has been said on the terminal
