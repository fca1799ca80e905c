"""What ranks tell each other, and that one process pays nothing for it."""

import pytest
import torch
from torch import Tensor

from debiaspl.debias import ranks
from tests.ranks import on_ranks


def test_one_process_gets_back_what_it_gave():
    values = torch.arange(6.0).requires_grad_()
    for function in (
        ranks.summed,
        ranks.mean,
        ranks.gathered,
        ranks.gathered_with_gradient,
        ranks.summed_with_gradient,
        ranks.own_part,
    ):
        assert function(values) is values
    assert (ranks.count(), ranks.own()) == (1, 0)


def told() -> dict[str, Tensor]:
    own = torch.arange(4.0, dtype=torch.float64).view(2, 2) + 10 * ranks.own()
    before = own.clone()
    found = {
        "summed": ranks.summed(own),
        "mean": ranks.mean(own),
        "gathered": ranks.gathered(own),
        "strided": ranks.gathered(own.T),
        "whole numbers": ranks.gathered(own.to(torch.int64)),
        "rows": ranks.own_part(torch.arange(6)),
        "columns": ranks.own_part(torch.arange(12).view(2, 6), 1),
        "number": torch.tensor([ranks.own(), ranks.count()]),
    }
    assert torch.equal(own, before)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_sums_and_rows_of_all_ranks(count):
    results = on_ranks(count, told)
    parts = [torch.arange(4.0, dtype=torch.float64).view(2, 2) + 10 * rank for rank in range(count)]
    for rank, found in enumerate(results):
        assert torch.equal(found["summed"], sum(parts))
        assert torch.equal(found["mean"], sum(parts) / count)
        assert torch.equal(found["gathered"], torch.cat(parts))
        assert torch.equal(found["strided"], torch.cat([part.T for part in parts]))
        assert torch.equal(found["whole numbers"], torch.cat(parts).to(torch.int64))
        assert found["rows"].tolist() == torch.arange(6).chunk(count)[rank].tolist()
        assert found["columns"].tolist() == torch.arange(12).view(2, 6).chunk(count, 1)[rank].tolist()
        assert found["number"].tolist() == [rank, count]


def rows(count: int) -> Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def loss(own: Tensor, everyone: Tensor, total: Tensor) -> Tensor:
    return (own @ everyone.T).sin().mean() + total.square().sum()


def gradient() -> tuple[Tensor, bool]:
    """Of this rank's rows, from the losses of all."""
    own = ranks.own_part(rows(6)).requires_grad_()
    everyone, total = ranks.gathered_with_gradient(own), ranks.summed_with_gradient(own.sum(0))
    (found,) = torch.autograd.grad(loss(own, everyone, total), own)
    return found, ranks.gathered(own).requires_grad or ranks.summed(own).requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_gradients_are_those_of_the_mean_loss(count):
    joint = rows(6).requires_grad_()
    (expected,) = torch.autograd.grad(loss(joint, joint, joint.sum(0)), joint)
    found, plain = zip(*on_ranks(count, gradient), strict=True)
    torch.testing.assert_close(torch.cat(found) / count, expected, atol=1e-12, rtol=1e-12)
    assert not any(plain)
