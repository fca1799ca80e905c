"""Cross-level instance-group discrimination, the paper's option for images below the threshold."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.debias import ranks

TEMPERATURE = 0.07


def cld(weak: Tensor, strong: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Each strong view must find the group that its weak view belongs to (Wang et al., 2021).

    The weak probabilities, (N, C), form groups by their **most** likely class; a group's centroid is the mean of its
    members, those of all ranks. The strong probabilities are classified against the centroids of the groups that have
    members.
    """
    weak = weak.detach()
    group = weak.argmax(-1)
    members = F.one_hot(group, weak.shape[-1]).to(weak.dtype)
    with torch.autocast(weak.device.type, enabled=False):  # a temperature of 0.07 magnifies what bf16 rounds off
        # The sums and the sizes of all ranks, in one message.
        both = ranks.summed(torch.cat([members.T @ weak, members.sum(0)[:, None]], 1))
        sums, size = both[:, :-1], both[:, -1]
        centroids = sums / size.clamp_min(1)[:, None]
        similarity = strong @ centroids.T / temperature
    return F.cross_entropy(similarity.masked_fill(size == 0, float("-inf")), group)
