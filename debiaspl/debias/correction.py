"""The null correction, and the shape all corrections share."""

import torch
from torch import Tensor, nn


class Correction(nn.Module):
    """What stands between a model's predictions and the pseudo-labels made from them. This one changes nothing.

    ``correction(weak_logits)`` gives the probabilities that pseudo-labels are taken from and, in training mode, learns
    from the batch; ``correction.margin(strong_logits)`` gives the logits that the loss sees.

    A sibling overrides ``probabilities`` and ``margin``, and ``learn`` if it adapts. Whatever it learns is a buffer.
    """

    def forward(self, weak_logits: Tensor) -> Tensor:
        """Probabilities for pseudo-labels, from what was known before this batch; then learn from the batch."""
        probabilities = self.probabilities(weak_logits)
        if self.training:
            self.learn(weak_logits)
        return probabilities

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        """Corrected probabilities. Targets, so no gradient passes; nothing is learned."""
        return at_least_float32(weak_logits.detach()).softmax(-1)

    def learn(self, weak_logits: Tensor) -> None:
        """Learn from one batch of raw logits of the weak views."""

    def margin(self, strong_logits: Tensor) -> Tensor:
        """The logits of the strong views as the loss should see them."""
        return at_least_float32(strong_logits)


def at_least_float32(logits: Tensor) -> Tensor:
    """Half precision rounds a log-probability to 2 or 3 digits: corrections compute in float32, float64 stays."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
