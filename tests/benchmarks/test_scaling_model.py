"""benchmarks/scaling_model.py: what it counts is right and what the library sends, its times behave, and
docs/lab/scaling.md shows them."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed import _compute_bucket_assignment_by_size as torch_buckets
from torch.utils.flop_counter import FlopCounterMode

from debiaspl import Debiaser
from debiaspl.algorithms.fixmatch import cld
from debiaspl.debias import ranks
from debiaspl.kernels.norm import synchronise_norms
from debiaspl.models import Average, ResNet, WideResNet
from debiaspl.training.update import Update

ROOT = Path(__file__).parent.parent.parent
COMMAND = ROOT / "benchmarks" / "scaling_model.py"


def load(*names: str):
    """Modules beside the command, found as the command finds them."""
    sys.path.insert(0, str(COMMAND.parent))
    try:
        return [import_module(name) for name in names]
    finally:
        sys.path.remove(str(COMMAND.parent))


(model,) = load("scaling_model")
count, feeding, links, messages, work_room = load(
    *(f"scaling_parts.{name}" for name in ("count", "feeding", "links", "messages", "work"))
)
PAGE = model.PAGE.read_text()
WORKS = work_room.works()
NETWORKS = {"wrn": (count.wide_resnet, lambda: WideResNet(10)), "resnet": (count.resnet50, lambda: ResNet(1000))}


def test_the_page_shows_what_is_computed():
    assert model.filled(PAGE) == PAGE, "run python benchmarks/scaling_model.py --write"


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
        update = Update(network, nn.Module(), Average(network, 0.999, True), 0.9, 1e-4)
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
    assert sent["summed"] == [messages.prior_bytes(count.resnet50()), messages.group_bytes(WORKS["multi-low"])]
    assert messages.group_bytes(WORKS["one-low"]) == 0


def test_synchronised_norms_send_what_is_counted(sent):
    network = WideResNet(10)
    synchronise_norms(network)
    network(torch.randn(1, 3, 32, 32))  # weak views, labeled by the student
    network(torch.randn(1, 3, 32, 32)).sum().backward()
    work = WORKS["separate"]
    assert sent["gathered"] == messages.forward_norms(work)
    assert sent["summed"] == messages.backward_norms(work)[::-1]
    assert messages.norm_bytes(work, 2) == pytest.approx(sum(sent["gathered"]) + sum(sent["summed"]))


def test_local_norms_send_their_statistics_once(sent):
    network = WideResNet(10)
    update = Update(network, nn.Module(), Average(network, 0.999, True), 0.9, 1e-4)
    update.take(network(torch.randn(2, 3, 32, 32)).sum())
    update.step(0.1)
    assert sent == {"summed": [messages.statistics_bytes(count.wide_resnet())], "gathered": []}
