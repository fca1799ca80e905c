"""The same bits on a GPU, and inside a CUDA graph."""

import pytest
import torch

from debiaspl.augment import OPERATIONS, Draws, RandAugment, Weak, operation

from .pillow import photos
from .test_operations import SIZES, levels

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

PRESETS = {"fixmatch": RandAugment.fixmatch(), "benchmark": RandAugment.benchmark()}

both_presets = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)


def on_cpu(draws: Draws) -> Draws:
    return Draws(draws.operation.cpu(), draws.value.cpu(), draws.box.cpu())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_has_the_same_bits(name: str, size: tuple[int, int, int]) -> None:
    values = levels(name, *size[:2])
    images = photos(len(values), *size)
    assert torch.equal(operation(name, images.cuda(), values).cpu(), operation(name, images, values))


def test_every_whole_degree_has_the_same_bits() -> None:
    degrees = [float(degree) for degree in range(-360, 361)]
    images = photos(1).repeat(len(degrees), 1, 1, 1)
    assert torch.equal(operation("rotate", images.cuda(), degrees).cpu(), operation("rotate", images, degrees))


@both_presets
def test_a_cuda_graph_draws_anew_on_every_replay(preset: RandAugment) -> None:
    images, generator = photos(64).cuda(), torch.Generator("cuda").manual_seed(0)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        preset(Weak()(images, generator), generator)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        weak = Weak()(images, generator)
        draws = preset.draw(weak, generator)
        strong = preset.apply(weak, draws)
    seen = []
    for _ in range(3):
        graph.replay()
        seen.append(strong.cpu())
        assert torch.equal(seen[-1], preset.apply(weak.cpu(), on_cpu(draws)))
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])
