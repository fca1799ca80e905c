"""The fused norm against its twin, in float32 and in what a GPU trains with."""

from copy import deepcopy

import pytest
import torch

from debiaspl.kernels.norm import NormActivate
from tests.kernels.device import DEVICE, needs_triton

pytestmark = needs_triton

# channels; images, height, width: widths that are no power of two, fewer rows than a tile, many tiles
SHAPES = [(32, (4, 8, 8)), (48, (3, 5, 7)), (16, (64, 16, 16)), (128, (1, 2, 1)), (640, (2, 3, 3))]


def tensor(channels, shape, dtype, generator):
    values = 2 * torch.randn(shape[0], channels, *shape[1:], generator=generator) + 1
    return values.to(DEVICE, dtype).contiguous(memory_format=torch.channels_last)


def norm(channels, generator):
    made = NormActivate(channels, momentum=0.1, eps=1e-3, slope=0.1)
    torch.nn.init.normal_(made.weight, generator=generator)
    torch.nn.init.normal_(made.bias, generator=generator)
    return made.to(DEVICE)


def close(found, expected, dtype):
    """By the norm of the difference: near 0 the activation has a kink, and a last bit decides on which side one is."""
    error = (found.float() - expected.float()).norm() / expected.float().norm().clamp_min(1e-6)
    assert error < (5e-4 if dtype == torch.float32 else 2e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize(("channels", "shape"), SHAPES)
def test_forward_backward_and_statistics_equal_the_twin(channels, shape, adds, dtype):
    generator = torch.Generator().manual_seed(0)
    fused, twin = norm(channels, generator), None
    twin = deepcopy(fused)
    inputs = [tensor(channels, shape, dtype, generator).requires_grad_() for _ in range(1 + adds)]
    # The twin in float32 of the same rounded inputs: what is compared is the kernel's arithmetic.
    copies = [one.detach().float().requires_grad_() for one in inputs]
    pushes = [tensor(channels, shape, dtype, generator) for _ in range(2)]
    found, expected = fused.fused(*inputs, *([] if adds else [None])), twin.plain(*copies)
    for one, other, push in ((found, inputs, pushes), (expected, copies, [push.float() for push in pushes])):
        torch.autograd.backward(one, push, inputs=[*other, *(fused if one is found else twin).parameters()])
    for one, other in zip(found, expected, strict=True):
        close(one, other, dtype)
    for one, other in zip(inputs, copies, strict=True):
        close(one.grad, other.grad, dtype)
    for one, other in zip((*fused.parameters(), *fused.buffers()), (*twin.parameters(), *twin.buffers()), strict=True):
        close(one if one.grad is None else one.grad, other if other.grad is None else other.grad, dtype)


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize(("channels", "shape"), SHAPES)
def test_eval_mode_equals_the_twin(channels, shape, adds):
    generator = torch.Generator().manual_seed(1)
    made = norm(channels, generator).eval()
    made.running_mean.normal_()
    made.running_var.uniform_(0.5, 2)
    inputs = [tensor(channels, shape, torch.float32, generator) for _ in range(1 + adds)]
    with torch.no_grad():
        found, expected = made.fused(*inputs, *([] if adds else [None])), made.plain(*inputs)
    for one, other in zip(found, expected, strict=True):
        close(one, other, torch.float32)


def test_a_total_that_is_not_used_further_gets_no_gradient():
    generator = torch.Generator().manual_seed(2)
    fused = norm(32, generator)
    twin = deepcopy(fused)
    inputs = [tensor(32, (4, 8, 8), torch.float32, generator).requires_grad_() for _ in range(2)]
    copies = [one.detach().clone().requires_grad_() for one in inputs]
    fused.fused(*inputs)[1].square().sum().backward()
    twin.plain(*copies)[1].square().sum().backward()
    for one, other in zip(inputs, copies, strict=True):
        close(one.grad, other.grad, torch.float32)


def test_the_same_inputs_give_the_same_bits():
    generator = torch.Generator().manual_seed(3)
    made = norm(32, generator)
    inputs = [tensor(32, (16, 16, 16), torch.bfloat16, generator).requires_grad_() for _ in range(2)]
    outcomes = []
    for _ in range(2):
        _, active = made.fused(*inputs)
        outcomes.append((active.detach(), *torch.autograd.grad(active.float().square().sum(), [*inputs, made.weight])))
    assert all(torch.equal(one, other) for one, other in zip(*outcomes, strict=True))
