"""What training on many GPUs would cost, on paper: python benchmarks/scaling_model.py [--json] [--write]

Nothing is timed here. Operations and bytes are counted layer by layer; times come from files in results/ where there is
a measurement, and from ASSUMPTIONS below where there is none. Prints the tables of docs/scaling.md; ``--write`` puts
them into that page, between the marks that name them.
"""

import argparse
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from torch import nn

from debiaspl.kernels.norm import NormActivate
from debiaspl.models import WideResNet

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "scaling.md"
GPUS = (1, 2, 4, 8, 16, 64, 256, 1024)

MEASURED = {
    "WRN-28-2, joint, ms a step": ("results/speed/h200.json", "joint_ms"),
    "WRN-28-2, separate, ms a step": ("results/speed/h200.json", "faithful_ms"),
    "WRN-28-2, fast, ms a step": ("results/speed/h200.json", "fast_ms"),
    "decoding alone, images/s, two cores, JPEGs of 128 x 128": ("results/streaming/cpu.json", "decode_only_per_s"),
    "streaming, images/s, two cores, the same files": ("results/streaming/cpu.json", "stream_per_s"),
}
"""What was measured: file and field."""

ASSUMPTIONS = {
    "node": (8, "GPUs in a node", "the usual machine"),
    "nvlink": (370, "GB/s a GPU, inside a node", "what a maintainer of NCCL names, NVIDIA/nccl-tests issue 212"),
    "call": (15, "us for any all-reduce", "with the next two: 49 us for a tiny message on 2 x 8 GPUs; 47 are reported"),
    "hop_in": (1, "us a hop inside a node", "see above; NVIDIA/nccl issue 1244, other GPUs"),
    "hop_infiniband": (10, "us a hop between nodes, InfiniBand", "see above"),
    "hop_ethernet": (30, "us a hop between nodes, Ethernet", "a guess"),
    "infiniband": (46, "GB/s of a 400 Gb/s port", "the lower end of NVIDIA/nccl-tests issue 290: 46 to 48"),
    "ethernet": (11, "GB/s of a 100 Gb/s port", "88 % of the line; a guess"),
    "first_bucket": (1, "MiB, first bucket of gradients", "the default of DistributedDataParallel"),
    "bucket": (25, "MiB, the other buckets", "the default of DistributedDataParallel"),
    "resnet_low": (
        60,
        "TFLOP/s that ResNet-50 reaches, low",
        "what an A100 reaches by published images/s: the last row of the steps",
    ),
    "jpeg": (110, "kB of an ImageNet JPEG", "about 140 GB for 1.28 M images"),
    "pixels": (187_500, "pixels of an ImageNet JPEG", "500 x 375"),
    "pillow": (550, "images/s, one core, decoding ImageNet, high", "Pillow, published: 360 to 726, imread_benchmark"),
    "packed": (256, "pixels, side of a packed image", "room for a crop of 224"),
    "cores": (16, "CPU cores for each GPU", "128 a node"),
    "memory": (2, "TB of memory in a node", "the usual machine"),
    "name": (74, "bytes, the name of an image as a Python string", "17 letters, and the pointer to them"),
    "small_batch": (8_192, "images a step, plain SGD keeps its accuracy", "ResNet-50, supervised: Goyal et al., 2017"),
    "large_batch": (32_768, "images a step, with LARS", "ResNet-50, supervised: You et al., 2017"),
}
"""What was not measured here: value, unit, why."""

IMAGENET, EPOCHS = 1_281_167, 50


@cache
def measured(name: str) -> float:
    file, field = MEASURED[name]
    return float(json.loads((ROOT / file).read_text())[field])


def assumed(name: str) -> int:
    return ASSUMPTIONS[name][0]


# --- networks, counted ---


@dataclass(frozen=True)
class Layer:
    """One layer, for one image."""

    macs: int = 0
    """Multiply-adds of a forward pass."""
    weights: int = 0
    """Parameters of two or more dimensions: bfloat16 on a GPU."""
    vectors: int = 0
    """Biases, and what norms learn: float32."""
    channels: int = 0
    """Of a batch norm."""


@dataclass(frozen=True)
class Architecture:
    """Layers in the order of the forward pass; the first one has no gradient to hand on."""

    name: str
    layers: tuple[Layer, ...]
    classes: int

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def parameters(self) -> int:
        return sum(layer.weights + layer.vectors for layer in self.layers)

    @property
    def norms(self) -> tuple[int, ...]:
        return tuple(layer.channels for layer in self.layers if layer.channels)

    def gradient_bytes(self, of_weights: int = 4) -> int:
        return sum(of_weights * layer.weights + 4 * layer.vectors for layer in self.layers)


