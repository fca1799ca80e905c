"""FixMatch with a Debiaser the way code of this field is usually written, to be measured against.

float32, eager, channels first, the three views concatenated; images are augmented one by one with Pillow in the worker
processes of a DataLoader; the average is updated parameter by parameter. The formulas are those of the package.
"""

import random
from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from benchmarks.augment import PAD, REFLECTED, SIDE, pillow_view
from debiaspl import Debiaser
from debiaspl.models import WideResNet


def _to_tensor(pixels: np.ndarray) -> Tensor:
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float().div_(127.5).sub_(1)


def _weak(pixels: np.ndarray) -> np.ndarray:
    top, left = random.randint(0, 2 * PAD), random.randint(0, 2 * PAD)
    columns = REFLECTED[left : left + SIDE]
    if random.random() < 0.5:
        columns = SIDE - 1 - columns
    return pixels.take(REFLECTED[top : top + SIDE], axis=0).take(columns, axis=1)


class Views(Dataset):
    """A weak view of each image and, of unlabeled ones, a strong one."""

    def __init__(self, images: Tensor, labels: Tensor, strong: bool) -> None:
        self.pixels, self.labels, self.strong = images.permute(0, 2, 3, 1).contiguous().numpy(), labels, strong

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, position: int):
        pixels = self.pixels[position]
        if not self.strong:
            return _to_tensor(_weak(pixels)), int(self.labels[position])
        return _to_tensor(_weak(pixels)), _to_tensor(pillow_view(pixels))


def _for_ever(views: Views, batch: int, workers: int) -> Iterator:
    sampler = torch.utils.data.RandomSampler(views, replacement=True, num_samples=10**9)
    return iter(DataLoader(views, batch, sampler=sampler, num_workers=workers, drop_last=True, pin_memory=workers > 0))


class UsualStep:
    """``step()`` draws, learns and averages once."""

    def __init__(self, labeled, unlabeled, device: torch.device, workers: int, batches=(64, 448), network=None) -> None:
        self.device = device
        self.model = (network or WideResNet(10)).to(device)
        self.average = deepcopy(self.model).eval()
        self.debias = Debiaser(10).to(device)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4
        )
        self.labeled = _for_ever(
            Views(labeled.images, labeled.labels, False), batches[0], max(workers // 8, int(workers > 0))
        )
        self.unlabeled = _for_ever(Views(unlabeled.images, unlabeled.labels, True), batches[1], workers)

    def __call__(self) -> None:
        images, labels = next(self.labeled)
        weak, strong = next(self.unlabeled)
        count = len(images)
        inputs = torch.cat([images, weak, strong]).to(self.device, non_blocking=True)
        logits = self.model(inputs)
        labels = labels.to(self.device, non_blocking=True)
        logits_weak, logits_strong = logits[count:].chunk(2)
        confidence, pseudo = self.debias(logits_weak).max(-1)
        unlabeled = F.cross_entropy(self.debias.margin(logits_strong), pseudo, reduction="none") * (confidence >= 0.95)
        loss = F.cross_entropy(logits[:count], labels) + unlabeled.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self._average(self.model)
        self.last = loss.item()  # progress bars show it

    @torch.no_grad()
    def _average(self, model: nn.Module) -> None:
        for own, other in zip(self.average.state_dict().values(), model.state_dict().values(), strict=True):
            if own.is_floating_point():
                own.mul_(0.999).add_(other, alpha=0.001)
