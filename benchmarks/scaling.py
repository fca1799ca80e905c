"""Images per second of one process and of two, one thread each, on the same batch, in one run.

    python benchmarks/scaling.py --out results/scaling/cpu.json

The work: training steps of WRN-28-2 on noise of CIFAR-10's size, views, exchange of gradients and prior included. The
batch is that of all processes together, so that two of them do the same work as one. Both are started by torchrun as a
user would, and measured by turns, because a machine is not always equally fast; the efficiency is that of the median
rates.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.origin import origin, write
from debiaspl.training.settings import parse_settings

HERE = Path(__file__).resolve()


def measure(labeled: int, steps: int) -> None:
    """What each process does; the first one prints."""
    import torch

    from debiaspl.data import FewLabels, ImageSet, Task
    from debiaspl.data.images import TrainTest
    from debiaspl.recipes import recipe
    from debiaspl.training.group import joined
    from debiaspl.training.step import Step

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (2000, 3, 32, 32), dtype=torch.uint8, generator=generator)
    images = ImageSet(pixels, torch.arange(2000) % 10, tuple("abcdefghij"))
    settings = [f"labeled_batch={labeled}", f"unlabeled_batch={7 * labeled}"]
    chosen = parse_settings(recipe("cifar10-40"), settings)
    cpu = torch.device("cpu")
    with joined(cpu, 600) as group:
        step = Step(chosen, Task.of(TrainTest(images, images), FewLabels(4), 0), cpu)
        step(0)  # what is made once
        group.largest(0)
        start = time.perf_counter()
        for number in range(1, steps + 1):
            step(number)
        group.largest(0)
        seconds = time.perf_counter() - start
        if group.first:
            print(json.dumps({"seconds": seconds / steps, "images": 8 * labeled}))


def run(processes: int, labeled: int, steps: int) -> float:
    """Images per second."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    typed = [*torchrun, str(HERE), "--measure", "--labeled", str(labeled), "--steps", str(steps)]
    said = subprocess.run(typed, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, text=True, capture_output=True)
    found = json.loads(said.stdout)
    return float(found["images"] / found["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labeled", type=int, default=16, help="labeled images a step; seven times as many unlabeled")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.labeled, options.steps)
        return
    rates: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(options.turns):
        for processes in rates:
            rates[processes].append(run(processes, options.labeled, options.steps))
            print(f"turn {turn + 1}, {processes} process(es): {rates[processes][-1]:.2f} images/s", flush=True)
    one, two = (statistics.median(rates[processes]) for processes in (1, 2))
    print(f"1 process {one:.2f} images/s, 2 processes {two:.2f} images/s, efficiency {two / (2 * one):.1%}")
    if options.out is not None:
        found = {
            **origin(),
            "network": "WRN-28-2",
            "batch": [options.labeled, 7 * options.labeled],
            "images_per_second": {str(processes): values for processes, values in rates.items()},
            "efficiency": two / (2 * one),
        }
        write(options.out, found)


if __name__ == "__main__":
    main()
