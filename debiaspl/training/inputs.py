"""Inputs of a step, in tensors that keep their memory, so that a recorded step can use them again."""

import torch
from torch import Tensor

from debiaspl.data import Drawn


class Inputs:
    """The number of the step, its schedule values, and its images."""

    def __init__(self, labeled: int, unlabeled: int, device: torch.device) -> None:
        # One tensor and one copy per step; float64 stores a position exactly.
        self._all = torch.zeros(3 + labeled + unlabeled, dtype=torch.float64, device=device)
        self._labeled = labeled
        self._pictures: dict[str, tuple[Tensor, ...]] = {}

    def set(self, number: int, progress: float, rate: float, labeled: Drawn, unlabeled: Drawn | None) -> None:
        """Set the inputs of the next step. Nothing waits for the device."""
        drawn = [labeled] if unlabeled is None else [labeled, unlabeled]
        parts = [
            torch.tensor([number, progress, rate], dtype=torch.float64),
            *(part.positions.double() for part in drawn),
        ]
        message = torch.cat(parts)
        there = self._all[: len(message)]
        if there.is_cuda:
            message = message.pin_memory()
        there.copy_(message, non_blocking=True)
        for name, part in zip(("labeled", "unlabeled"), drawn, strict=False):
            self._take_pictures(name, part.pictures)

    def _take_pictures(self, name: str, pictures: tuple[Tensor, ...]) -> None:
        if name not in self._pictures:
            self._pictures[name] = tuple(torch.empty_like(picture) for picture in pictures)
        for own, picture in zip(self._pictures[name], pictures, strict=True):
            own.copy_(picture)  # from the same device: a feed has put the pictures there

    @property
    def number(self) -> Tensor:
        return self._all[0].long()

    @property
    def progress(self) -> Tensor:
        return self._all[1].float()

    @property
    def rate(self) -> Tensor:
        return self._all[2]

    def positions(self, name: str) -> Tensor:
        """Positions of the ``labeled`` or the ``unlabeled`` images."""
        part = self._all[3 : 3 + self._labeled] if name == "labeled" else self._all[3 + self._labeled :]
        return part.long()

    def pictures(self, name: str) -> tuple[Tensor, ...]:
        """Pictures that came with their positions; empty if they are looked up."""
        return self._pictures[name]
