"""A linear classifier with other numbers in it: what the corrections of a finished classifier give back."""

from copy import deepcopy

from torch import Tensor, nn


def rewritten(head: nn.Linear, weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A new classifier with this weight and bias; ``head`` stays as it is."""
    # A copy rather than nn.Linear(...): the first weights of a new one would be drawn from the user's generator.
    new = deepcopy(head)
    trained = head.weight.requires_grad
    new.weight = nn.Parameter(weight.detach().to(head.weight, copy=True), requires_grad=trained)
    bias = None if bias is None else nn.Parameter(bias.detach().to(head.weight, copy=True), requires_grad=trained)
    new.register_parameter("bias", bias)
    return new
