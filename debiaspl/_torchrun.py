"""What torchrun says in the environment; without torch, for the command line asks before it loads anything."""

import os


def rank() -> int | None:
    """Of this process among those that torchrun has started together; None where it is the only one."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    return int(os.environ["RANK"]) if several else None
