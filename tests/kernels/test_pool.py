"""The fused max-pooling against torch's: the same bits, forward and backward."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from debiaspl.kernels import pool
from debiaspl.models import MODELS
from tests.kernels.device import DEVICE, needs_triton

NAN, INF = float("nan"), float("inf")
DTYPES = [torch.bfloat16, torch.float16, torch.float32]
# channels; images, height, width: no power of two, fewer outputs than a tile, several tiles of pixels and of channels
SHAPES = [(32, (4, 8, 6)), (48, (3, 2, 10)), (2, (1, 2, 2)), (6, (40, 8, 10)), (600, (3, 4, 2))]


def plain(features):
    return F.max_pool2d(features, 2)


def on_triton(test):
    for mark in needs_triton:
        test = mark(test)
    return test


def tensor(values, dtype=torch.float32):
    return values.to(DEVICE, dtype).contiguous(memory_format=torch.channels_last)


def bits(values):
    """NaNs as one: what a conversion on the way makes of their last bits is the device's affair."""
    values = torch.where(values.isnan(), NAN, values).contiguous()
    return values.view(torch.int32 if values.dtype == torch.float32 else torch.int16)


def both_ways(pools, features, push):
    features = features.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    pooled = pools(features)
    pooled.backward(push)
    return pooled.detach(), features.grad


def assert_the_same(features, push):
    found, expected = both_ways(pool.fused, features, push), both_ways(plain, features, push)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.stride() == other.stride()
        assert torch.equal(bits(one), bits(other))


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("channels", "shape"), SHAPES)
def test_forward_and_backward_are_torchs_bits(channels, shape, dtype):
    generator = torch.Generator().manual_seed(0)
    features = tensor(torch.randn(shape[0], channels, *shape[1:], generator=generator), dtype)
    push = tensor(torch.randn(plain(features).shape, generator=generator), dtype)
    assert_the_same(features, push)
    assert torch.equal(bits(pool.fused(features)), bits(plain(features)))  # nothing is kept for a gradient


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_zeros_of_both_signs_infinities_and_nans_choose_as_torch_does(dtype):
    generator = torch.Generator().manual_seed(1)
    values = torch.tensor([-1.0, -0.0, 0.0, 1.0, INF, -INF, NAN])
    drawn = values[torch.randint(0, len(values), (8, 24, 8, 8), generator=generator)]
    drawn[:, :, ::2, ::2].masked_fill_(drawn[:, :, ::2, ::2] == -INF, -1)  # not four of them: see the next test
    features = tensor(drawn, dtype)
    push = tensor(torch.randn(8, 24, 4, 4, generator=generator), dtype)
    assert_the_same(features, push)


@on_triton
def test_a_gradient_in_any_order_of_memory_is_taken():
    features = tensor(torch.randn(2, 12, 4, 4, generator=torch.Generator().manual_seed(2)))
    usual = torch.randn(2, 12, 2, 2, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    assert not usual.is_contiguous(memory_format=torch.channels_last)
    for push in (usual, torch.ones(1, 1, 1, 1, device=DEVICE).expand(2, 12, 2, 2)):
        assert_the_same(features, push)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type != "cuda", reason="no CUDA device")
def test_a_recorded_pool_replays_on_other_values():
    features = tensor(torch.randn(8, 48, 16, 16), torch.bfloat16).requires_grad_()
    push = tensor(torch.randn(8, 48, 8, 8), torch.bfloat16)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiles the kernels
        torch.autograd.grad(pool.fused(features), features, push)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        pooled = pool.fused(features)
        (gradient,) = torch.autograd.grad(pooled, features, push)
    with torch.no_grad():
        features.copy_(torch.randn(8, 48, 16, 16))
    graph.replay()
    expected = both_ways(plain, features, push)
    assert torch.equal(bits(pooled.detach()), bits(expected[0]))
    assert torch.equal(bits(gradient), bits(expected[1]))


@on_triton
def test_resnet9_with_it_is_resnet9_without_it(monkeypatch):
    """Logits, the gradients of all weights, and what the norms have learned."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    torch.manual_seed(0)
    images = tensor(torch.randn(4, 3, 16, 16))
    model = MODELS["resnet9"](5, 3, widths=(8, 12, 16, 24)).to(DEVICE, memory_format=torch.channels_last)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    outcomes, calls = [], []

    def counted(features, fused=pool.fused):
        assert features.is_contiguous(memory_format=torch.channels_last)
        calls.append(features.dtype)
        return fused(features)

    monkeypatch.setattr(pool, "fused", counted)
    for fits in (True, False):
        monkeypatch.setattr(pool, "_fits", lambda features, fits=fits: fits)
        model.load_state_dict(start)
        model.zero_grad()
        with torch.autocast(DEVICE.type, torch.bfloat16):
            logits = model(images)
        logits.float().square().sum().backward()
        outcomes.append(
            [logits.detach(), *(one.grad for one in model.parameters()), *map(torch.clone, model.buffers())]
        )
    assert calls == [torch.bfloat16] * 3
    assert all(torch.equal(one, other) for one, other in zip(*outcomes, strict=True))


def seen(features, **other):
    """What ``_fits`` looks at, as if it lay on a GPU."""
    names = ("dtype", "ndim", "shape", "is_contiguous")
    return SimpleNamespace(**{"is_cuda": True, **{name: getattr(features, name) for name in names}, **other})


def test_what_the_kernel_takes(monkeypatch):
    monkeypatch.setattr(pool, "triton_works", lambda: True)
    last = {"memory_format": torch.channels_last}
    assert all(pool._fits(seen(torch.empty(2, 6, 4, 8, dtype=dtype).contiguous(**last))) for dtype in DTYPES)
    left = {
        "CPU": seen(torch.empty(2, 6, 4, 8).contiguous(**last), is_cuda=False),
        "float64": seen(torch.empty(2, 6, 4, 8, dtype=torch.float64).contiguous(**last)),
        "channels first": seen(torch.empty(2, 6, 4, 8)),
        "every other column": seen(torch.empty(2, 6, 4, 16).contiguous(**last)[..., ::2]),
        "odd height": seen(torch.empty(2, 6, 5, 8).contiguous(**last)),
        "odd width": seen(torch.empty(2, 6, 4, 7).contiguous(**last)),
        "one channel": seen(torch.empty(2, 1, 4, 8).contiguous(**last)),
        "no image": seen(torch.empty(0, 6, 4, 8).contiguous(**last)),
        "no batch": seen(torch.empty(6, 4, 8)),
    }
    assert [name for name, features in left.items() if pool._fits(features)] == []
    monkeypatch.setattr(pool, "triton_works", lambda: False)
    assert not pool._fits(seen(torch.empty(2, 6, 4, 8).contiguous(**last)))


@pytest.mark.parametrize("shape", [(2, 6, 4, 8), (2, 6, 5, 7), (6, 4, 8), (0, 6, 4, 8)])
def test_elsewhere_it_is_torchs(shape):
    features = torch.randn(shape, generator=torch.Generator().manual_seed(4)).requires_grad_()
    pooled, expected = pool.max_pool(features), F.max_pool2d(features, 2)
    assert torch.equal(pooled, expected)
    assert type(pooled.grad_fn) is type(expected.grad_fn)
