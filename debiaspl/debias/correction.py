"""The null correction, which is the interface of all, and functions that several of them share."""

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

    A subclass overrides the methods of the ``PLACES`` where it acts, ``learn`` if it adapts, and ``look`` if it needs
    the network itself. Its learned state is in buffers. Its constructor declares what it needs to know of the data:
    ``num_classes``, or ``class_counts``, the number of labels per class.
    """

    corrects_pseudo_labels_alone = False
    """Has no effect without pseudo-labels."""
    needs_hard_labels = False
    """The margin depends on one class, so it is undefined for soft or mixed targets."""
    needs_pictures = ""
    """Why it cannot work on vectors, as a sentence; empty if it can."""
    held_out = False
    """Chooses a setting by labels that are held out, see ``choose``."""
    takes_out = ""
    """The bias it removes, if other corrections remove the same one elsewhere: they cannot be combined."""

    def extra_repr(self) -> str:
        values = {name: getattr(self, name, None) for name in signature(type(self)).parameters}
        return ", ".join(f"{name}={value}" for name, value in values.items() if isinstance(value, int | float))

    def places(self) -> frozenset[str]:
        """Where it acts, of ``PLACES``."""
        return frozenset(
            place for place, method in PLACES.items() if getattr(type(self), method) is not getattr(Correction, method)
        )

    def each(self) -> "tuple[Correction, ...]":
        """The corrections it consists of: itself, unless it is a composite."""
        return (self,)

    def forward(self, weak_logits: Tensor) -> Tensor:
        """Probabilities for pseudo-labels, from the state before this batch; in training mode it then learns."""
        probabilities = self.probabilities(weak_logits)
        if self.training:
            self.learn(weak_logits)
        return probabilities

    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        """Inspect the network: before each step the one that labels, and finally the trained one, with images of the
        shape of ``like``, at this completed share of the training."""

    def expect(self, shares: Tensor) -> None:
        """Before the first step: class shares of the unlabeled images, (C,), by labels that spread over a graph."""

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        """Corrected probabilities, without gradient; nothing is learned."""
        return at_least_float32(weak_logits.detach()).softmax(-1)

    def learn(self, weak_logits: Tensor) -> None:
        """Learn from one batch of raw logits of the weak views."""

    def hold(self) -> None:
        """Treat the batches from here to ``release`` as parts of one batch, and learn from them only then."""

    def release(self) -> None:
        """Learn from all held batches as from one."""

    def margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of the strong views for the loss; ``labels`` are their hard targets, if any."""
        return at_least_float32(logits)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of labeled images for the loss."""
        return at_least_float32(logits)

    def class_weights(self) -> Tensor | None:
        """Weights of the classes in both losses, (C,); None if they count equally."""
        return None

    def choose(self, head: nn.Linear, features: Tensor, labels: Tensor) -> None:
        """Before ``classifier``: choose a setting by held-out images."""

    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        """The corrected classifier after training; ``mean_features``, (D,), are those of the training images."""
        return head


def at_least_float32(logits: Tensor) -> Tensor:
    """Half precision becomes float32, which keeps more than 2 or 3 digits of a log-probability; float64 stays."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


Number = TypeVar("Number", int, float)


def within(name: str, value: Number, interval: str) -> Number:
    """The value. Raises unless it lies in the interval, such as ``[0, 1)`` or ``(0, inf)``."""
    low, high = map(float, interval[1:-1].split(","))
    above = low <= value if interval[0] == "[" else low < value
    below = value <= high if interval[-1] == "]" else value < high
    if not (above and below):
        raise ValueError(f"{name} is {value!r}, expected a number in {interval}.")
    return value


def checked_counts(class_counts: Sequence[int]) -> Tensor:
    """The counts, (C,), in float32. Raises if a class has no label, since it has no logarithm and no margin."""
    counts = torch.tensor([float(count) for count in class_counts], dtype=torch.float64)
    if len(counts) < 2:
        raise ValueError(f"class_counts is {tuple(class_counts)}, expected the number of labels of at least 2 classes.")
    if empty := [str(number) for number, count in enumerate(counts.tolist()) if not 1 <= count < float("inf")]:
        found = f"class_counts is {tuple(class_counts)}, without a label of classes {', '.join(empty)}"
        raise ValueError(f"{found}. Label an image of each, or use debiaser with target=uniform.")
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
