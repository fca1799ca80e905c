"""Milliseconds of one training step, ours and written the usual way, in one run on one machine.

    python benchmarks/step.py --out results/speed/h200.json      # a GPU
    python benchmarks/step.py --device cpu                       # small batches, a ratio of images per second
    python benchmarks/step.py --compiled --out results/speed/compiled.json   # torch.compile instead of our kernels

The work: WRN-28-2, 64 labeled and 448 unlabeled images with a weak and a strong view each, augmentation included. The
pictures are noise of CIFAR-10's size: no part of the step is faster or slower for other ones. Ours is measured over
whole steps as the training loop takes them; start-up is what passes before the first recorded step, with nothing
compiled before.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="debiaspl-triton-")  # a cold start, as a user has it

import torch

from benchmarks.origin import origin, write
from benchmarks.usual import UsualStep
from debiaspl.augment import operations, randaugment, views
from debiaspl.data import FewLabels, ImageSet, Task
from debiaspl.data.images import TrainTest
from debiaspl.kernels import norm, pool
from debiaspl.models import WideResNet, network
from debiaspl.recipes import recipe
from debiaspl.training import update
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step

MODES = {
    "joint": ["joint=true"],
    "faithful": ["joint=false"],
    "fast": ["joint=false", "teacher=average", "average_statistics=true", "norm_momentum=0.1", "strong_share=0.5"],
}
FLOOR_MS = {"joint": 1.9, "faithful": 1.3, "fast": 1.3}
"""Bytes that must move over the memory's rate, or operations over the arithmetic's, whichever is more; computed for all
strong views, so that the share of *fast*, which looks at half of them, is an upper bound."""


def noise(count: int) -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    return ImageSet(pixels, torch.arange(count) % 10, tuple("abcdefghij"))


def timed(call, count: int, device: torch.device) -> float:
    """Milliseconds a call."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for number in range(count):
        call(number)
    wait()
    return 1000 * (time.perf_counter() - start) / count


def ours(settings: list[str], task: Task, device: torch.device, steps: int, compiled: bool = False) -> dict[str, float]:
    began = time.perf_counter()
    step = Step(parse_settings(recipe("cifar10-40"), settings), task, device)
    if compiled:
        step.student.compile(dynamic=False)
        step.average.model.compile(dynamic=False)
    ready = 5 if device.type == "cuda" else 1
    timed(step, ready, device)
    startup = time.perf_counter() - began
    rounds = sorted(timed(lambda number: step(ready + number), steps, device) for _ in range(5))
    return {"ms": round(rounds[2], 2), "spread_ms": round(rounds[-1] - rounds[0], 2), "startup_s": round(startup, 1)}


def usual(task: Task, device: torch.device, workers: int, batches: tuple[int, int], steps: int, depth: int) -> float:
    step = UsualStep(task.labeled, task.unlabeled, device, workers, batches, WideResNet(10, depth=depth))
    timed(lambda number: step(), max(2, steps // 4), device)  # the workers get ahead, then keep their pace
    return round(timed(lambda number: step(), steps, device), 2)


def kernels(task: Task, device: torch.device) -> list[dict[str, object]]:
    """The faithful step's kernels, the longest first: what is left to be done."""
    from torch.profiler import ProfilerActivity, profile

    step = Step(parse_settings(recipe("cifar10-40"), MODES["faithful"]), task, device)
    timed(step, 5, device)
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as seen:
        timed(lambda number: step(5 + number), 5, device)
    found = [(event.self_device_time_total / 5e3, event.count / 5, event.key) for event in seen.key_averages()]
    return [
        {"ms": round(ms, 3), "calls": calls, "kernel": name[:90]}
        for ms, calls, name in sorted(found, reverse=True)[:25]
    ]


KERNELS = (
    *((module, "triton_works") for module in (norm, pool, update)),
    *((module, "holds") for module in (randaugment, views, network)),
)
"""Functions that say whether a kernel runs."""
CACHED = ((operations, "constant"), (randaugment, "constant"), (views, "_windows"))


def compile_plain_versions(task: Task, device: torch.device) -> None:
    """From now on, torch.compile of the plain versions runs where the Triton kernels did: norm, pool, views, update."""
    for module, name in KERNELS:
        setattr(module, name, lambda *_: False)
    # Small tables are cached, but torch.compile would trace how they are made, and a copy from the CPU cannot be
    # recorded. So a first step notes them, and then they are looked up.
    tables = {}
    for module, name in CACHED:
        setattr(module, name, noting(name, getattr(module, name), tables))
    Step(parse_settings(recipe("cifar10-40"), MODES["faithful"]), task, device, record=False)(0)
    for module, name in CACHED:
        setattr(module, name, looking_up(name, tables))
    randaugment.hide_ = hidden
    for owner, name in (
        (views, "scale"),
        (views.Weak, "apply"),
        (randaugment.RandAugment, "apply"),
        (update.Update, "_step_group"),
    ):
        setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False))


