"""The same on a GPU: a run, its resuming, and a step that does not wait for the device."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.data import FewLabels, Task, load, open_data
from debiaspl.debias import Debiaser
from debiaspl.training import RunError, train
from debiaspl.training.step import Step
from tests.data.photos import write_folder
from tests.training.tiny import EAGER, changed, outcome

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_a_run_on_a_gpu_resumes_to_the_same_bits(tmp_path, monkeypatch):
    train(EAGER, tmp_path / "whole", device="cuda")
    calls = iter(range(100))
    original = Step.__call__

    def broken(self, number):
        if next(calls) == 9:
            raise RunError("stopped for the test")
        original(self, number)

    monkeypatch.setattr(Step, "__call__", broken)
    with pytest.raises(RunError, match="stopped for the test"):
        train(EAGER, tmp_path / "run", device="cuda")
    monkeypatch.undo()
    train(EAGER, tmp_path / "run", device="cuda", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("settings", [[], ["algorithm=pseudolabel"], ["views=2", "cld_weight=0.2"], ["joint=true"]])
def test_a_step_never_waits_for_the_device(settings):
    task = Task.of(load("digits"), FewLabels(1), seed=0)
    step = Step(changed(EAGER, *settings), task, torch.device("cuda"))
    for number in range(3):
        step(number)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for number in range(3, 6):
            step(number)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert int(step.first_bad_step) == -1


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_a_step_fed_from_files_never_waits_for_the_device(tmp_path):
    whole = open_data(str(write_folder(tmp_path / "photos")), image_size=16, stream=True)
    step = Step(EAGER, Task.of(whole, FewLabels(2), seed=0), torch.device("cuda"), workers=0)
    for number in range(3):
        step(number)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for number in range(3, 6):
            step(number)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_debiaser_can_be_captured_and_replayed():
    debiaser, twin = Debiaser(10).cuda(), Debiaser(10).cuda()
    weak, strong = torch.randn(64, 10, device="cuda"), torch.randn(64, 10, device="cuda")
    debiaser(weak)
    debiaser.margin(strong)
    debiaser.prior.fill_(0.1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        confidence, label = debiaser(weak).max(-1)
        loss = F.cross_entropy(debiaser.margin(strong), label, reduction="none") * (confidence >= 0.3)
    for seed in range(3):
        torch.manual_seed(seed)
        weak.normal_(std=3)
        weak[:, 0] += 1
        graph.replay()
        expected_confidence, expected_label = twin(weak).max(-1)
        expected = F.cross_entropy(twin.margin(strong), expected_label, reduction="none") * (expected_confidence >= 0.3)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(debiaser.prior, twin.prior)
