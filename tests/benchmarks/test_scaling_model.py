"""benchmarks/scaling_model.py: what it counts is right, its times behave, and docs/scaling.md shows them."""

import importlib.util
import json
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from debiaspl.models import WideResNet

ROOT = Path(__file__).parent.parent.parent


def load():
    spec = importlib.util.spec_from_file_location("scaling_model", ROOT / "benchmarks" / "scaling_model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


model = load()
PAGE = model.PAGE.read_text()
WORKS = model.works()
LINKS = model.links()
SLOWEST = LINKS[-1]


def test_the_page_shows_what_is_computed():
    assert model.filled(PAGE) == PAGE, "run python benchmarks/scaling_model.py --write"


def test_every_table_of_the_page_is_computed():
    inside = "".join(re.findall(r"<!-- \w+ -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL))
    assert PAGE.count("\n|") == inside.count("\n|")


def test_resnet_50_is_the_known_one():
    network = model.resnet50()
    assert network.parameters == 25_557_032
    assert network.macs / 1e9 == pytest.approx(4.1, abs=0.02)
    assert len(network.norms) == 53


def test_twice_the_side_costs_four_times_but_for_the_classifier():
    head = 2048 * 1000
    assert model.resnet50(448).macs - head == 4 * (model.resnet50(224).macs - head)


def test_wrn_is_the_library_s_own():
    network = model.wide_resnet()
    assert network.parameters == sum(parameter.numel() for parameter in WideResNet(10).parameters())
    assert len(network.norms) == 25


def slow_wrn_macs() -> int:
    """Twelve blocks of two 3x3 convolutions, three of them with a 1x1 shortcut, written out."""
    macs = 32 * 32 * 9 * 3 * 16
    incoming = 16
    for side, outgoing in ((32, 32), (16, 64), (8, 128)):
        for _ in range(4):
            macs += side * side * 9 * incoming * outgoing + side * side * 9 * outgoing * outgoing
            if incoming != outgoing:
                macs += side * side * incoming * outgoing
            incoming = outgoing
    return macs + 128 * 10


def test_wrn_multiply_adds_have_a_slow_twin():
    assert model.wide_resnet().macs == slow_wrn_macs()


def test_bytes_of_gradients():
    network = model.wide_resnet()
    vectors = sum(parameter.numel() for parameter in WideResNet(10).parameters() if parameter.ndim == 1)
    assert network.gradient_bytes() == 4 * network.parameters
    assert network.gradient_bytes(2) == 2 * (network.parameters - vectors) + 4 * vectors
    assert sum(size for size, _ in model.buckets(network)) == 4 * network.parameters


def test_a_step_in_operations():
    work = WORKS["separate"]
    macs, stem = work.network.macs, work.network.layers[0].macs
    assert work.flop == 2 * (448 * macs + 512 * (3 * macs - stem))
    assert WORKS["joint"].flop > work.flop > WORKS["fast"].flop


def slow_ring(size: int, gpus: int) -> float:
    """Parts go round twice: until each is summed somewhere, and until all have all."""
    sent = 0.0
    for _ in range(2):
        for _ in range(gpus - 1):
            sent += size / gpus
    return sent


@pytest.mark.parametrize("gpus", [1, 2, 3, 8, 1024])
def test_a_ring_sends_two_times_n_minus_1_over_n(gpus):
    assert model.on_the_wire(1000, gpus) == pytest.approx(slow_ring(1000, gpus))


def test_one_gpu_sends_nothing_and_is_fully_efficient():
    for work in WORKS.values():
        for overlap in (False, True):
            assert model.efficiency(work, 1, SLOWEST, overlap, synchronised=True) == pytest.approx(1)


@pytest.mark.parametrize("key", list(WORKS))
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_efficiency_falls_with_gpus_and_rises_with_overlap(key, link):
    work = WORKS[key]
    for overlap in (False, True):
        curve = [model.efficiency(work, gpus, link, overlap) for gpus in model.GPUS]
        assert all(0 < after <= before for before, after in pairwise(curve))
    for gpus in (8, 16, 1024):
        assert model.efficiency(work, gpus, link, True, synchronised=True) < model.efficiency(work, gpus, link, True)
        # More messages cost more calls: overlap may lose that much, never more.
        calls = len(list(model.buckets(work.network))) * model.latency(gpus, link)
        alone, beside = (model.step_seconds(work, gpus, link, overlap) for overlap in (False, True))
        assert beside <= alone + calls


def test_a_faster_link_is_no_slower():
    for work in WORKS.values():
        times = [model.step_seconds(work, 64, link, False) for link in LINKS]
        assert times == sorted(times)


def test_the_tiny_message_that_latencies_were_chosen_by():
    assert 1e6 * model.latency(16, LINKS[0]) == pytest.approx(47, abs=3)


def test_a_divided_batch_is_never_faster_than_its_kernels():
    for work in WORKS.values():
        assert model.shared(work, 1) == work
        assert model.shared(work, 1024).seconds == pytest.approx(model.floor_seconds(work.network))


def test_steps_of_the_papers_runs():
    assert model.run_steps(0.0, 50, 1) == -(-50 * 1_281_167 // 320)
    assert model.run_steps(0.0, 50, 2) == -(-50 * 1_281_167 // 640)


def test_measured_means_a_file_with_that_number():
    for name, (file, field) in model.MEASURED.items():
        assert json.loads((ROOT / file).read_text())[field] == model.measured(name)
    for key, work in WORKS.items():
        assert work.origin.startswith("measured" if work.network.name == "WRN-28-2" else "assumed"), key


def test_no_assumption_is_called_measured():
    assert not any("measured" in why for _, _, why in model.ASSUMPTIONS.values())


def test_numbers_for_programs_are_json():
    found = json.loads(json.dumps(model.numbers()))
    assert found["efficiency"]["separate"][SLOWEST.name]["overlap"]["1"] == 1
    assert set(found["steps"]) == set(WORKS)