def hidden(images: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
    """``hide_`` without its view of bools as bytes, which torch 2.11 cannot compile; the same bits."""
    top, bottom, left, right = box.reshape(4, -1, 1, 1, 1).unbind()
    constant = vars(randaugment)["constant"]  # as compile_plain_versions replaced it
    y, x = (constant(range(side), torch.int32, images.device) for side in images.shape[2:])
    y = y.unsqueeze(1)
    return images.masked_fill((y >= top) & (y < bottom) & (x >= left) & (x < right), randaugment.GREY)


def noting(name: str, make: Callable[..., torch.Tensor], tables: dict) -> Callable[..., torch.Tensor]:
    return lambda *arguments: tables.setdefault((name, *map(str, arguments)), make(*arguments))


def looking_up(name: str, tables: dict) -> Callable[..., torch.Tensor]:
    return lambda *arguments: tables[(name, *map(str, arguments))]


def kernels_or_compiled(task: Task) -> dict[str, object]:
    """Both in one run: the kernels first, because what is compiled cannot be taken back."""
    device = torch.device("cuda")
    measured = {name: {"kernels": ours(settings, task, device, 200)} for name, settings in MODES.items()}
    compile_plain_versions(task, device)
    for name, settings in MODES.items():
        torch.compiler.reset()
        measured[name]["compiled"] = ours(settings, task, device, 200, compiled=True)
        measured[name]["ratio"] = round(measured[name]["compiled"]["ms"] / measured[name]["kernels"]["ms"], 3)
        print(name, json.dumps(measured[name]), flush=True)
    return {"modes": measured, "gpu": torch.cuda.get_device_name()}


def on_gpu(task: Task, workers: int) -> dict[str, object]:
    device = torch.device("cuda")
    measured = {name: ours(settings, task, device, 200) for name, settings in MODES.items()}
    memory = torch.cuda.max_memory_reserved() / 2**30
    left = kernels(task, device)
    baseline = usual(task, device, workers, (64, 448), 60, 28)
    return {
        **{f"{name}_ms": numbers["ms"] for name, numbers in measured.items()},
        "baseline_ms": baseline,
        "joint_ratio": round(baseline / measured["joint"]["ms"], 1),
        "faithful_ratio": round(baseline / measured["faithful"]["ms"], 1),
        "fast_ratio": round(baseline / measured["fast"]["ms"], 1),
        "floor_share": round(FLOOR_MS["faithful"] / measured["faithful"]["ms"], 3),
        "joint_floor_share": round(FLOOR_MS["joint"] / measured["joint"]["ms"], 3),
        "fast_floor_share": round(FLOOR_MS["fast"] / measured["fast"]["ms"], 3),
        "peak_memory_gib": round(memory, 2),
        "startup_s": measured["joint"]["startup_s"],
        "spread_ms": {name: numbers["spread_ms"] for name, numbers in measured.items()},
        "modes": MODES,
        "baseline_workers": workers,
        "kernels_of_faithful": left,
        "gpu": torch.cuda.get_device_name(),
    }


def on_cpu(task: Task) -> dict[str, object]:
    """Batches of 8 + 56 and WRN-10-2: a step of the whole recipe would take minutes. By turns, medians."""
    device, batches = torch.device("cpu"), (8, 56)
    sizes = ["labeled_batch=8", "unlabeled_batch=56", "depth=10"]
    joint, separate = (
        Step(parse_settings(recipe("cifar10-40"), [*MODES[mode], *sizes]), task, device)
        for mode in ("joint", "faithful")
    )
    other = UsualStep(task.labeled, task.unlabeled, device, 0, batches, WideResNet(10, depth=10))
    calls = {"usual": lambda n: other(), "joint": joint, "separate": separate}
    rounds = [{name: timed(call, 5, device) for name, call in calls.items()} for _ in range(8)][1:]
    median = {name: sorted(each[name] for each in rounds)[3] for name in calls}
    return {
        "images_per_s": {name: round(sum(batches) / ms * 1000, 1) for name, ms in median.items()},
        "joint_ratio": round(sorted(each["usual"] / each["joint"] for each in rounds)[3], 2),
        "separate_ratio": round(sorted(each["usual"] / each["separate"] for each in rounds)[3], 2),
        "threads": torch.get_num_threads(),
        "network": "WRN-10-2",
        "batches": batches,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--compiled", action="store_true", help="our kernels beside torch.compile of plain torch")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="of the usual way's data loader")
    parser.add_argument("--commit", default=None, help="where the code comes from, if this is no checkout")
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    settings = parser.parse_args()
    if settings.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here; --device cpu measures the CPU.")
    task = Task.of(TrainTest(noise(50_000 if settings.device == "cuda" else 2_000), noise(1_000)), FewLabels(4), 0)
    if settings.device == "cpu":
        measured = on_cpu(task)
    else:
        measured = kernels_or_compiled(task) if settings.compiled else on_gpu(task, settings.workers)
    measured |= origin() | ({"commit": settings.commit} if settings.commit else {})
    print(json.dumps(measured, indent=2))
    if settings.out:
        write(settings.out, measured)


if __name__ == "__main__":
    main()
