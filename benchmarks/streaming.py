"""Is streaming limited by decoding alone, and is its memory flat? python benchmarks/streaming.py [--images 100000]

Writes synthetic JPEGs as tar shards into a temporary folder, then, in one run with the same number of worker processes:
decodes all of them and does nothing else; and streams all of them as training does (shuffled, cropped, as batches).
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
from debiaspl.data.feed import FileFeed
from debiaspl.data.open import read_place
from debiaspl.data.shards import TarShards, find_shards, index_shards

SIDE, CROP, BATCH, PER_SHARD = 128, 64, 448, 10_000


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


def decode_part(files: TarShards, part: int, parts: int, up: Barrier) -> None:
    up.wait()
    with pillow_keeps_quiet:
        for position in range(part, len(files), parts):
            decode(files.read(position), None)


def decode_rate(folder: Path, images: int, workers: int) -> float:
    files = index_shards(find_shards(folder)).files
    context = multiprocessing.get_context("spawn")
    up = context.Barrier(workers + 1)
    processes = [context.Process(target=decode_part, args=(files, part, workers, up)) for part in range(workers)]
    for process in processes:
        process.start()
    up.wait()  # the workers are up before the clock starts
    started = time.perf_counter()
    for process in processes:
        process.join()
    return images / (time.perf_counter() - started)


def resident_mib() -> float:
    """Of this process and its children; shared pages count once for each."""
    own = os.getpid()
    pids = [own, *map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split())]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def stream(folder: Path, images: int, workers: int) -> tuple[float, float, float]:
    lazy = read_place(folder, CROP).images
    assert isinstance(lazy, LazyImages)
    feed = FileFeed(lazy, IndexStream(images, BATCH, seed=0), 1, torch.device("cpu"), workers)
    steps = images // BATCH
    first = steps // 10
    feed[0]  # the workers are up before the clock starts
    started = time.perf_counter()
    early = 0.0
    for step in range(1, steps):
        feed[step]
        if step == first:
            early = resident_mib()
    rate = (steps - 1) * BATCH / (time.perf_counter() - started)
    return rate, early, resident_mib()


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
        decoding = decode_rate(folder, options.images, options.workers)
        streaming, early, late = stream(folder, options.images, options.workers)
    measured = {
        "images": options.images,
        "workers": options.workers,
        "decode_only_per_s": round(decoding),
        "stream_per_s": round(streaming),
        "ratio": round(streaming / decoding, 3),
        "resident_mib_at_10_percent": round(early),
        "resident_mib_at_100_percent": round(late),
    }
    if options.json:
        print(json.dumps(measured, indent=2))
        return
    print(f"{options.images:,} JPEGs of {SIDE} x {SIDE}, {options.workers} workers")
    print(f"decode only  {decoding:9,.0f} images/s")
    print(f"stream       {streaming:9,.0f} images/s, {streaming / decoding:.0%} of that")
    print(f"resident     {early:9,.0f} MiB at 10 %, {late:,.0f} MiB at 100 %")


if __name__ == "__main__":
    main()
