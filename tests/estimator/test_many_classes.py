"""Memory for many classes: nothing of rows times classes is kept, and nothing of classes times classes is made."""

import sys
import tracemalloc

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from debiaspl import DebiasedClassifier
from debiaspl.graph import Graph

CLASSES = 400


class LargestTensor(TorchDispatchMode):
    """The size of the largest tensor that an operation returned."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        sizes = [tensor.numel() for tensor in tree_leaves(result) if isinstance(tensor, torch.Tensor)]
        self.numbers = max(self.numbers, *sizes, 0)
        return result


def test_memory_does_not_grow_with_the_square_of_the_classes(monkeypatch):
    """Two rows a class, so that rows times classes would be such a square too. Parts are small, as many classes are for
    the usual parts."""
    for name in ("features.fit", "features.table", "graph.linear"):
        monkeypatch.setattr(sys.modules[f"debiaspl.{name}"], "CHUNK", 32)
    monkeypatch.setitem(sys.modules["debiaspl.graph.neighbours"].MOST_SIMILARITIES, "cpu", 2**14)
    features = torch.randn(2 * CLASSES, 8, generator=torch.Generator().manual_seed(0)).numpy()
    truth = torch.arange(2 * CLASSES).numpy() % CLASSES
    with LargestTensor() as largest:
        DebiasedClassifier(max_iter=2, device="cpu").fit(features, truth)
    assert largest.numbers <= CLASSES**2 / 2


def test_labels_are_spread_for_a_few_classes_at_a_time():
    graph, labels = Graph.of(torch.randn(2000, 8)), torch.arange(2000) % 1000
    graph.most_likely(labels % 2, 2)  # imports
    tracemalloc.start()  # of NumPy's arrays
    try:
        graph.most_likely(labels, 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2000 * 1000
