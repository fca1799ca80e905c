"""CDMAD (Lee and Kim, 2024): subtracts the network's prediction for a blank image, which shows its bias."""

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import Correction, at_least_float32, rewritten, within


class CDMAD(Correction):
    """Labels come from ``softmax(f - g)``, where g are the logits of a blank image; so does the trained classifier.

    An image of one colour shows no class, so whatever the network predicts for it is bias. No class distribution is
    needed. In every step g is computed again by the network that labels the weak views. The losses do not change.

    As in the released code the blank image is white, and labels are corrected after the first fifth of the training.
    That code normalises the blank image by its own statistics; here it uses the running ones. Its FixMatch has no
    threshold and soft labels: ``threshold=0``.

    Args:
        begin: share of the training after which labels are corrected; the trained classifier always is.
        colour: value of the blank image, from -1 (black) to 1 (white).
    """

    needs_pictures = "this correction uses a blank image, and there is no blank vector."
    blank: Tensor

    def __init__(self, num_classes: int, begin: float = 0.2, colour: float = 1.0) -> None:
        super().__init__()
        self.begin = within("begin", begin, "[0, 1]")
        self.colour = within("colour", colour, "[-1, 1]")
        self.register_buffer("blank", torch.zeros(num_classes))

    @torch.no_grad()
    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        before = network.training
        network.eval()  # a single image has no batch statistics, and must not change the running ones
        logits = network(torch.full_like(like[:1], self.colour))
        network.train(before)
        self.blank.copy_(at_least_float32(logits[0]) * (progress >= self.begin))

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        return (at_least_float32(weak_logits.detach()) - self.blank).softmax(-1)

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        blank = self.blank.to(head.weight)
        return rewritten(head, head.weight, -blank if head.bias is None else head.bias - blank)
