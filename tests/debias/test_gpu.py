"""What corrections do in a step can be captured in a CUDA graph and replayed."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.debias import CORRECTIONS, Correction
from debiaspl.training.parts import build

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

COUNTS = (50, 20, 8, 2)


def step(correction: Correction, weak: torch.Tensor, strong: torch.Tensor) -> torch.Tensor:
    label = correction(weak).argmax(-1)
    return F.cross_entropy(correction.margin(strong, label), label) + F.cross_entropy(
        correction.labeled_margin(strong, label), label
    )


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_correction_can_be_captured_and_replayed(name):
    captured, twin = (
        build("correction", name, {}, num_classes=len(COUNTS), class_counts=COUNTS).cuda() for _ in range(2)
    )
    fresh = {key: value.clone() for key, value in captured.state_dict().items()}
    weak, strong = (torch.randn(64, len(COUNTS), device="cuda") for _ in range(2))
    step(captured, weak, strong)
    captured.load_state_dict(fresh)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(captured, weak, strong)
    for seed in range(3):
        torch.manual_seed(seed)
        weak.normal_(std=3)
        weak[:, 0] += 1
        graph.replay()
        torch.testing.assert_close(loss, step(twin, weak, strong))
        for key, value in twin.state_dict().items():
            torch.testing.assert_close(captured.state_dict()[key], value)
