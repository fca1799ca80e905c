"""What a step is told from outside, in tensors that stay where they are, so that a recorded step finds them again."""

import torch
from torch import Tensor

from debiaspl.data import Drawn


class Inputs:
    """The number of the step, its place in the schedule, and which images it sees."""

    def __init__(self, labeled: int, unlabeled: int, device: torch.device) -> None:
        # One tensor, one message a step; float64 holds a position exactly.
        self._all = torch.zeros(3 + labeled + unlabeled, dtype=torch.float64, device=device)
        self._labeled = labeled
        self._pictures: dict[str, tuple[Tensor, ...]] = {}

    def set(self, number: int, progress: float, rate: float, labeled: Drawn, unlabeled: Drawn | None) -> None:
        """What the next step shall see. Nothing waits for the device."""
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
            own.copy_(picture)  # from the same device: a feed brings pictures there

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
        """Of the ``labeled`` or the ``unlabeled`` images."""
        part = self._all[3 : 3 + self._labeled] if name == "labeled" else self._all[3 + self._labeled :]
        return part.long()

    def pictures(self, name: str) -> tuple[Tensor, ...]:
        """Pictures that came with their positions; none where they are looked up."""
        return self._pictures[name]
