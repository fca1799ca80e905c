"""What training on many GPUs would cost, on paper: python -m benchmarks.scaling_model

Nothing is timed here. Operations and bytes are counted layer by layer; times come from files in results/ where there is
a measurement, and from the assumptions of scaling_parts/origin.py where there is none. Puts its two tables into
docs/lab/scaling.md, between the marks that name them.
"""

import math
import re

from benchmarks.scaling_parts.feeding import (
    EPOCHS,
    IMAGENET,
    STATE,
    TEST_BATCHES,
    decode_rates,
    evaluation_seconds,
    host_bytes,
    index_seconds,
)
from benchmarks.scaling_parts.network import first_below, links, step_seconds
from benchmarks.scaling_parts.origin import ROOT, assumed
from benchmarks.scaling_parts.work import Work, larger, shared, works

PAGE = ROOT / "docs" / "lab" / "scaling.md"
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
    step = step_seconds(shared(work, gpus), gpus, links()[0])
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


def breaks() -> str:
    found = works()
    ends = [found["one-low"], found["one-high"]]
    feeds = [assumed("cores") * rate * work.seconds / work.images for rate in decode_rates() for work in ends]
    small, large = assumed("small_batch"), assumed("large_batch")
    too_many = f"over {small:,} images from {small // 384 + 1} GPUs, over {large:,} from {large // 384 + 1}"
    slow_prior = math.ceil(0.1 * EPOCHS * IMAGENET / 320 / 1000)
    equal = math.gcd(ends[0].labeled, ends[0].unlabeled)
    shares = (1, "on 1 GPU"), (assumed("node"), f"on {assumed('node')}"), (TEST_BATCHES, f"from {TEST_BATCHES} on")
    tested = ", ".join(f"{span(*evaluation_seconds(gpus), '.2g')} s {where}" for gpus, where in shares)
    rows = [
        ["decoding", "speed", f"{assumed('cores')} cores feed {span(min(feeds), max(feeds), '.1f')} GPUs"],
        ["evaluation", "speed", f"decoding takes, each time, {tested}"],
        ["the recipe's own batch", "speed", f"has equal parts for 1, 2, 4, ... {equal} GPUs; others are refused"],
        ["a batch of 384 on each GPU", "accuracy", too_many],
        ["a momentum of 0.999", "accuracy", f"remembers more than 10 % of 50 epochs from {slow_prior} GPUs"],
    ]
    for key in ("separate", "one-low", "one-high"):
        work = found[key]
        short = [f"{link.name}: from {gpus} GPUs" for link in links() if (gpus := first_below(work, link))]
        where = "below 90 %, " + "; ".join(short) if short else "above 90 % on all three links"
        rows.append([f"network, {work.label}", "speed", where])
    now, better = (assumed("memory") * 1e12 / size / 1e9 for size in host_bytes(1))
    minutes, hours = index_seconds(IMAGENET) / 60, index_seconds(10**9) / 3600
    before = f"{minutes:.0f} minutes for ImageNet, {hours:.0f} hours for a billion, on every rank"
    rows.append(["start, from tar shards", "speed", f"{before}, and again after a restart"])
    rows.append(["index of the images", "memory", f"a node holds {now:.2f} billion images now, {better:.0f} if shared"])
    rows.append(["labels kept on each GPU", "memory", f"{STATE} bytes an image: {STATE} GB for a billion"])
    return table(["what", "threatens", "where"], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def span(low: float, high: float, form: str = ",.0f") -> str:
    """Two ends, the smaller first; one number where they print alike."""
    first, second = (f"{value:{form}}" for value in sorted((low, high)))
    return first if first == second else f"{first} to {second}"


def filled(page: str) -> str:
    """The page with every table as it is computed now."""
    for name, made in (("breaks", breaks), ("runs", runs)):
        marked = re.compile(rf"(<!-- {name} -->\n)(?:(?!<!-- ).*\n)*(<!-- end -->)")
        if len(marked.findall(page)) != 1:
            raise SystemExit(f"the page has no place for the table {name}: expected <!-- {name} --> ... <!-- end -->.")
        text = made()
        page = marked.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
