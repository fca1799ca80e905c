"""The null correction, which is the interface of all corrections, and functions that several of them share."""

from collections.abc import Sequence
from copy import deepcopy
from inspect import signature
from typing import TypeVar

import torch
from torch import Tensor, nn

PLACES = {
    "labels": "probabilities",
    "unlabeled loss": "margin",
    "labeled loss": "labeled_margin",
    "classifier": "classifier",
}
"""Places where a correction can act -> the method that does it."""


LABEL_SHARES = "the shares of the classes among the labels"
"""What several corrections remove, in different places."""


class Correction(nn.Module):
    """Corrects a model's predictions before pseudo-labels are made from them. This base class changes nothing.

    ``correction(weak_logits)`` returns the probabilities from which pseudo-labels are made and, in training mode,
    learns from the batch. ``correction.margin(strong_logits, labels)`` returns the logits for the loss.

    A subclass overrides ``probabilities`` and ``margin``, and ``learn`` if it adapts. Its learned state is in buffers.
    It can also override ``labeled_margin``, for the loss of labeled images, ``classifier``, for the trained classifier,
    and ``look``, if it needs the network itself. Its constructor declares the information it needs about the data:
    ``num_classes``, or ``class_counts``, the number of labels per class.
    """

    corrects_pseudo_labels_alone = False
    """Has no effect without pseudo-labels."""
    needs_hard_labels = False
    """The margin depends on one class, so it is undefined for soft or mixed targets."""
    looks = False
    """Needs the network itself, see ``look``."""
    needs_pictures = ""
    """Why it cannot work on vectors of a frozen encoder, as a sentence; empty if it can."""
    held_out = False
    """Chooses a setting for the trained classifier by labels that are held out, see ``choose``."""
    takes_out = ""
    """The bias it removes, if other corrections remove the same one elsewhere: they cannot be combined."""

    def extra_repr(self) -> str:
        values = {name: getattr(self, name, None) for name in signature(type(self)).parameters}
        return ", ".join(f"{name}={value}" for name, value in values.items() if isinstance(value, int | float))

    def places(self) -> frozenset[str]:
        """The places where it acts, of ``PLACES``: those whose method it overrides."""
        return frozenset(
            place for place, method in PLACES.items() if getattr(type(self), method) is not getattr(Correction, method)
        )

    def each(self) -> "tuple[Correction, ...]":
        """The corrections it consists of: itself, unless it is a composite."""
        return (self,)

    def forward(self, weak_logits: Tensor) -> Tensor:
        """Return probabilities for pseudo-labels, from the state before this batch; then learn from the batch."""
        probabilities = self.probabilities(weak_logits)
        if self.training:
            self.learn(weak_logits)
        return probabilities

    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        """Inspect the network: before each step the one that labels, and finally the trained one. ``like`` are images
        of the input shape, ``progress`` is the completed share of the training. Called only if ``looks`` is true."""

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        """Corrected probabilities. They are targets, so they have no gradient; nothing is learned."""
        return at_least_float32(weak_logits.detach()).softmax(-1)

    def learn(self, weak_logits: Tensor) -> None:
        """Learn from one batch of raw logits of the weak views."""

    def hold(self) -> None:
        """Treat the batches from here to ``release`` as parts of one batch, and learn from them only then."""

    def release(self) -> None:
        """Learn from all held batches as from one."""

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of the strong views for the loss; ``labels`` are their hard targets, if any."""
        return at_least_float32(strong_logits)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of labeled images for the loss."""
        return at_least_float32(logits)

    def class_weights(self) -> Tensor | None:
        """Weights of the classes in both losses, (C,); None if they count equally."""
        return None

    def choose(self, head: nn.Linear, features: Tensor, labels: Tensor) -> None:
        """Before ``classifier``: choose a setting by held-out images. Called only if ``held_out`` is true."""

    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        """The corrected classifier after training; ``mean_features``, (D,), is the mean over training images."""
        return head


def at_least_float32(logits: Tensor) -> Tensor:
    """Convert half precision to float32, which keeps more than 2 or 3 digits of a log-probability; float64 stays."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


Number = TypeVar("Number", int, float)


def within(name: str, value: Number, interval: str, hint: str = "") -> Number:
    """The value of a setting. Raises unless it lies in the interval, such as ``[0, 1)`` or ``(0, inf)``."""
    low, high = map(float, interval[1:-1].split(","))
    above = low <= value if interval[0] == "[" else low < value
    below = value <= high if interval[-1] == "]" else value < high
    if not (above and below):
        raise ValueError(f"{name} is {value!r}, expected a number in {interval}{hint and ': '}{hint}.")
    return value


def checked_counts(class_counts: Sequence[int]) -> Tensor:
    """The counts, (C,), in float32. Raises if a class has no label, since it has no logarithm and no margin."""
    counts = torch.tensor([float(count) for count in class_counts], dtype=torch.float64)
    if len(counts) < 2:
        raise ValueError(f"class_counts is {tuple(class_counts)}, expected the number of labels of at least 2 classes.")
    empty = [number for number, count in enumerate(counts.tolist()) if not 1 <= count < float("inf")]
    if empty:
        raise ValueError(
            f"class_counts is {tuple(class_counts)}, expected a label of every class: see classes "
            f"{', '.join(map(str, empty))}. Label an image of each, or use debiaser, which needs no counts."
        )
    return counts.float()


def rewritten(head: nn.Linear, weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A new classifier with this weight and bias; ``head`` stays as it is."""
    # A copy, not nn.Linear(...), which would draw its first weights from the user's random generator.
    new = deepcopy(head)
    trained = head.weight.requires_grad
    new.weight = nn.Parameter(weight.detach().to(head.weight, copy=True), requires_grad=trained)
    bias = None if bias is None else nn.Parameter(bias.detach().to(head.weight, copy=True), requires_grad=trained)
    new.register_parameter("bias", bias)
    return new
