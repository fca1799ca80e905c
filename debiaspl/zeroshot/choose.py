"""Teachers by name."""

from pathlib import Path

import torch

from debiaspl.encoders import EncodedViews
from debiaspl.zeroshot.arrays import ENDINGS, ArraysTeacher
from debiaspl.zeroshot.teacher import Teacher

CONSE = "conse"


def find_teacher(
    name: str | None, side: int, features: Path, views: EncodedViews | None = None, device: torch.device | None = None
) -> Teacher:
    """``conse``, which is also what nothing means; a file of arrays; or a CLIP or SigLIP by hub name or folder.

    ``side`` is that of the photos; ``features`` a folder where ConSE keeps what its network sees, with these ``views``,
    for a student that is frozen.
    """
    if name is None or name.lower() == CONSE:
        from debiaspl.zeroshot.conse import ConseTeacher
        from debiaspl.zeroshot.student import lite0_size

        return ConseTeacher(lite0_size(side), features, views, device)
    if name.endswith(ENDINGS):
        return ArraysTeacher(name)
    from debiaspl.zeroshot.clip import ClipTeacher

    return ClipTeacher(name, device)
