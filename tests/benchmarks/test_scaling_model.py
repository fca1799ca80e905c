"""benchmarks/scaling_model.py: what it counts is right and what the library sends, its times behave, and
docs/lab/scaling.md shows them."""

import pytest
import torch
from torch import nn
from torch.distributed import _compute_bucket_assignment_by_size as torch_buckets
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import scaling_model
from benchmarks.scaling_parts import network as messages, work
from debiaspl import Debiaser
from debiaspl.algorithms.fixmatch import cld
from debiaspl.debias import ranks
from debiaspl.models import Average, ResNet, WideResNet
from debiaspl.training import Recipe
from debiaspl.training.update import Update

PAGE = scaling_model.PAGE.read_text()
NETWORKS = {"wrn": (work.wide_resnet, lambda: WideResNet(10)), "resnet": (work.resnet50, lambda: ResNet(1000))}


def test_the_page_shows_what_is_computed():
    assert scaling_model.filled(PAGE) == PAGE, "run python -m benchmarks.scaling_model"


@pytest.mark.parametrize(("which", "side"), [("wrn", 32), ("resnet", 224)])
def test_multiply_adds_are_those_that_torch_counts(which, side):
    counted, make = NETWORKS[which]
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        make().eval()(torch.zeros(1, 3, side, side))
    assert 2 * counted().macs == counter.get_total_flops()


@pytest.mark.parametrize("which", list(NETWORKS))
def test_gradients_travel_in_the_buckets_of_torch(which):
    counted, make = NETWORKS[which]
    with torch.device("meta"):
        parameters = [p.bfloat16() if p.ndim > 1 else p.data for p in make().parameters()][::-1]
    assert counted().parameters == sum(p.numel() for p in parameters)
    for of_weights in (2, 4):
        sent = [p if of_weights == 2 else p.float() for p in parameters]
        limits = [2**20, 25 * 2**20]
        found, _ = torch_buckets(sent, limits, [False] * len(sent))
        sizes = [sum(sent[place].nbytes for place in bucket) for bucket in found]
        ours = list(messages.buckets(counted(), of_weights))
        assert sorted(size for size, _ in ours) == sorted(sizes)
        assert sum(sizes) == counted().gradient_bytes(of_weights)
        shares = [share for _, share in ours]
        assert shares == sorted(shares)
        assert shares[-1] == 1


@pytest.mark.parametrize("which", list(NETWORKS))
def test_statistics_are_those_that_update_keeps(which):
    counted, make = NETWORKS[which]
    with torch.device("meta"):
        network = make()
        update = Update(network, nn.Module(), Average(network, 0.999, True), Recipe("plain"))
    assert messages.statistics_bytes(counted()) == update._statistics.nbytes


@pytest.fixture
def sent(monkeypatch):
    """Two ranks that are one: what it would sum, and what it would gather, in bytes, in the order of sending."""
    said = {"summed": [], "gathered": []}

    def summed(values):
        said["summed"].append(values.nbytes)
        return 2 * values

    def gathered(rows):
        said["gathered"].append(rows.nbytes)
        return torch.cat([rows, rows])

    for name, stand_in in (("count", lambda: 2), ("own", lambda: 0), ("summed", summed), ("gathered", gathered)):
        monkeypatch.setattr(ranks, name, stand_in)
    return said


def test_prior_and_groups_are_messages_of_the_counted_size(sent):
    logits = torch.randn(4, 1000)
    Debiaser(1000)(logits)
    cld(logits.softmax(-1), logits.softmax(-1))
    assert sent["summed"] == [messages.prior_bytes(work.resnet50()), messages.group_bytes(work.works()["multi-low"])]
    assert messages.group_bytes(work.works()["one-low"]) == 0


def test_local_norms_send_their_statistics_once(sent):
    network = WideResNet(10)
    update = Update(network, nn.Module(), Average(network, 0.999, True), Recipe("plain"))
    update.take(network(torch.randn(2, 3, 32, 32)).sum())
    update.step(0.1)
    assert sent == {"summed": [messages.statistics_bytes(work.wide_resnet())], "gathered": []}
