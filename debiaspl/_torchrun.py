"""What torchrun says in the environment; without torch, for the command line asks before it loads anything."""

import json
import os
import time


def rank() -> int | None:
    """Of this process among those that torchrun has started together; None where it is the only one."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    return int(os.environ["RANK"]) if several else None


def tell(error: str) -> None:
    """torchrun ends in a traceback of its own and a list of who has failed: let the list, at the very end, say why."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    more = {"py_callstack": error, "timestamp": str(int(time.time()))}
    try:
        # torchrun may end this process at any moment, and cannot bear half a file.
        with open(f"{path}.partial", "w", encoding="utf-8") as file:
            json.dump({"message": {"message": error, "extraInfo": more}}, file)
        os.replace(f"{path}.partial", path)
    except OSError:
        return  # it has been said on the terminal
