"""Milliseconds of one eager training step of a CIFAR-10 recipe on this machine's GPU: python benchmarks/step_eager.py

Needs CIFAR-10 (debiaspl data get cifar10). Prints JSON.
"""

import json
import platform
import sys
import time

import torch

from debiaspl.data import PROTOCOLS, Task, open_data
from debiaspl.recipes import recipe
from debiaspl.training.step import Step

WARM_UP, MEASURED = 20, 100


def milliseconds(step: Step, work: str) -> float:
    call = step if work == "step" else step._draw
    for number in range(WARM_UP):
        call(number)
    torch.cuda.synchronize()
    started = time.perf_counter()
    for number in range(WARM_UP, WARM_UP + MEASURED):
        call(number)
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started) / MEASURED


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("this benchmark measures a GPU, and PyTorch finds none here")
    measured: dict[str, object] = {}
    for name, joint in (("joint", "true"), ("separate", "false")):
        chosen = recipe("cifar10-lt100-10pct").with_settings([f"joint={joint}"])
        protocol = PROTOCOLS[chosen.protocol.name](**chosen.protocol.settings)
        step = Step(chosen, Task.of(open_data(chosen.data), protocol, chosen.seed), torch.device("cuda"))
        measured[f"{name}_ms"] = round(milliseconds(step, "step"), 2)
        measured["draw_ms"] = round(milliseconds(step, "draw"), 2)
    measured["peak_memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    measured |= {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "python": platform.python_version()}
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
