"""Endless, seeded index streams whose position is a single number."""

import torch
from torch import Tensor


class IndexStream:
    """Shuffled positions 0..size-1, epoch after epoch, without end.

    Batch k depends only on the seed and k, so a resumed run only needs to know k. Several ranks can each take one of
    ``parts`` equal parts of the same batch: together they see what a single process would.
    """

    def __init__(self, size: int, batch: int, seed: int, part: int = 0, parts: int = 1) -> None:
        if size < 1 or batch < 1:
            raise ValueError(f"a stream needs at least one image and one per batch; found {size} and {batch}.")
        if not 0 <= part < parts or batch % parts:
            raise ValueError(f"part {part} of {parts} of a batch of {batch}, expected one of equal parts.")
        self.size, self.batch, self.seed = size, batch, seed
        self.rows = batch // parts
        """Number of positions in a part."""
        self.first = part * self.rows
        """Place of the first of them in the whole batch."""
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def __getitem__(self, number: int) -> Tensor:
        """Positions of batch ``number``. A batch that reaches the end of an epoch continues with the next one."""
        start, parts, missing = number * self.batch + self.first, [], self.rows
        while missing:
            epoch, offset = divmod(start, self.size)
            part = self._shuffled(epoch)[offset : offset + missing]
            parts.append(part)
            start, missing = start + len(part), missing - len(part)
        return torch.cat(parts)

    def _shuffled(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            # Neighbouring seeds share no epoch within the first million of each.
            generator = torch.Generator().manual_seed((self.seed << 20) + epoch)
            self._epoch, self._order = epoch, torch.randperm(self.size, generator=generator)
        return self._order


class BalancedStream(IndexStream):
    """A stream with the same number of every class: one image of each in turn, each class shuffled by itself."""

    def __init__(self, classes: Tensor, batch: int, seed: int, part: int = 0, parts: int = 1) -> None:
        super().__init__(len(classes), batch, seed, part, parts)
        classes = classes.cpu()
        self._members = [(classes == one).nonzero().flatten() for one in torch.unique(classes)]
        # Classes have seeds of their own, which other streams do not have: those are small.
        seeds = [(((seed + 1) << 20) + number) % 2**43 for number in range(len(self._members))]
        self._streams = [IndexStream(len(own), 1, one) for own, one in zip(self._members, seeds, strict=True)]

    def __getitem__(self, number: int) -> Tensor:
        start = number * self.batch + self.first
        turns = (divmod(place, len(self._members)) for place in range(start, start + self.rows))
        return torch.cat([self._members[one][self._streams[one][turn]] for turn, one in turns])
