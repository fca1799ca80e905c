"""CDMAD (Lee and Kim, 2024): what a network says of an image without content is its bias, and is subtracted."""

import torch
from torch import Tensor, nn

from debiaspl.debias.correction import Correction, Traits, at_least_float32, rewritten


class CDMAD(Correction):
    """Labels come from ``softmax(f - g)``, where g are the logits of a blank image; so does the finished classifier.

    An image of one colour shows nothing of any class, so that whatever the network prefers there is bias: it asks for
    no class distribution, neither of the labeled nor of the unlabeled images. In every step g is seen anew, by the
    network that labels the weak views. The losses are left alone. In the end ``f - g`` is an ordinary linear
    classifier, whose bias has g taken off.

    As in the released code the blank image has the value 1 everywhere, white here, and labels are corrected after the
    first fifth of the training. There it passes in training mode, normalised by its own statistics; here by the moving
    ones, as in the test, and they do not move. The released FixMatch has no threshold and soft labels: ``threshold=0``.

    Args:
        num_classes: number of classes (C).
        begin: share of the training after which labels are corrected; the finished classifier always is.
        colour: value of the blank image, from -1, black, to 1, white.
    """

    traits = Traits(
        helps_training=True,
        needs_no_class_distribution=True,
        adapts=True,
        works_on_balanced=True,
        allows_shift=True,
    )
    looks = True
    needs_pictures = "a correction by a blank image is asked for, and a vector has no blank."
    blank: Tensor

    def __init__(self, num_classes: int, begin: float = 0.2, colour: float = 1.0) -> None:
        super().__init__()
        if not 0 <= begin <= 1:
            raise ValueError(f"begin is {begin!r}, expected a share of the training in [0, 1]; 0 begins at once.")
        if not -1 <= colour <= 1:
            raise ValueError(f"colour is {colour!r}, expected a number from -1, black, to 1, white.")
        self.begin, self.colour = begin, colour
        self.register_buffer("blank", torch.zeros(num_classes))

    @torch.no_grad()
    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        before = network.training
        network.eval()  # one image has no statistics of a batch, and must not move those that the network keeps
        logits = network(torch.full_like(like[:1], self.colour))
        network.train(before)
        self.blank.copy_(at_least_float32(logits[0]) * (progress >= self.begin))

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        return (at_least_float32(weak_logits.detach()) - self.blank).softmax(-1)

    @torch.no_grad()
    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        blank = self.blank.to(head.weight)
        return rewritten(head, head.weight, -blank if head.bias is None else head.bias - blank)

    def extra_repr(self) -> str:
        return f"begin={self.begin}, colour={self.colour}"
