"""The table that comes first: what fails, and where."""

import math

from scaling_parts.feeding import (
    EPOCHS,
    IMAGENET,
    STATE,
    TEST_BATCHES,
    decode_rates,
    evaluation_seconds,
    host_bytes,
    index_seconds,
)
from scaling_parts.form import span, table
from scaling_parts.links import links
from scaling_parts.origin import assumed
from scaling_parts.together import first_below
from scaling_parts.work import works


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
