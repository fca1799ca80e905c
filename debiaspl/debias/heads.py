"""Classifiers of normalised features: cosines (LDAM, RIDE), and several heads (Causal Norm, RIDE)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.debias.correction import at_least_float32

MEAN_MOMENTUM = 0.9


class NormalisedHead(nn.Linear):
    """Logits ``scale * mean over k of w_k x_k / ((|w_k| + slack) |x_k|)``: features x and the weights w of a class are
    cut into K equal parts, the ``heads``. One head without ``slack`` (Causal Norm's gamma) is ``scale`` times a cosine.

    In training it follows the mean feature, of whose direction ``alpha`` is removed. The bias is not trained: it is 0,
    unless a correction of the trained classifier sets it.
    """

    mean: Tensor
    alpha: Tensor

    def __init__(
        self, num_features: int, num_classes: int, heads: int = 1, scale: float = 30.0, slack: float = 0.0
    ) -> None:
        if num_features % heads:
            raise ValueError(f"there are {num_features} features for {heads} heads, expected a multiple of {heads}.")
        super().__init__(num_features, num_classes)
        nn.init.zeros_(self.bias)
        self.heads, self.scale, self.slack = heads, scale, slack
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("alpha", torch.zeros(()))

    def forward(self, features: Tensor) -> Tensor:
        if self.training:
            mean = ranks.mean(at_least_float32(features.detach()).mean(0))
            self.mean.lerp_(mean.to(self.mean.dtype), 1 - MEAN_MOMENTUM)
        return self.each(features).mean(0) + self.bias.detach()

    def each(self, features: Tensor) -> Tensor:
        """The logits of each head, (K, N, C)."""
        with torch.autocast(features.device.type, enabled=False):  # the scale amplifies rounding errors of bf16
            direction, parts = F.normalize(self._cut(self.mean[None]), dim=-1), F.normalize(self._cut(features), dim=-1)
            direct = parts - self.alpha * (parts @ direction.mT) * direction
            weight = self._cut(self.weight)
            length = (weight.norm(dim=-1, keepdim=True) + self.slack).clamp_min(torch.finfo(weight.dtype).tiny)
            return self.scale * direct @ (weight / length).mT

    def _cut(self, rows: Tensor) -> Tensor:
        """Rows, (N, D), as the rows of each head, (K, N, D / K)."""
        return at_least_float32(rows).reshape(rows.shape[0], self.heads, -1).movedim(1, 0)
