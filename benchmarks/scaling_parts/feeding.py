"""What every rank does or keeps beside the network: decoding, and what is known of each image."""

import math

from benchmarks.scaling_parts.origin import assumed, measured
from debiaspl.models.predict import BATCH

IMAGENET, EPOCHS = 1_281_167, 50
TEST_BATCHES = math.ceil(50_000 / BATCH)
INDEX, ORDER, POSITION, LABELS, STATE = 20, 8, 8, 16, 24
"""Bytes for each image: shard, offset and size; its place in the shuffled order; its place in the split; label and
truth; on the GPU label, truth and adopted label."""


def decode_rates() -> tuple[float, float]:
    """Images a second and core, ImageNet: ours of small files by the number of pixels, and Pillow's published."""
    ours = measured("streaming, images/s, two cores, the same files") / 2
    return ours * 128**2 / assumed("pixels"), assumed("pillow")


def evaluation_seconds(gpus: int) -> tuple[float, float]:
    """To decode the test images, which ranks share by whole batches, slow and fast."""
    images = BATCH * math.ceil(TEST_BATCHES / gpus)
    slow, fast = (images / (assumed("cores") * rate) for rate in decode_rates())
    return slow, fast


def index_seconds(images: int) -> float:
    """Before the first step every rank reads the headers of all shards."""
    return images / assumed("headers")


def host_bytes(images: int) -> tuple[float, float]:
    """Memory of a node for what is known of each image: as it is, and if all processes shared it.

    As it is, a rank holds index, positions, labels and names. Its two feeds have as many workers each as it has cores:
    every one is spawned with an index of its own, and those of the unlabeled images shuffle for themselves.
    """
    rank = INDEX + POSITION + LABELS + assumed("name") + assumed("cores") * (2 * INDEX + ORDER)
    return assumed("node") * rank * images, (INDEX + ORDER + POSITION) * images
