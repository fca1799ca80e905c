"""Batch norm over the batches of all ranks is that of one process on the joint batch."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.kernels.norm import NormActivate, synchronise_norms
from debiaspl.models import MODELS
from tests.ranks import on_ranks

SETTINGS: dict[str, dict[str, Any]] = {
    "small": {"width": 3},
    "wrn": {"norm_momentum": 0.2, "depth": 10, "width": 1},
    "resnet9": {"widths": (4, 6, 8, 10)},
}


class Norms(nn.Module):
    """Every kind: with a sum, without weights, without statistics, with statistics that are a plain mean."""

    def __init__(self) -> None:
        super().__init__()
        self.first = NormActivate(3, 0.3, 1e-3, 0.1)
        self.second = nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.Tanh())
        self.third = nn.BatchNorm2d(3, momentum=None)
        self.fourth = nn.BatchNorm2d(3, track_running_stats=False)

    def forward(self, images: Tensor) -> Tensor:
        total, active = self.first(images, images.roll(1, 1))
        out: Tensor = self.fourth(self.third(self.second(active)) * total)
        return out.flatten(1)


def network(name: str, synchronised: bool = True) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = Norms() if name == "norms" else MODELS[name](5, channels=3, **SETTINGS[name])
        for module in made.modules():  # weights of 1 and biases of 0 would hide what is done with them
            if isinstance(module, nn.BatchNorm2d | NormActivate) and module.weight is not None:
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
    if synchronised:
        synchronise_norms(made)
    return made.double()


def images() -> Tensor:
    """Each differs much from the others: the statistics of a part are not those of the whole."""
    generator = torch.Generator().manual_seed(2)
    scale = torch.rand(6, 1, 1, 1, generator=generator, dtype=torch.float64)
    return 20 * scale + scale * torch.randn(6, 3, 8, 8, generator=generator, dtype=torch.float64)


def passed(name: str, synchronised: bool = True) -> dict[str, Any]:
    made = network(name, synchronised)
    for _ in range(2):
        own = ranks.own_part(images()).requires_grad_()
        out = made(own)
        loss = out.sin().square().mean() + out[:, 0].mean()
        inner, *weights = torch.autograd.grad(loss, [own, *made.parameters()])
    made.eval()
    # A rank by itself: with a message in eval mode this would wait for ever.
    evaluated = made(images()) if ranks.own() == 0 and name != "norms" else torch.zeros(1)
    return {
        "out": out.detach(),
        "images": inner,
        "weights": [ranks.mean(weight) for weight in weights],
        "state": made.state_dict(),
        "evaluated": evaluated.detach(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", ["norms", *SETTINGS])
def test_outputs_gradients_and_statistics_are_those_of_the_joint_batch(name, count):
    results, alone = on_ranks(count, passed, name), passed(name, synchronised=False)
    close = {"atol": 1e-9, "rtol": 1e-9}
    torch.testing.assert_close(torch.cat([result["out"] for result in results]), alone["out"], **close)
    found = torch.cat([result["images"] for result in results]) / count
    torch.testing.assert_close(found, alone["images"], **close)
    for key in ("weights", "state", "evaluated"):
        torch.testing.assert_close(results[0][key], alone[key], **close)
    for result in results[1:]:
        torch.testing.assert_close(result["state"], results[0]["state"], atol=0, rtol=0)


@pytest.mark.slow
def test_statistics_are_local_unless_asked_for():
    results = on_ranks(2, passed, "wrn", False)
    first, second = (result["state"]["norm.running_mean"] for result in results)
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("name", ["norms", *SETTINGS])
def test_one_process_keeps_its_bits_names_and_parameters(name):
    made = network(name, synchronised=False)
    parameters, names = list(made.parameters()), list(made.state_dict())
    plain = copy.deepcopy(made)
    synchronise_norms(made)
    assert list(made.state_dict()) == names
    assert all(one is other for one, other in zip(made.parameters(), parameters, strict=True))
    torch.testing.assert_close(made(images()), plain(images()), atol=0, rtol=0)
    torch.testing.assert_close(made.state_dict(), plain.state_dict(), atol=0, rtol=0)
    made.eval()
    synchronise_norms(made)  # again, and in eval mode
    torch.testing.assert_close(made(images()), plain.eval()(images()), atol=0, rtol=0)


def test_a_norm_that_would_stay_local_unseen_is_refused_before_anything_changes():
    made = nn.Sequential(nn.BatchNorm2d(3), nn.Flatten(), nn.BatchNorm1d(12))
    with pytest.raises(ValueError, match=r"2 is a BatchNorm1d, but only nn\.BatchNorm2d"):
        synchronise_norms(made)
    assert type(made[0]) is nn.BatchNorm2d


def in_half_precision() -> Tensor:
    made = NormActivate(3, 0.3, 1e-3, 0.1)
    made.synchronised = True
    own = ranks.own_part(images()).to(torch.bfloat16).requires_grad_()
    _, active = made(own)
    (gradient,) = torch.autograd.grad(active.float().square().mean(), own)
    assert active.dtype == gradient.dtype == torch.bfloat16
    return torch.cat([active.detach().float(), gradient.float()], 1)


@pytest.mark.slow
def test_half_precision_goes_in_and_out_and_statistics_are_exact():
    found = torch.cat(on_ranks(2, in_half_precision))
    made, joint = NormActivate(3, 0.3, 1e-3, 0.1), images().to(torch.bfloat16).float().requires_grad_()
    _, active = made(joint)
    (gradient,) = torch.autograd.grad(active.square().mean(), joint)
    torch.testing.assert_close(found[:, :3], active.detach(), atol=0.02, rtol=0.01)
    torch.testing.assert_close(found[:, 3:] / 2, gradient, atol=2e-4, rtol=0.05)
