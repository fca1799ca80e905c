"""Numbered files of a job, shared among the workers of a Ray cluster. Ray schedules, shows progress and repeats what is
lost with a worker; what is in a file is the same as without it."""

from collections.abc import Callable, Sequence
from typing import Any

from debiaspl._checks import extra

Work = Callable[[int], None]
"""Makes the file of this number."""


def run_on_ray(make: Callable[[], Work], numbers: Sequence[int]) -> None:
    """Call ``make`` in every worker, and what it returns for each number, in one of them. The cluster is RAY_ADDRESS;
    without it, this machine."""
    ray, data = (extra(name, "--on ray needs Ray: pip install 'debiaspl[ray]'.") for name in ("ray", "ray.data"))
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    gpus, cpus = (int(ray.cluster_resources().get(kind, 0)) for kind in ("GPU", "CPU"))
    nodes = sum(node["Alive"] for node in ray.nodes())
    # A node needs a CPU beside those of its workers, or nothing reads the numbers.
    workers = max(1, min(gpus or cpus - nodes, len(numbers)))

    class Worker:
        def __init__(self) -> None:
            self.work = make()

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            for number in batch["item"]:
                self.work(int(number))
            return batch

    every = data.from_items([int(number) for number in numbers], override_num_blocks=max(len(numbers), 1))
    how: dict[str, Any] = {"num_gpus": 1} if gpus else {"num_cpus": 1}
    done = every.map_batches(Worker, batch_size=1, compute=data.ActorPoolStrategy(size=workers), **how)
    if numbers and sum(len(batch["item"]) for batch in done.iter_batches(batch_size=None)) != len(numbers):
        raise RuntimeError("Ray has returned without all files. Run the same command again.")