@cache
def wide_resnet() -> Architecture:
    """The library's own network, watched while a picture without content goes through it."""
    layers: list[Layer] = []

    def note(module: nn.Module, _: object, out: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
        weights, vectors = (
            sum(p.numel() for p in module.parameters() if (p.ndim > 1) is many) for many in (True, False)
        )
        if isinstance(module, NormActivate):
            layers.append(Layer(vectors=vectors, channels=module.channels))
        elif isinstance(module, nn.Conv2d | nn.Linear) and isinstance(out, torch.Tensor):
            places = out.shape[2] * out.shape[3] if out.ndim == 4 else 1
            layers.append(Layer(macs=weights * places, weights=weights, vectors=vectors))

    with torch.device("meta"):  # shapes without numbers
        network = WideResNet(10)
        for module in network.modules():
            module.register_forward_hook(note)
        network(torch.empty(2, 3, 32, 32))
    return Architecture("WRN-28-2", tuple(layers), 10)


RESNET50_STAGES = ((3, 64, 256, 1), (4, 128, 512, 2), (6, 256, 1024, 2), (3, 512, 2048, 2))
"""Blocks, inner width, outer width, stride of the first block's 3x3 convolution."""


@cache
def resnet50(side: int = 224, classes: int = 1000) -> Architecture:
    """He et al., 2016, with the stride in the 3x3 convolution, as torchvision and MoCo have it."""
    layers: list[Layer] = []

    def convolution(incoming: int, outgoing: int, kernel: int, side: int) -> None:
        weights = incoming * outgoing * kernel**2
        layers.append(Layer(macs=weights * side**2, weights=weights))
        layers.append(Layer(vectors=2 * outgoing, channels=outgoing))

    side //= 2
    convolution(3, 64, 7, side)
    side, incoming = side // 2, 64
    for blocks, inner, outer, stride in RESNET50_STAGES:
        for block in range(blocks):
            convolution(incoming, inner, 1, side)
            side = side // stride if block == 0 else side
            convolution(inner, inner, 3, side)
            convolution(inner, outer, 1, side)
            if block == 0:
                convolution(incoming, outer, 1, side)
            incoming = outer
    layers.append(Layer(macs=incoming * classes, weights=incoming * classes, vectors=classes))
    return Architecture("ResNet-50", tuple(layers), classes)


# --- one step on one GPU ---


@dataclass(frozen=True)
class Work:
    """One step: how many views pass the network, and how long that takes on one GPU."""

    name: str
    network: Architecture
    labeled: int
    unlabeled: int
    forward: int
    """Views that pass forward alone."""
    both: int
    """Views that pass forward and backward."""
    student_labels: bool
    """The forward views, too, are normalised by their own batch; an averaged teacher is in eval mode."""
    seconds: float = 0.0
    origin: str = ""

    @property
    def backward_flop(self) -> int:
        return 2 * self.both * (2 * self.network.macs - self.network.layers[0].macs)

    @property
    def flop(self) -> int:
        return 2 * (self.forward + self.both) * self.network.macs + self.backward_flop

    def at(self, tflops: float, origin: str) -> "Work":
        return replace(self, seconds=self.flop / (tflops * 1e12), origin=origin)


@cache
def works() -> dict[str, Work]:
    wrn, resnet = wide_resnet(), resnet50()
    file = "measured, results/speed/h200.json"

    def timed(mode: str, forward: int, both: int, student: bool) -> Work:
        ms = measured(f"WRN-28-2, {mode}, ms a step")
        return Work(f"WRN-28-2, {mode}", wrn, 64, 448, forward, both, student, ms / 1000, file)

    found = {
        "joint": timed("joint", 0, 64 + 2 * 448, False),
        "separate": timed("separate", 448, 64 + 448, True),
        "fast": timed("fast", 448, 64 + 224, False),
    }
    reached = found["separate"].flop / found["separate"].seconds / 1e12
    for name, views in (("one", 1), ("multi", 2)):
        label = "ResNet-50" if views == 1 else "ResNet-50, multi-view"
        plain = Work(label, resnet, 64, 320, 320 * views, 64 + 320 * views, False)
        found[f"{name}-low"] = plain.at(assumed("resnet_low"), "assumed, low")
        found[f"{name}-high"] = plain.at(reached, "assumed, high: the rate of WRN-28-2, separate")
    return found


# --- messages ---


@dataclass(frozen=True)
class Link:
    """What joins nodes; inside a node it is NVLink."""

    name: str
    rate: float
    """Bytes a second out of a node, and as many into it."""
    hop: float
    """Seconds."""


def links() -> tuple[Link, ...]:
    infiniband, hop = 1e9 * assumed("infiniband"), 1e-6 * assumed("hop_infiniband")
    return (
        Link("8 x 400 Gb/s InfiniBand", 8 * infiniband, hop),
        Link("1 x 400 Gb/s InfiniBand", infiniband, hop),
        Link("1 x 100 Gb/s Ethernet", 1e9 * assumed("ethernet"), 1e-6 * assumed("hop_ethernet")),
    )


def on_the_wire(size: float, gpus: int) -> float:
    """Bytes that each GPU sends, and receives, for a ring all-reduce."""
    return 2 * (gpus - 1) / gpus * size


def latency(gpus: int, link: Link, tree: bool = True) -> float:
    """Seconds before the first byte counts: NCCL's trees need log2 of the nodes, a flat ring all of them."""
    if gpus == 1:
        return 0.0
    inside, nodes = min(gpus, assumed("node")), max(1, gpus // assumed("node"))
    here = 1e-6 * assumed("hop_in")
    if tree:
        return 1e-6 * assumed("call") + 2 * ((inside - 1) * here + math.log2(nodes) * link.hop)
    between = nodes if nodes > 1 else 0
    return 1e-6 * assumed("call") + 2 * ((gpus - 1 - between) * here + between * link.hop)


def all_reduce(size: float, gpus: int, link: Link) -> float:
    """Seconds: the bytes of a ring at the rate of its narrowest part, the hops of a tree."""
    if gpus == 1:
        return 0.0
    nvlink = 1e9 * assumed("nvlink")
    rate = nvlink if gpus <= assumed("node") else min(nvlink, link.rate)
    return on_the_wire(size, gpus) / rate + latency(gpus, link)


def prior_bytes(network: Architecture) -> int:
    """Sums of all classes, rows, spoilt batches: ``RunningPrior.learn``."""
    return 4 * (network.classes + 2)


def norm_messages(work: Work) -> list[int]:
    """Synchronised batch norm: sums, squares and rows forward, two sums backward, for every norm, in bytes."""
    passes = 2 if work.student_labels else 1
    norms = work.network.norms
    return [4 * (2 * channels + 1) for channels in norms] * passes + [8 * channels for channels in norms]


def gathered_bytes(work: Work, gpus: int) -> int:
    """What a GPU receives for the same norms with torch's SyncBatchNorm, which gathers the forward part from all."""
    forward = sum(4 * (2 * channels + 1) for channels in work.network.norms) * (2 if work.student_labels else 1)
    return (gpus - 1) * forward + round(on_the_wire(sum(8 * channels for channels in work.network.norms), gpus))


# --- one step on many GPUs ---


def buckets(network: Architecture) -> Iterator[tuple[int, int]]:
    """Bytes of each message of gradients, last layer first, and the share of the backward work when it can start."""
    cap, size, macs = assumed("first_bucket") * 2**20, 0, 0
    for layer in reversed(network.layers):
        size += 4 * (layer.weights + layer.vectors)
        macs += 2 * layer.macs
        if size >= cap:
            yield size, macs
            cap, size = assumed("bucket") * 2**20, 0
    if size:
        yield size, macs


def step_seconds(work: Work, gpus: int, link: Link, overlap: bool, synchronised: bool = False) -> float:
    """One step, all ranks equally fast; with overlap, messages of gradients run beside the backward pass."""
    backward = work.seconds * work.backward_flop / work.flop
    clock = work.seconds - backward + all_reduce(prior_bytes(work.network), gpus, link)
    if synchronised:
        clock += sum(all_reduce(size, gpus, link) for size in norm_messages(work))
    if not overlap:
        return clock + backward + all_reduce(work.network.gradient_bytes(), gpus, link)
    total, free = 2 * work.network.macs, clock
    for size, macs in buckets(work.network):
        free = max(free, clock + backward * macs / total) + all_reduce(size, gpus, link)
    return max(clock + backward, free)


def efficiency(work: Work, gpus: int, link: Link, overlap: bool, synchronised: bool = False) -> float:
    """With the same batch on every GPU: the step alone over the step together."""
    return work.seconds / step_seconds(work, gpus, link, overlap, synchronised)


@cache
def floor_seconds(network: Architecture) -> float:
    """A step cannot be shorter than its kernels' own least times, however few images there are.

    The kernels of the profile of WRN-28-2, at the time of its smallest norm kernel; others by their number of norms.
    """
    profile = json.loads((ROOT / "results/speed/h200.json").read_text())["kernels_of_faithful"]
    (small,) = [kernel for kernel in profile if kernel["kernel"] == "_finish_statistics"]
    calls = sum(kernel["calls"] for kernel in profile)
    return calls * small["ms"] / small["calls"] / 1000 * len(network.norms) / len(wide_resnet().norms)


def shared(work: Work, gpus: int) -> Work:
    """The recipe's batch divided among the GPUs."""
    return replace(work, seconds=max(work.seconds / gpus, min(work.seconds, floor_seconds(work.network))))


# --- tables ---


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def span(low: float, high: float, form: str = ",.0f") -> str:
    """Two ends, the smaller first; one number where they print alike."""
    first, second = (f"{value:{form}}" for value in sorted((low, high)))
    return first if first == second else f"{first} to {second}"


def counted() -> str:
    rows = []
    for network in (wide_resnet(), resnet50()):
        half, full = network.gradient_bytes(2) / 1e6, network.gradient_bytes() / 1e6
        sizes = [f"{network.parameters:,}", f"{network.macs / 1e9:.3f}", f"{len(network.norms)}"]
        rows.append([network.name, *sizes, f"{sum(network.norms):,}", f"{half:.2f}", f"{full:.2f}"])
    names = ["parameters", "GMAC an image", "norms", "their channels", "gradients, bf16, MB", "gradients, float32, MB"]
    return table(["network", *names], rows)


def steps() -> str:
    head = ["step", "views forward only", "views forward and backward", "TFLOP", "ms", "TFLOP/s", "ms come from"]
    rows = []
    for work in works().values():
        rate = work.flop / work.seconds / 1e12
        numbers = [f"{work.forward}", f"{work.both}", f"{work.flop / 1e12:.2f}", f"{1000 * work.seconds:.2f}"]
        rows.append([work.name, *numbers, f"{rate:.0f}", work.origin])
    supervised = 2 * 3 * resnet50().macs * 2470 / 1e12
    rows.append(
        [
            "ResNet-50, supervised, A100",
            "0",
            "2470 in 1 s",
            "",
            "",
            f"{supervised:.0f}",
            "published, NVIDIA/DeepLearningExamples",
        ]
    )
    return table(head, rows)


def exchanged() -> str:
    some, rows = (2, 8, 64, 1024), []
    for work in (works()["separate"], works()["one-high"]):
        network, norms = work.network, norm_messages(work)
        sizes = {
            "gradients, float32": network.gradient_bytes(),
            "gradients, bf16": network.gradient_bytes(2),
            "prior": prior_bytes(network),
            "averaged teacher": 0,
            f"batch norm, if synchronised ({len(norms)} messages)": sum(norms),
        }
        for name, size in sizes.items():
            rows.append([f"{work.name}: {name}", *(kilobytes(on_the_wire(size, gpus)) for gpus in some)])
        gathered = [kilobytes(gathered_bytes(work, gpus)) for gpus in some]
        rows.append([f"{work.name}: the same, gathered as torch's SyncBatchNorm does", *gathered])
    return table(["kB a step and GPU, each way", *(f"{gpus:,} GPUs" for gpus in some)], rows)


def kilobytes(size: float) -> str:
    return f"{size / 1e3:,.2f}" if 0 < size < 1e4 else f"{size / 1e3:,.0f}"


def small_messages() -> str:
    wide, rows = [gpus for gpus in GPUS if gpus > 1], []
    for name, link in (("InfiniBand", links()[0]), ("Ethernet", links()[2])):
        for way, tree in (("tree", True), ("flat ring", False)):
            rows.append([f"{name}, {way}", *(f"{1e6 * latency(gpus, link, tree):,.0f}" for gpus in wide)])
    return table(["us for a tiny message", *(f"{gpus:,}" for gpus in wide)], rows)


def efficiencies() -> str:
    rows = []
    for key in ("separate", "one-low", "one-high"):
        work = works()[key]
        for link in links():
            cells = [
                " / ".join(f"{100 * efficiency(work, gpus, link, overlap):.0f}" for overlap in (False, True))
                for gpus in GPUS
            ]
            rows.append([f"{work.name}, {1000 * work.seconds:.0f} ms; {link.name}", *cells])
    return table(["step; between nodes", *(f"{gpus:,}" for gpus in GPUS)], rows)


def synchronised() -> str:
    rows = []
    for key in ("separate", "one-high"):
        work = works()[key]
        for link in links():
            cells = [f"{100 * efficiency(work, gpus, link, True, True):.0f}" for gpus in GPUS]
            rows.append([f"{work.name}; {link.name}", *cells])
    return table(["step; between nodes", *(f"{gpus:,}" for gpus in GPUS)], rows)


def divided() -> str:
    """The recipe's batch on more and more GPUs: ms a step and the efficiency, with overlap, the fastest link."""
    few, rows = [gpus for gpus in GPUS if gpus <= 64], []
    for key in ("separate", "one-low", "one-high"):
        work = works()[key]
        floor = f"floor {1000 * floor_seconds(work.network):.1f} ms"
        for norm, together in (("local norm", False), ("synchronised", True)):
            cells = []
            for gpus in few:
                seconds = step_seconds(shared(work, gpus), gpus, links()[0], True, together)
                cells.append(f"{1000 * seconds:.1f} ms, {100 * work.seconds / gpus / seconds:.0f} %")
            rows.append([f"{work.name}, {1000 * work.seconds:.0f} ms; {floor}; {norm}", *cells])
    images = [f"{(64 + 320) / gpus:g}" for gpus in few]
    rows.append(["ResNet-50: images that a local norm sees, of one view", *images])
    return table(["step", *(f"{gpus}" for gpus in few)], rows)


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
    images = (work.labeled + work.unlabeled) / gpus
    return count * max(step, images / (cores * decode_rates()[0]) if cores else 0.0)


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


def larger(work: Work, times: int) -> Work:
    """The same step with so many times its images."""
    sizes = {name: times * getattr(work, name) for name in ("labeled", "unlabeled", "forward", "both", "seconds")}
    return replace(work, **sizes)


def decode_rates() -> tuple[float, float]:
    """Images a second and core, ImageNet: ours of small files by the number of pixels, and Pillow's published."""
    ours = measured("streaming, images/s, two cores, the same files") / 2
    return ours * 128**2 / assumed("pixels"), assumed("pillow")


def reading() -> str:
    slow, fast = decode_rates()
    rows = []
    for key in ("one-low", "one-high", "multi-low", "multi-high"):
        work = works()[key]
        rate = (work.labeled + work.unlabeled) / work.seconds
        jpeg, packed = rate * assumed("jpeg") * 1e3, rate * 3 * assumed("packed") ** 2
        flow = [f"{jpeg / 1e6:,.0f}", f"{8 * jpeg / 1e9:.1f}", f"{1024 * jpeg / 1e9:,.0f}", f"{packed / 1e6:,.0f}"]
        label = f"{work.name}, {1000 * work.seconds:.0f} ms"
        rows.append([label, f"{rate:,.0f}", *flow, f"{rate / slow:.1f}", f"{rate / fast:.1f}"])
    head = ["step", "images/s a GPU", "JPEGs, MB/s a GPU", "GB/s, 8 GPUs", "GB/s, 1,024 GPUs", "packed, MB/s a GPU"]
    cores = [f"cores a GPU, slow ({slow:.0f} images/s)", f"cores a GPU, fast ({fast:.0f} images/s)"]
    return table([*head, *cores], rows)


INDEX, ORDER, POSITION, STATE = 20, 8, 8, 24
"""Bytes for each image: shard, offset and size; its place in the shuffled order; its place in the split; label, truth
and adopted label."""


def host_bytes(images: int) -> tuple[float, float]:
    """Memory of a node for what is known of each image: as it is, and if all processes shared it.

    As it is, a rank holds index, positions and names; each of its workers, one a core, is spawned with an index of its
    own and shuffles for itself.
    """
    rank = INDEX + POSITION + assumed("name") + assumed("cores") * (INDEX + ORDER)
    return assumed("node") * rank * images, (INDEX + ORDER + POSITION) * images


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


def first_below(work: Work, link: Link, goal: float = 0.9) -> int | None:
    """The first number of GPUs, doubling up to 1,024, that falls short of the goal with overlap."""
    return next((2**k for k in range(11) if efficiency(work, 2**k, link, True) < goal), None)


def breaks() -> str:
    found, (slow, fast) = works(), decode_rates()
    ends = [found["one-low"], found["one-high"]]
    feeds = [assumed("cores") * rate / ((64 + 320) / work.seconds) for rate in (slow, fast) for work in ends]
    now, better = (assumed("memory") * 1e12 / size / 1e9 for size in host_bytes(1))
    small, large = assumed("small_batch"), assumed("large_batch")
    too_many = f"over {small:,} images from {small // 384 + 1} GPUs, over {large:,} from {large // 384 + 1}"
    slow_prior = math.ceil(0.1 * EPOCHS * IMAGENET / 320 / 1000)
    rows = [
        ["decoding", "speed", f"{assumed('cores')} cores feed {span(min(feeds), max(feeds), '.1f')} GPUs"],
        ["the recipe's own batch", "speed", "from 65 GPUs on, some have no labeled image"],
        ["a batch of 384 on each GPU", "accuracy", too_many],
        ["a momentum of 0.999", "accuracy", f"remembers more than 10 % of 50 epochs from {slow_prior} GPUs"],
    ]
    for key in ("separate", "one-low", "one-high"):
        work = found[key]
        short = [f"{link.name}: from {gpus} GPUs" for link in links() if (gpus := first_below(work, link))]
        label = f"network, {work.name}, {1000 * work.seconds:.0f} ms"
        rows.append([label, "speed", "below 90 %, " + "; ".join(short) if short else "above 90 % on all three links"])
    rows.append(["index of the images", "memory", f"a node holds {now:.2f} billion images now, {better:.0f} if shared"])
    rows.append(["labels kept on each GPU", "memory", f"{STATE} bytes an image: {STATE} GB for a billion"])
    return table(["what", "threatens", "where"], rows)


def known() -> str:
    rows = [
        [name, f"{measured(name):g}", f"[{file}](../{file}), `{field}`"] for name, (file, field) in MEASURED.items()
    ]
    return table(["measured", "value", "where"], rows)


def assumptions() -> str:
    return table(["assumed", "value", "why"], [[unit, f"{value:,}", why] for value, unit, why in ASSUMPTIONS.values()])


TABLES = {
    "counted": counted,
    "steps": steps,
    "exchanged": exchanged,
    "messages": small_messages,
    "efficiency": efficiencies,
    "synchronised": synchronised,
    "divided": divided,
    "runs": runs,
    "reading": reading,
    "billion": billion,
    "batches": batches,
    "breaks": breaks,
    "measured": known,
    "assumptions": assumptions,
}


def numbers() -> dict[str, object]:
    """The same for programs: efficiencies by step, link, overlap and GPUs, and what they rest on."""
    found = works()
    curves = {
        key: {
            link.name: {
                name: {gpus: round(efficiency(work, gpus, link, overlap), 4) for gpus in GPUS}
                for name, overlap in (("no overlap", False), ("overlap", True))
            }
            for link in links()
        }
        for key, work in found.items()
    }
    return {
        "networks": {
            network.name: {
                "parameters": network.parameters,
                "macs": network.macs,
                "gradient_bytes": {"bf16": network.gradient_bytes(2), "float32": network.gradient_bytes()},
                "prior_bytes": prior_bytes(network),
            }
            for network in (wide_resnet(), resnet50())
        },
        "steps": {key: {"flop": w.flop, "ms": 1000 * w.seconds, "origin": w.origin} for key, w in found.items()},
        "efficiency": curves,
        "measured": {name: {"value": measured(name), "file": file} for name, (file, _) in MEASURED.items()},
        "assumed": {name: {"value": value, "unit": unit} for name, (value, unit, _) in ASSUMPTIONS.items()},
    }


def filled(page: str) -> str:
    """The page with every table as it is computed now."""
    for name, make in TABLES.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        if len(marked.findall(page)) != 1:
            raise SystemExit(f"the page has no place for the table {name}: expected <!-- {name} --> ... <!-- end -->.")
        text = make()
        page = marked.sub(lambda found, text=text: f"{found[1]}\n{text}\n{found[2]}", page)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print numbers for programs instead of tables")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scaling.md")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(filled(PAGE.read_text()))
    if options.json:
        print(json.dumps(numbers(), indent=2))
    elif not options.write:
        print("\n\n".join(f"{name}\n\n{make()}" for name, make in TABLES.items()))


if __name__ == "__main__":
    main()
