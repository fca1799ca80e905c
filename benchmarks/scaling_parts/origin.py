"""Where the numbers of the model come from: files of results/, or an assumption with its reason."""

import json
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

MEASURED = {
    "WRN-28-2, separate, ms a step": ("results/speed/h200.json", "faithful_ms"),
    "streaming, images/s, two cores, the same files": ("results/streaming/cpu.json", "stream_per_s"),
}
"""What was measured: file and field."""

ASSUMPTIONS = {
    "node": (8, "GPUs in a node", "the usual machine"),
    "nvlink": (370, "GB/s a GPU, inside a node", "what a maintainer of NCCL names, NVIDIA/nccl-tests issue 212"),
    "call": (15, "us for any message", "with the next two: 49 us for a tiny sum on 2 x 8 GPUs; 47 are reported"),
    "hop_in": (1, "us a hop inside a node", "see above; NVIDIA/nccl issue 1244, other GPUs"),
    "hop_infiniband": (10, "us a hop between nodes, InfiniBand", "see above"),
    "hop_ethernet": (30, "us a hop between nodes, Ethernet", "a guess"),
    "infiniband": (46, "GB/s of a 400 Gb/s port", "the lower end of NVIDIA/nccl-tests issue 290: 46 to 48"),
    "ethernet": (11, "GB/s of a 100 Gb/s port", "88 % of the line; a guess"),
    "first_bucket": (1, "MiB, first bucket of gradients of a kind", "the default of DistributedDataParallel"),
    "bucket": (25, "MiB, the other buckets", "the default of DistributedDataParallel"),
    "resnet_low": (
        60,
        "TFLOP/s that ResNet-50 reaches, low",
        "what an A100 reaches: 2,470 images/s, supervised, NVIDIA/DeepLearningExamples",
    ),
    "pixels": (187_500, "pixels of an ImageNet JPEG", "500 x 375"),
    "pillow": (550, "images/s, one core, decoding ImageNet, high", "Pillow, published: 360 to 726, imread_benchmark"),
    "cores": (16, "CPU cores for each GPU", "128 a node; `--workers` is as many"),
    "memory": (2, "TB of memory in a node", "the usual machine"),
    "headers": (9_000, "images/s, one process, finding them in tar shards", "a probe on one core, not in results/"),
    "name": (74, "bytes, the name of an image as a Python string", "17 letters, and the pointer to them"),
    "small_batch": (8_192, "images a step, plain SGD keeps its accuracy", "ResNet-50, supervised: Goyal et al., 2017"),
    "large_batch": (32_768, "images a step, with LARS", "ResNet-50, supervised: You et al., 2017"),
}
"""What was not measured here: value, unit, why."""


@cache
def measured(name: str) -> float:
    file, field = MEASURED[name]
    return float(json.loads((ROOT / file).read_text())[field])


def assumed(name: str) -> int:
    return ASSUMPTIONS[name][0]
