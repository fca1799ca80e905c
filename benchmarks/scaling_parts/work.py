"""One step on one GPU: what passes the network, and how long that takes."""

import json
from dataclasses import dataclass, replace
from functools import cache

from scaling_parts.count import Architecture, resnet50, wide_resnet
from scaling_parts.origin import ROOT, assumed, measured


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
    cld: bool = False
    """With the loss that groups all images of the batch by class."""
    seconds: float = 0.0
    origin: str = ""

    @property
    def images(self) -> int:
        return self.labeled + self.unlabeled

    @property
    def backward_flop(self) -> int:
        return 2 * self.both * (2 * self.network.macs - self.network.layers[0].macs)

    @property
    def flop(self) -> int:
        return 2 * (self.forward + self.both) * self.network.macs + self.backward_flop

    @property
    def label(self) -> str:
        return f"{self.name}, {1000 * self.seconds:.0f} ms"

    def at(self, tflops: float, origin: str) -> "Work":
        return replace(self, seconds=self.flop / (tflops * 1e12), origin=origin)


@cache
def works() -> dict[str, Work]:
    wrn, resnet = wide_resnet(), resnet50()
    file = "measured, results/speed/h200.json"

    def timed(mode: str, forward: int, both: int, student: bool) -> Work:
        ms = measured(f"WRN-28-2, {mode}, ms a step")
        return Work(f"WRN-28-2, {mode}", wrn, 64, 448, forward, both, student, seconds=ms / 1000, origin=file)

    found = {
        "joint": timed("joint", 0, 64 + 2 * 448, False),
        "separate": timed("separate", 448, 64 + 448, True),
        "fast": timed("fast", 448, 64 + 224, False),
    }
    reached = found["separate"].flop / found["separate"].seconds / 1e12
    for name, views in (("one", 1), ("multi", 2)):
        label = "ResNet-50" if views == 1 else "ResNet-50, multi-view"
        plain = Work(label, resnet, 64, 320, 320 * views, 64 + 320 * views, False, cld=views == 2)
        found[f"{name}-low"] = plain.at(assumed("resnet_low"), "assumed, low")
        found[f"{name}-high"] = plain.at(reached, "assumed, high: the rate of WRN-28-2, separate")
    return found


def larger(work: Work, times: int) -> Work:
    """The same step with so many times its images."""
    sizes = {name: times * getattr(work, name) for name in ("labeled", "unlabeled", "forward", "both", "seconds")}
    return replace(work, **sizes)


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
