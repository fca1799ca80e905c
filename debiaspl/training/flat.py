"""Flat tensors: parameters, their gradients and averages, each as views of one tensor in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ALIGNED = 64
"""In elements: every parameter starts on a boundary that fast kernels need."""


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters that are updated in the same way."""

    parameters: tuple[nn.Parameter, ...]
    """What the network computes with, and for which gradients are computed."""
    weight_decay: float
    values: Tensor
    """Their float32 values, flat."""
    exact: tuple[Tensor, ...]
    """The same, as views with the parameters' shapes."""
    momentum: Tensor
    """SGD's velocity, or AdamW's mean of the gradients."""
    squares: Tensor | None
    """AdamW's mean of the squared gradients."""
    scale: float
    """Factor of the learning rate."""
    gradients: Tensor
    gradient_views: tuple[Tensor, ...]
    average: Tensor | None
    """The averages of the values, flat; of an algorithm's parameters, only those of further classifiers have one."""
    work: Tensor | None
    """The tensor of which the parameters are views, if that is not the values themselves."""


def parameter_group(
    parameters: Sequence[nn.Parameter],
    averages: Sequence[Tensor],
    weight_decay: float,
    half: bool,
    adamw: bool,
    scale: float = 1.0,
) -> ParameterGroup:
    dtype = torch.bfloat16 if half else torch.get_default_dtype()
    values = torch.zeros(_length(parameters), device=parameters[0].device)
    exact = _views(values, parameters)
    for view, parameter in zip(exact, parameters, strict=True):
        view.copy_(parameter.data)
    work = values.to(dtype) if half else None
    for parameter, view in zip(parameters, _views(values if work is None else work, parameters), strict=True):
        parameter.data = view
    gradients = torch.zeros_like(values, dtype=dtype)
    return ParameterGroup(
        parameters=tuple(parameters),
        weight_decay=weight_decay,
        values=values,
        exact=exact,
        momentum=torch.zeros_like(values),
        squares=torch.zeros_like(values) if adamw else None,
        scale=scale,
        gradients=gradients,
        gradient_views=_views(gradients, parameters),
        average=flatten(averages, torch.get_default_dtype()) if averages else None,
        work=work,
    )


def flatten(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """One flat tensor with the values of all tensors, which become views of it."""
    if not tensors:
        return torch.zeros(0)
    flat = torch.zeros(_length(tensors), dtype=dtype, device=tensors[0].device)
    for tensor, view in zip(tensors, _views(flat, tensors), strict=True):
        view.copy_(tensor.data)
        tensor.data = view
    return flat


def _length(tensors: Sequence[Tensor]) -> int:
    return sum(-(-tensor.numel() // ALIGNED) * ALIGNED for tensor in tensors)


def _views(flat: Tensor, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the flat tensor with the shapes and strides of these tensors, which are dense in memory."""
    views, start = [], 0
    for tensor in like:
        views.append(flat.as_strided(tensor.shape, tensor.stride(), start))
        start += -(-tensor.numel() // ALIGNED) * ALIGNED
    return tuple(views)
