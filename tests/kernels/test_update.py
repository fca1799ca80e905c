"""The fused update against torch's own SGD and the average of the weights."""

import pytest
import torch

from tests.kernels.device import DEVICE, needs_triton

pytestmark = needs_triton


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize("copies", [True, False])
def test_update_equals_sgd_with_nesterov_momentum(size, copies):
    from debiaspl.kernels.update_triton import update

    generator = torch.Generator().manual_seed(0)
    values = torch.randn(size, generator=generator).to(DEVICE)
    twin = torch.nn.Parameter(values.clone())
    optimizer = torch.optim.SGD([twin], lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)
    momentum, average = torch.zeros_like(values), values.clone()
    twin_average = values.clone()
    work = torch.empty_like(values, dtype=torch.bfloat16) if copies else None
    rate = torch.tensor(0.03, dtype=torch.float64, device=DEVICE)
    for _ in range(3):
        gradient = torch.randn(size, generator=generator).to(DEVICE)
        update(values, gradient, momentum, average, work, rate, 5e-4, 0.9, 0.01)
        twin.grad = gradient.clone()
        optimizer.step()
        twin_average.lerp_(twin.detach(), 0.01)
    torch.testing.assert_close(values, twin.detach())
    torch.testing.assert_close(average, twin_average)
    if work is not None:
        torch.testing.assert_close(work.float(), values, rtol=1e-2, atol=1e-6)
