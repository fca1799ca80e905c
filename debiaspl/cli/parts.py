"""Which part of the work is that of this process: ``--part``, or what a scheduler says."""

import os
import re

from debiaspl._torchrun import rank


def part_of(text: str | None) -> tuple[int, int]:
    """Number of the part, from 0, and the number of parts; (0, 1) for everything."""
    environment = os.environ
    if text is not None:
        parsed = re.fullmatch(r"(\d*)/(\d+)", text)
        if parsed is None:
            raise ValueError(f"--part is {text}, expected I/N, such as 2/8, or /N in an indexed Job of Kubernetes.")
        if not parsed[1] and "JOB_COMPLETION_INDEX" not in environment:
            raise ValueError(f"--part is {text}, and JOB_COMPLETION_INDEX is not set. Name the part too: 1{text}.")
        part = int(parsed[1]) - 1 if parsed[1] else int(environment["JOB_COMPLETION_INDEX"]), int(parsed[2])
    elif (number := rank()) is not None:
        part = number, int(environment["WORLD_SIZE"])
    elif "SLURM_ARRAY_TASK_ID" in environment:
        first, step = (
            int(environment.get(f"SLURM_ARRAY_TASK_{name}", other)) for name, other in (("MIN", 0), ("STEP", 1))
        )
        number, rest = divmod(int(environment["SLURM_ARRAY_TASK_ID"]) - first, max(step, 1))
        part = -1 if rest else number, int(environment["SLURM_ARRAY_TASK_COUNT"])
    else:
        part = 0, 1
    if not 0 <= part[0] < part[1]:
        raise ValueError(f"the part is {part[0] + 1} of {part[1]}, expected 1 to {part[1]}. Name it: --part I/N.")
    return part
