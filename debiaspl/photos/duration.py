"""How long encoding photos will take: a few images of the encoder are timed. Networks that learn their features say so
while they train."""

import time

import torch

from debiaspl.encoders import Encoder
from debiaspl.encoders.encoding import batch_of
from debiaspl.models import scale


@torch.inference_mode()
def seconds_an_image(encoder: Encoder, side: int) -> float:
    """The seconds in which the encoder computes the features of one image."""
    device = next(encoder.parameters()).device
    pictures = torch.zeros((batch_of(device), 3, side, side), dtype=torch.uint8, device=device)
    seconds = []
    for _ in range(2):  # the first is slower
        started = time.perf_counter()
        encoder.embed(scale(pictures)).sum().item()
        seconds.append(time.perf_counter() - started)
    return min(seconds) / len(pictures)


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds / 10) * 10, 10)} seconds"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


def cores(device: str) -> str:
    """The machine, in words."""
    if device != "cpu":
        return "this GPU"
    count = torch.get_num_threads()
    return f"these {count} cores" if count > 1 else "one core"
