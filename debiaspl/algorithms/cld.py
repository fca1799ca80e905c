"""Cross-level instance-group discrimination (CLD), the paper's option for images below the threshold."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.debias import ranks

TEMPERATURE = 0.07


def cld(weak: Tensor, strong: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """CLD loss: each strong view is classified into the group of its weak view (Wang et al., 2021).

    The weak probabilities, (N, C), are grouped by their **most** likely class; a group's centroid is the mean of its
    members on all ranks. The strong probabilities are classified against the centroids of non-empty groups.
    """
    weak = weak.detach()
    group = weak.argmax(-1)
    members = F.one_hot(group, weak.shape[-1]).to(weak.dtype)
    with torch.autocast(weak.device.type, enabled=False):  # a temperature of 0.07 amplifies rounding errors of bf16
        # Sums and sizes over all ranks, in one message.
        both = ranks.summed(torch.cat([members.T @ weak, members.sum(0)[:, None]], 1))
        sums, size = both[:, :-1], both[:, -1]
        centroids = sums / size.clamp_min(1)[:, None]
        similarity = strong @ centroids.T / temperature
    return F.cross_entropy(similarity.masked_fill(size == 0, float("-inf")), group)
