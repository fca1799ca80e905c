"""Is streaming limited by decoding alone, and is its memory flat? python benchmarks/streaming.py [--images 100000]

Writes synthetic JPEGs as tar shards into a temporary folder, then, in one run with the same number of worker processes
and by turns: decodes all of them and does nothing else; and streams all of them as training does (shuffled, cropped, as
batches).
Prints both rates, the ratio, and the resident memory of all processes at 10 % and at 100 % of the stream.
"""

import argparse
import io
import json
import multiprocessing
import os
import tarfile
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from debiaspl.data import IndexStream, LazyImages
from debiaspl.data.decode import decode, pillow_keeps_quiet
from debiaspl.data.feed import AHEAD, FileFeed
from debiaspl.data.open import read_place
from debiaspl.data.shards import TarShards

SIDE, CROP, BATCH, PER_SHARD = 128, 64, 448, 10_000
ROUNDS = 5


def write_shards(folder: Path, images: int) -> None:
    """Smooth random pictures: of the size of a photo's thumbnail, and all different."""
    random = np.random.default_rng(0)
    for start in range(0, images, PER_SHARD):
        with tarfile.open(folder / f"{start:08d}.tar", "w") as tar:
            for number in range(start, min(start + PER_SHARD, images)):
                coarse = random.integers(0, 256, (6, 6, 3), dtype=np.uint8)
                content = io.BytesIO()
                Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(content, "JPEG")
                for extension, data in (("jpg", content.getvalue()), ("cls", str(number % 10).encode())):
                    member = tarfile.TarInfo(f"{number:08d}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def decode_part(files: TarShards, positions: range, up: Barrier) -> None:
    up.wait()
    with pillow_keeps_quiet:
        for position in positions:
            decode(files.read(position), None)


def seconds_to_decode(files: TarShards, part: range, workers: int) -> float:
    context = multiprocessing.get_context("spawn")
    up = context.Barrier(workers + 1)
    shares = [part[number::workers] for number in range(workers)]
    processes = [context.Process(target=decode_part, args=(files, share, up)) for share in shares]
    for process in processes:
        process.start()
    up.wait()  # the workers are up before the clock starts
    started = time.perf_counter()
    for process in processes:
        process.join()
    return time.perf_counter() - started


def resident_mib() -> float:
    """Of this process and its children; shared pages count once for each."""
    own = os.getpid()
    pids = [own, *map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split())]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(folder: Path, images: int, workers: int) -> dict[str, float]:
    """Decoding and streaming by turns, so that whatever else the machine does meets both alike."""
    lazy = read_place(folder, CROP).images
    assert isinstance(lazy, LazyImages)
    assert isinstance(lazy.files, TarShards)
    feed = FileFeed(lazy, IndexStream(images, BATCH, seed=0), 1, torch.device("cpu"), workers)
    decoding = streaming = 0.0
    resident: list[float] = []
    streamed = step = 0
    per_round = images // ROUNDS
    for number in range(ROUNDS):
        decoding += seconds_to_decode(lazy.files, range(number * per_round, (number + 1) * per_round), workers)
        for _ in range(workers * AHEAD + 1):  # what was made while the others decoded does not count
            feed[step]
            step += 1
        started = time.perf_counter()
        while step * BATCH < (number + 1) * per_round:
            feed[step]
            step += 1
            streamed += BATCH
            if step == max(images // BATCH // 10, 1):
                resident.append(resident_mib())
        streaming += time.perf_counter() - started
    resident.append(resident_mib())
    return {
        "decode_only_per_s": ROUNDS * per_round / decoding,
        "stream_per_s": streamed / streaming,
        "resident_mib_at_10_percent": resident[0],
        "resident_mib_at_100_percent": resident[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shards(folder, options.images)
        measured = measure(folder, options.images, options.workers)
    ratio = measured["stream_per_s"] / measured["decode_only_per_s"]
    if options.json:
        facts = {"images": options.images, "workers": options.workers, "ratio": round(ratio, 3)}
        print(json.dumps(facts | {name: round(value) for name, value in measured.items()}, indent=2))
        return
    print(f"{options.images:,} JPEGs of {SIDE} x {SIDE}, {options.workers} workers")
    print(f"decode only  {measured['decode_only_per_s']:9,.0f} images/s")
    print(f"stream       {measured['stream_per_s']:9,.0f} images/s, {ratio:.0%} of that")
    early, late = measured["resident_mib_at_10_percent"], measured["resident_mib_at_100_percent"]
    print(f"resident     {early:9,.0f} MiB at 10 %, {late:,.0f} MiB at 100 %")


if __name__ == "__main__":
    main()
