"""Runs a function on several ranks: processes on this machine that talk through gloo.

The processes are started when first needed and used again, for starting one takes longer than most tests. Each call has
a process group of its own.
"""

import atexit
import datetime
import gc
import pickle
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.processes import forking
from tests.tiers import check_processes_are_allowed

DEADLINE = 120.0
"""Seconds for one call, the start of the processes included."""

_workers: list[tuple[BaseProcess, Connection]] = []


def on_ranks(count: int, function: Callable[..., Any], *arguments: Any, deadline: float = DEADLINE) -> list[Any]:
    """``function(*arguments)`` on each of ``count`` ranks: what they return, by rank. The function is a module's own.

    An error on any rank is raised here, with that rank's traceback, and ends all of them at once.
    """
    check_processes_are_allowed()
    _start(count)
    until = time.monotonic() + deadline
    with tempfile.TemporaryDirectory() as folder:
        task = pickle.dumps((function, arguments))
        for rank, (_, line) in enumerate(_workers[:count]):
            line.send((rank, count, str(Path(folder) / "meet"), deadline, task))
        results: dict[int, Any] = {}
        try:
            while len(results) < count:
                waiting = {line: rank for rank, (_, line) in enumerate(_workers[:count]) if rank not in results}
                ready = connection.wait(list(waiting), max(0.0, until - time.monotonic()))
                if not ready:
                    raise TimeoutError(f"ranks {sorted(waiting.values())} gave no answer within {deadline:g} s.")
                for line in ready:
                    results[waiting[line]] = _answer(line, waiting[line])
        except BaseException:
            end()  # the others may wait for each other: nobody is left in the middle of a message
            raise
    return [results[rank] for rank in range(count)]


def _answer(line: Any, rank: int) -> Any:
    try:
        failed, answer = pickle.loads(line.recv_bytes())
    except EOFError:
        raise RuntimeError(f"the process of rank {rank} has died.") from None
    if failed:
        raise RuntimeError(f"rank {rank}:\n{answer}")
    return answer


def _start(count: int) -> None:
    context = forking()
    while len(_workers) < count:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there,), daemon=True)
        process.start()
        there.close()
        _workers.append((process, here))


@atexit.register
def end() -> None:
    """End the processes; a later call starts new ones."""
    while _workers:
        process, line = _workers.pop()
        process.kill()
        process.join()
        line.close()


def _work(line: Connection) -> None:
    import torch
    import torch.distributed.nn.functional  # before there is a group: see training/group.py
    from torch import distributed

    torch.set_num_threads(1)
    warnings.simplefilter("error")  # as pytest has it
    gc.freeze()  # what is imported stays: to look through all of torch after every call took longer than most calls
    while True:
        try:
            rank, count, meet, deadline, task = line.recv()
        except EOFError:
            return
        wait = datetime.timedelta(seconds=deadline)
        try:
            distributed.init_process_group("gloo", f"file://{meet}", wait, world_size=count, rank=rank)
            distributed.barrier()  # one that leaves before another has met it looks like one that has died
            function, arguments = pickle.loads(task)
            answer = pickle.dumps((False, function(*arguments)))
            gc.collect()  # a DistributedDataParallel that outlives its group may hang when it goes
            distributed.destroy_process_group()
        except BaseException:
            answer = pickle.dumps((True, traceback.format_exc()))
        line.send_bytes(answer)
