"""Several runs at once, one core each; on a GPU one after the other."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from debiaspl._processes import end_with_parent, safe_start, usable_cores
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.process import Interrupted, RunError, remember, stop_requests
from debiaspl.training.recipe import Recipe
from debiaspl.training.run import Run


@dataclass(frozen=True)
class Job:
    """A run to start or to resume."""

    recipe: Recipe
    out: Path
    device: str = "cpu"


def train_all(
    jobs: Sequence[Job],
    workers: int | None = None,
    watch: Callable[[int], None] = lambda steps: None,
    go_on: str = "the same call",
) -> list[dict[str, Any]]:
    """Train every job, with one thread each, and return their results in order. Started jobs are resumed, finished ones
    are not repeated.

    With one thread, the bits do not depend on the number of cores. ``watch`` is called several times a second with the
    number of steps that all jobs together have taken.
    """
    count = at_a_time(jobs, workers)
    with safe_start(), stop_requests() as stop_requested, _pool(count) as pool:
        futures: list[Future[dict[str, Any]]] = []
        while not (asked := stop_requested()):
            ended = [future for future in futures if future.done()]
            if len(ended) == len(jobs) or any(future.exception() for future in ended):
                break
            # One job per worker: jobs waiting in the pool could not be cancelled when the runs are stopped.
            while len(futures) < len(jobs) and sum(not future.done() for future in futures) < count:
                futures.append(pool.submit(_work, jobs[len(futures)]))
            watch(sum(_steps_taken(job, future) for job, future in zip_longest(jobs, futures)))
            time.sleep(0.1)
        if asked:
            raise Interrupted(f"Stopped; what was trained is saved. Resume with: {go_on}", asked)
        # If a job has failed, its error is raised here; others may not have ended.
        try:
            results = [future.result() for future in futures if future.done()]
        except BrokenProcessPool as error:
            found = "a worker process was killed. If the machine is short of memory, use fewer --jobs"
            raise RunError(f"{found}. What was trained is saved. Resume with: {go_on}") from error
        watch(sum(job.recipe.steps for job in jobs))
        return results


def at_a_time(jobs: Sequence[Job], workers: int | None) -> int:
    """By default one job for each core; on a GPU one, which fills it."""
    on_gpu = any(job.device != "cpu" for job in jobs)
    return min(workers or (1 if on_gpu else usable_cores()), len(jobs))


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose workers are gone afterwards; after an error, workers in a run are asked to save it and stop."""
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare_worker)
    try:
        yield pool
    except BaseException:
        for process in pool._processes.values():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _steps_taken(job: Job, future: Future[Any] | None) -> int:
    if future is not None and future.done():
        return job.recipe.steps  # do not read the log of a finished run ten times a second
    log = Run(job.out).log()
    return int(log[-1]["step"]) if log else 0


def _work(job: Job) -> dict[str, Any]:
    return train_as(RunOptions(resume=True, device=job.device, workers=0, shown=False), job.recipe, job.out)


def _prepare_worker() -> None:
    torch.set_num_threads(1)
    # A signal between two runs, or while one is loading, is not lost: the next loop sees it and stops.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, remember)
    # A killed parent cannot notify its workers; without this they would continue to write into folders that the next
    # attempt resumes.
    end_with_parent()
