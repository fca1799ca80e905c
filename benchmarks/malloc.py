"""Processor time of an encoder on a CPU with and without freed memory that is kept, by image size.

OMP_NUM_THREADS=1 python -m benchmarks.malloc --out results/photos/malloc.json
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.origin import origin, write
from debiaspl._processes import keep_freed_memory
from debiaspl.encoders import load_encoder
from debiaspl.encoders.encoding import BATCH

SIDES, ROUNDS = (64, 160, 224), 12


@torch.inference_mode()
def measure(side: int, kept: bool) -> dict[str, float]:
    """Milliseconds a photo, of the program and of the system; and the most memory that was held."""
    if kept:
        assert keep_freed_memory()
    encoder, images = load_encoder("efficientnet-lite0", image_size=side), torch.rand(BATCH["cpu"], 3, side, side)
    images = images.contiguous(memory_format=torch.channels_last)
    encoder.embed(images)
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(ROUNDS):
        encoder.embed(images)
    after = resource.getrusage(resource.RUSAGE_SELF)
    photos = ROUNDS * len(images)
    return {
        "user_ms": round(1000 * (after.ru_utime - before.ru_utime) / photos, 2),
        "system_ms": round(1000 * (after.ru_stime - before.ru_stime) / photos, 2),
        "most_memory_mib": after.ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "KEPT"), help="measure in this process, and print it")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(int(options.one[0]), options.one[1] == "kept")))
        return
    runs = []
    for side in SIDES:
        for kept in ("given back", "kept"):
            command = [sys.executable, "-m", "benchmarks.malloc", "--one", str(side), kept]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            runs.append({"side": side, "freed_memory": kept, **json.loads(said)})
            print(runs[-1], flush=True)
    about = origin("OMP_NUM_THREADS=1 python -m benchmarks.malloc --out results/photos/malloc.json")
    write(options.out, {**about, "libc": platform.libc_ver(), "runs": runs})


if __name__ == "__main__":
    main()
