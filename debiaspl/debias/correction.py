"""The null correction, the shape all corrections share, and what several of them compute."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Traits:
    """What the paper's Table 1 asks of a method against bias. True is what one would wish for."""

    helps_training: bool = False
    """Improves what is learned, rather than the finished classifier alone."""
    needs_no_class_distribution: bool = False
    """Works without being told how many images each class truly has."""
    adapts: bool = False
    """Follows the model as training goes on."""
    works_on_balanced: bool = False
    """Does something for data whose classes are equally large."""
    allows_shift: bool = False
    """Labeled and unlabeled images may have different class distributions."""


PLACES = {
    "labels": "probabilities",
    "unlabeled loss": "margin",
    "labeled loss": "labeled_margin",
    "classifier": "classifier",
}
"""Where a correction can act, and the method that does it."""


LABEL_SHARES = "the shares of the classes among the labels"
"""What several corrections take out, each in its own places."""


class Correction(nn.Module):
    """What stands between a model's predictions and the pseudo-labels made from them. This one changes nothing.

    ``correction(weak_logits)`` gives the probabilities that pseudo-labels are taken from and, in training mode, learns
    from the batch; ``correction.margin(strong_logits, labels)`` gives the logits that the loss sees.

    A sibling overrides ``probabilities`` and ``margin``, and ``learn`` if it adapts. Whatever it learns is a buffer.
    Two more places are open to it: ``labeled_margin``, for the loss of labeled images, and ``classifier``, for what is
    done to the finished classifier. One that must see the network itself has ``look``. What it must be told of the
    data it names in its constructor: ``num_classes``, and ``class_counts``, the labels of each class, if it cannot do
    without.
    """

    traits: Traits | None = None
    """Table 1 of the paper; None where there is nothing to compare."""
    corrects_pseudo_labels_alone = False
    """Does nothing where there are no pseudo-labels."""
    needs_hard_labels = False
    """Its margin belongs to one class, so that it has no meaning for soft or mixed targets."""
    looks = False
    """Looks at the network itself, with ``look``."""
    needs_pictures = ""
    """Why it has no meaning for the vectors of a frozen encoder, in a sentence; empty where it has."""
    takes_out = ""
    """The bias that it takes out, where others take out the same in other places: not with one of those."""

    def places(self) -> frozenset[str]:
        """Where it acts, of ``PLACES``: those whose method is its own."""
        return frozenset(
            place for place, method in PLACES.items() if getattr(type(self), method) is not getattr(Correction, method)
        )

    def forward(self, weak_logits: Tensor) -> Tensor:
        """Probabilities for pseudo-labels, from what was known before this batch; then learn from the batch."""
        probabilities = self.probabilities(weak_logits)
        if self.training:
            self.learn(weak_logits)
        return probabilities

    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        """See the network: before each step the one that labels, in the end the finished one. ``like`` are images of
        the shape that it takes, ``progress`` is the share of the training that is done. For those with ``looks``."""

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        """Corrected probabilities. Targets, so no gradient passes; nothing is learned."""
        return at_least_float32(weak_logits.detach()).softmax(-1)

    def learn(self, weak_logits: Tensor) -> None:
        """Learn from one batch of raw logits of the weak views."""

    def hold(self) -> None:
        """From here to ``release``, batches are parts of one: what is learned from them is not used before then."""

    def release(self) -> None:
        """Learn from all that was held as from one batch."""

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of the strong views as the loss should see them; ``labels`` are their hard targets, if any."""
        return at_least_float32(strong_logits)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of labeled images as the loss should see them."""
        return at_least_float32(logits)

    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        """The finished classifier as it should be used; ``mean_features``, (D,), is the mean over training images."""
        return head


def at_least_float32(logits: Tensor) -> Tensor:
    """Half precision rounds a log-probability to 2 or 3 digits: corrections compute in float32, float64 stays."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def checked_counts(class_counts: Sequence[int]) -> Tensor:
    """The counts, (C,), in float32. A class without a label has no logarithm and no margin."""
    counts = torch.tensor([float(count) for count in class_counts], dtype=torch.float64)
    if len(counts) < 2:
        raise ValueError(f"class_counts is {tuple(class_counts)}, expected the number of labels of at least 2 classes.")
    empty = [number for number, count in enumerate(counts.tolist()) if not 1 <= count < float("inf")]
    if empty:
        raise ValueError(
            f"class_counts is {tuple(class_counts)}, expected at least 1 label of every class; see "
            f"{'classes' if len(empty) > 1 else 'class'} {', '.join(map(str, empty))}. Label an image of each, or use "
            "a correction that asks for no counts, such as debiaser."
        )
    return counts.float()


def rewritten(head: nn.Linear, weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A new classifier with this weight and bias; ``head`` stays as it is."""
    # A copy rather than nn.Linear(...): the first weights of a new one would be drawn from the user's generator.
    new = deepcopy(head)
    trained = head.weight.requires_grad
    new.weight = nn.Parameter(weight.detach().to(head.weight, copy=True), requires_grad=trained)
    bias = None if bias is None else nn.Parameter(bias.detach().to(head.weight, copy=True), requires_grad=trained)
    new.register_parameter("bias", bias)
    return new
