"""Tables of whole runs: the paper's, a billion images, and what grows with the batch."""

import math

from scaling_parts.feeding import EPOCHS, IMAGENET, STATE, decode_rates, host_bytes
from scaling_parts.form import span, table
from scaling_parts.links import links
from scaling_parts.origin import GPUS, assumed
from scaling_parts.together import step_seconds
from scaling_parts.work import Work, larger, shared, works

RUNS = (
    ("1 %", "one", 0.01, 50, 1),
    ("0.2 %", "one", 0.002, 50, 1),
    ("1 %, multi-view, 768", "multi", 0.01, 50, 1),
    ("0.2 %, multi-view, 768", "multi", 0.002, 50, 1),
    ("1 %, multi-view, 768", "multi", 0.01, 200, 1),
    ("1 %, multi-view, 1536", "multi", 0.01, 300, 2),
)
"""The paper's ImageNet runs: labels, views, share of labels, epochs, times the batch of 64 + 320 images."""


def run_steps(share: float, epochs: int, times: int) -> int:
    return math.ceil(epochs * round(IMAGENET * (1 - share)) / (320 * times))


def run_seconds(work: Work, count: int, gpus: int, cores: float = 0.0) -> float:
    """A run of so many steps of the recipe's batch; with ``cores`` a GPU, no faster than these decode, slowly."""
    step = step_seconds(shared(work, gpus), gpus, links()[0], overlap=True)
    return count * max(step, work.images / gpus / (cores * decode_rates()[0]) if cores else 0.0)


def runs() -> str:
    rows = []
    for name, views, share, epochs, times in RUNS:
        count = run_steps(share, epochs, times)
        ends = [larger(works()[f"{views}-{end}"], times) for end in ("low", "high")]
        cells = [span(*(run_seconds(work, count, 1) / 3600 for work in ends), form=",.1f")]
        cells.append(span(*(run_seconds(work, count, 1) / 86400 for work in ends), form=",.2f"))
        for gpus, cores in ((8, 0.0), (8, assumed("cores")), (64, 0.0)):
            cells.append(span(*(run_seconds(work, count, gpus, cores) / 3600 for work in ends), form=",.2f"))
        cells.append(span(*(64 * run_seconds(work, count, 64) / 3600 for work in ends), form=",.1f"))
        rows.append([name, f"{epochs}", f"{count:,}", f"{count * ends[0].flop / 1e18:,.1f}", *cells])
    names = ["epochs", "steps", "EFLOP", "GPU-hours, 1 GPU", "days, 1 GPU", "hours, 8 GPUs"]
    fed = f"hours, 8 GPUs, {assumed('cores')} cores each, slow decoding"
    return table(["ImageNet run", *names, fed, "hours, 64 GPUs", "GPU-hours, 64 GPUs"], rows)


def reading() -> str:
    slow, fast = decode_rates()
    rows = []
    for key in ("one-low", "one-high", "multi-low", "multi-high"):
        work = works()[key]
        rate = work.images / work.seconds
        jpeg, packed = rate * assumed("jpeg") * 1e3, rate * 3 * assumed("packed") ** 2
        flow = [f"{jpeg / 1e6:,.0f}", f"{8 * jpeg / 1e9:.1f}", f"{1024 * jpeg / 1e9:,.0f}", f"{packed / 1e6:,.0f}"]
        rows.append([work.label, f"{rate:,.0f}", *flow, f"{rate / slow:.1f}", f"{rate / fast:.1f}"])
    head = ["step", "images/s a GPU", "JPEGs, MB/s a GPU", "GB/s, 8 GPUs", "GB/s, 1,024 GPUs", "packed, MB/s a GPU"]
    cores = [f"cores a GPU, slow ({slow:.0f} images/s)", f"cores a GPU, fast ({fast:.0f} images/s)"]
    return table([*head, *cores], rows)


def billion() -> str:
    """One pass; everything but the memory and the storage grows with the number of passes."""
    rows, ends = [], (works()["one-low"], works()["one-high"])
    for images in (IMAGENET, 14_000_000, 100_000_000, 1_000_000_000):
        count = images / 320
        cost = [
            f"{count * ends[0].flop / 1e18:,.2f}",
            span(*(count * work.seconds / 3600 for work in ends), form=",.1f"),
        ]
        many = [count / 1024 * step_seconds(work, 1024, links()[0], True) / 60 for work in ends]
        cost += [span(*many, form=",.2f"), span(*(384 / 320 * images / rate / 3600 for rate in decode_rates()))]
        stored = [f"{images * assumed('jpeg') / 1e9:,.1f}", f"{images * 3 * assumed('packed') ** 2 / 1e12:,.1f}"]
        host = [f"{size / 1e9:,.1f}" for size in host_bytes(images)]
        rows.append([f"{images:,}", *cost, *stored, *host, f"{images * STATE / 1e9:.2f}"])
    names = ["EFLOP", "GPU-hours", "minutes, 1,024 GPUs", "core-hours to decode", "JPEGs, TB", "packed, TB"]
    memory = ["node memory now, GB", "shared, no names, GB", "state on each GPU, GB"]
    return table(["unlabeled images, one pass", *names, *memory], rows)


def batches() -> str:
    rows = []
    for gpus in GPUS:
        count = EPOCHS * IMAGENET / (320 * gpus)
        window = [f"{1 / (1 - momentum) / count:.1%}".replace("%", " %") for momentum in (0.999, 0.99)]
        same = [f"{momentum**gpus:.4f}" for momentum in (0.999, 0.99)]
        rows.append([f"{gpus:,}", f"{384 * gpus:,}", f"{count:,.0f}", *window, *same])
    head = ["GPUs", "images a step", "steps of 50 epochs", "0.999 remembers, of the run", "0.99 remembers"]
    return table([*head, "0.999 becomes", "0.99 becomes"], rows)
