"""Images per second of the weak and the strong view: Pillow, image by image, against debiaspl.augment.

    python benchmarks/augment.py            # both rates and their ratio
    python benchmarks/augment.py --json     # the same, for a program

Both sides make the same views of the same 32 x 32 patches of two photographs, in this process and on the same cores:
flip and reflect-padded crop, then FixMatch's RandAugment and Cutout. The measurements alternate, and medians are given.
Pillow uses one core, and a data loader would start it once per core: the ratio of one thread is the one per core.
"""

import argparse
import json
import platform
import random
import statistics
import time
from collections.abc import Callable

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps
from sklearn.datasets import load_sample_images

from debiaspl.augment import RandAugment, Weak

Pixels = NDArray[np.uint8]
SIDE, PAD = 32, 4


def patches(count: int) -> Pixels:
    """The first `count` square patches of the photographs, (N, H, W, C)."""
    tiles = [
        photo[top : top + SIDE, left : left + SIDE]
        for photo in load_sample_images().images
        for top in range(0, photo.shape[0] - SIDE + 1, SIDE)
        for left in range(0, photo.shape[1] - SIDE + 1, SIDE)
    ]
    return np.stack([tiles[i * len(tiles) // count] for i in range(count)])


def affine(image: Image.Image, *coefficients: float) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, coefficients)


def sign() -> int:
    return random.choice((-1, 1))


PILLOW: tuple[Callable[[Image.Image, int], Image.Image], ...] = (
    lambda image, m: image,
    lambda image, m: ImageOps.autocontrast(image),
    lambda image, m: ImageEnhance.Brightness(image).enhance(0.05 + 0.9 * m / 10),
    lambda image, m: ImageEnhance.Color(image).enhance(0.05 + 0.9 * m / 10),
    lambda image, m: ImageEnhance.Contrast(image).enhance(0.05 + 0.9 * m / 10),
    lambda image, m: ImageOps.equalize(image),
    lambda image, m: ImageOps.posterize(image, 4 + int(4 * m / 10)),
    lambda image, m: image.rotate(sign() * int(30 * m / 10)),
    lambda image, m: ImageEnhance.Sharpness(image).enhance(0.05 + 0.9 * m / 10),
    lambda image, m: affine(image, 1, sign() * 0.3 * m / 10, 0, 0, 1, 0),
    lambda image, m: affine(image, 1, 0, 0, sign() * 0.3 * m / 10, 1, 0),
    lambda image, m: ImageOps.solarize(image, 256 - int(256 * m / 10)),
    lambda image, m: affine(image, 1, 0, sign() * int(0.3 * m / 10 * SIDE), 0, 1, 0),
    lambda image, m: affine(image, 1, 0, 0, 0, 1, sign() * int(0.3 * m / 10 * SIDE)),
)

REFLECTED = np.pad(np.arange(SIDE), PAD, mode="reflect")


def pillow_view(pixels: Pixels) -> Pixels:
    """One strong view. The crop is two `take`s: quicker than the usual `np.pad` of every image."""
    top, left = random.randint(0, 2 * PAD), random.randint(0, 2 * PAD)
    columns = REFLECTED[left : left + SIDE]
    if random.random() < 0.5:
        columns = SIDE - 1 - columns
    image = Image.fromarray(pixels.take(REFLECTED[top : top + SIDE], axis=0).take(columns, axis=1))
    for apply in random.choices(PILLOW, k=2):
        if random.random() < 0.5:
            image = apply(image, random.randint(1, 9))
    row, column, half = random.randrange(SIDE), random.randrange(SIDE), SIDE // 4
    image.paste((127, 127, 127), (column - half, row - half, column + half, row + half))
    return np.asarray(image)


def pillow(images: Pixels) -> Pixels:
    return np.stack([pillow_view(pixels) for pixels in images])


def rate(work: Callable[[], object], count: int, repeats: int, threads: int) -> float:
    torch.set_num_threads(threads)
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return count * repeats / (time.perf_counter() - start)


def measure(batch: int, rounds: int, threads: int) -> dict[str, object]:
    arrays = patches(batch)
    images = torch.from_numpy(arrays).permute(0, 3, 1, 2).contiguous()
    generator = torch.Generator().manual_seed(0)
    weak, strong = Weak(), RandAugment.fixmatch()

    def ours() -> torch.Tensor:
        return strong(weak(images, generator), generator)

    def theirs() -> Pixels:
        return pillow(arrays)

    rates = []
    for number in range(rounds + 1):
        rates.append((rate(theirs, batch, 2, 1), rate(ours, batch, 10, 1), rate(ours, batch, 10, threads)))
        if number == 0:
            rates.clear()  # the first round warms up
    slow, single, many = (statistics.median(column) for column in zip(*rates, strict=True))
    return {
        "pillow_images_per_s": round(slow),
        "one_thread_images_per_s": round(single),
        "images_per_s": round(many),
        "one_thread_ratio": round(statistics.median(row[1] / row[0] for row in rates), 2),
        "ratio": round(statistics.median(row[2] / row[0] for row in rates), 2),
        "threads": threads,
        "batch": batch,
        "image": [3, SIDE, SIDE],
        "machine": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "Pillow": PIL.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=448, help="images in a batch")
    parser.add_argument("--rounds", type=int, default=15, help="alternating measurements of either side")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads that torch may use")
    parser.add_argument("--json", action="store_true", help="print JSON")
    settings = parser.parse_args()
    random.seed(0)
    result = measure(settings.batch, settings.rounds, settings.threads)
    if settings.json:
        print(json.dumps(result, indent=2))
        return
    print(f"Pillow, image by image       {result['pillow_images_per_s']:>8,} images/s")
    print(
        f"debiaspl.augment, 1 thread   {result['one_thread_images_per_s']:>8,} images/s, {result['one_thread_ratio']} x"
    )
    print(f"debiaspl.augment, {settings.threads} threads  {result['images_per_s']:>8,} images/s, {result['ratio']} x")


if __name__ == "__main__":
    main()
