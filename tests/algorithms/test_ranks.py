"""Several ranks compute what one process computes on the joint batch: losses, gradients and all that is remembered."""

import inspect
import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS, Algorithm, Batch, Models
from debiaspl.algorithms.distill import Distill
from debiaspl.algorithms.mixing import mixup
from debiaspl.data import Hints
from debiaspl.debias import Correction, Debiaser, DistributionAlignment, ranks
from debiaspl.encoders import NetworkFacts
from debiaspl.kernels.norm import synchronise_norms
from debiaspl.models import Network, SmallNet
from tests.ranks import on_ranks

CLASSES, FEATURES, STEPS, LABELED, UNLABELED, POSITIONS = 4, 8, 4, 6, 12, 15
COUNTS = (20, 10, 6, 3)

# Settings under which much is kept, averages move fast, the memory fills, and nothing that is off by default is left
# out. Mixing partners are of one rank, so that mixing alone differs from one process.
EXACT: dict[str, tuple[str, dict[str, Any]]] = {
    "supervised": ("supervised", {}),
    "pseudolabel": ("pseudolabel", {"threshold": 0.5}),
    "mean-teacher": ("mean-teacher", {}),
    "uda": ("uda", {"threshold": 0.5, "annealing": "linear"}),
    "mixmatch": ("mixmatch", {"alpha": 0.0}),
    "remixmatch": ("remixmatch", {"alpha": 0.0}),
    "fixmatch": ("fixmatch", {"threshold": 0.5}),
    "fixmatch, two views and CLD": ("fixmatch", {"threshold": 0.5, "views": 2, "cld_weight": 0.3}),
    "fixmatch, paired views": ("fixmatch", {"threshold": 0.5, "views": 2, "view_labels": "paired"}),
    "contrastmatch": (
        "contrastmatch",
        {"threshold": 0.5, "labels_from": 0.0, "temperature": 0.5, "memory": 25, "relations": 0.4, "key_decay": 0.5},
    ),
    "flexmatch": ("flexmatch", {"threshold": 0.6}),
    "freematch": ("freematch", {"decay": 0.5, "fairness_weight": 0.7}),
    "softmatch": ("softmatch", {"decay": 0.5}),
    "comatch": ("comatch", {"threshold": 0.4, "memory": 25, "embedding": 5, "own_share": 0.5, "graph_threshold": 0.3}),
    "crest": ("crest", {"threshold": 0.5}),
    "crest+": ("crest+", {"threshold": 0.5}),
    "adamatch": ("adamatch", {"threshold": 0.9}),
    "adamatch, its own alignment": ("adamatch", {"threshold": 0.9, "align_to_predictions": True, "target_decay": 0.5}),
    "abc": ("abc", {"threshold": 0.4}),
    "acr": ("acr", {"threshold": 0.4, "momentum": 0.5, "strong_views": 2}),
    "paws": ("paws", {"width": 5, "entropy_weight": 0.7, "small_views": 2, "support_views": 2}),
    "distill": ("distill", {"temperature": 2.0, "labeled_weight": 0.5}),
    "ride": ("ride", {"threshold": 0.5}),
    "graph": ("graph", {"threshold": 0.5}),
    "taught": ("taught", {"threshold": 0.8}),
    "moco": ("moco", {"memory": 60, "key_decay": 0.5}),
    "simclr": ("simclr", {}),
    "swav": ("swav", {"prototypes": 7, "small_views": 2, "queue": 25, "queue_from": 0.6}),
}
MIXED = {"mixmatch": ("mixmatch", {}), "remixmatch": ("remixmatch", {}), "fixmatch": ("fixmatch", {})}


class Plain(Network):
    """Without batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.num_features = FEATURES
        self.features = nn.Sequential(nn.Conv2d(3, FEATURES, 3, padding=1), nn.Tanh())
        self.head = nn.Linear(FEATURES, CLASSES)

    def embed(self, images: Tensor) -> Tensor:
        return self.features(images).mean((2, 3))


def network(synchronised: bool, seed: int) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = SmallNet(CLASSES, channels=3, width=FEATURES // 4) if synchronised else Plain()
    made.head.weight.data.mul_(12)  # some labels are confident, some are not
    if synchronised:
        synchronise_norms(made)
    return made.double()


def built(name: str, settings: dict[str, Any], correction: Correction | None = None) -> Algorithm:
    """In float64; by default with a correction that learns, or that it needs."""
    default = correction is None
    correction = correction or Debiaser(CLASSES, momentum=0.6)
    if name in ("graph", "taught"):
        taught = torch.arange(POSITIONS) % (CLASSES + 1) - 1
        hints = Hints(taught.clamp_min(0), (taught >= 0).float())
        return HINTED[name](hints, correction, **settings).double()
    if name == "distill":
        made_of = Distill([str(number) for number in range(CLASSES)], 3, correction, "not read here", **settings)
        facts = {"network": {"name": "small", "settings": {"width": 2}}, "channels": 3, "size": [4, 4]}
        text = json.dumps({**facts, "classes": list(made_of.classes)})
        made_of.finished.take(network(False, 9), NetworkFacts.of(text, "this test"))
        return made_of.double()
    if default and (name == "crest+" or "align_to_predictions" in settings):
        correction = DistributionAlignment(COUNTS, momentum=0.6)
    made = {**ALGORITHMS, **STARTS, **HINTED}[name]
    if default and not made.makes_pseudo_labels:
        correction = Correction()
    known = {"num_classes": CLASSES, "num_features": FEATURES, "num_unlabeled": POSITIONS, "class_counts": COUNTS}
    named = {key: value for key, value in known.items() if key in inspect.signature(made).parameters}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return made(correction=correction, **named, **settings).double()


def part(step: int, algorithm: Algorithm, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Batch:
    """This rank's part of the joint batch of a step; an image can be in it twice."""
    drawn = torch.Generator().manual_seed(step)

    def images(count: int) -> Tensor:
        return ranks.own_part(torch.randn(count, 3, 4, 4, generator=drawn, dtype=dtype))

    return Batch(
        labeled=images(LABELED),
        labels=ranks.own_part(torch.randint(CLASSES, (LABELED,), generator=drawn)),
        weak=tuple(images(UNLABELED) for _ in range(algorithm.views.weak)),
        strong=tuple(images(UNLABELED) for _ in range(algorithm.views.strong)),
        positions=ranks.own_part(torch.randint(POSITIONS, (UNLABELED,), generator=drawn)),
        progress=torch.tensor(0.5 + 0.1 * step),
        generator=generator,
        labeled_strong=tuple(images(LABELED) for _ in range(algorithm.labeled_strong)),
    )


def trained(name: str, settings: dict[str, Any], synchronised: bool = False) -> dict[str, Any]:
    """A few steps, with gradients averaged over ranks: the mean losses, the gradients and all state."""
    student, algorithm = network(synchronised, 1), built(name, settings)
    teacher = network(synchronised, 2).eval() if algorithm.needs_average or name == "contrastmatch" else student
    average = network(synchronised, 4).eval()
    generator, found = torch.Generator().manual_seed(3), []
    parameters = [*student.parameters(), *algorithm.parameters()]
    for step in range(STEPS):
        losses = algorithm.losses(Models(student, teacher, average), part(step, algorithm, generator))
        total = torch.stack(list(losses.values())).sum()
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
        gradients = [ranks.mean(gradient) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.data.sub_(0.5 * gradient)
        found.append(({key: ranks.mean(value.detach()) for key, value in losses.items()}, gradients))
    return {
        "steps": found,
        "algorithm": algorithm.state_dict(),
        "student": student.state_dict(),
        "monitors": {key: value for key, value in algorithm.monitors.items() if key in ("kept", "pseudo_label")},
        "generator": generator.get_state(),
    }


def assert_same_bits(results: list[dict[str, Any]], *names: str) -> None:
    for result in results[1:]:
        for name in names:
            for key, value in results[0][name].items():
                assert torch.equal(result[name][key], value), f"{name}.{key}"
        assert torch.equal(result["generator"], results[0]["generator"])


def assert_as_alone(results: list[dict[str, Any]], alone: dict[str, Any]) -> None:
    close = {"atol": 1e-9, "rtol": 1e-9}
    for name in ("steps", "algorithm", "student"):
        torch.testing.assert_close(results[0][name], alone[name], **close)
    for name, whole in alone["monitors"].items():
        assert torch.equal(torch.cat([result["monitors"][name] for result in results]), whole), name


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("case", EXACT)
def test_ranks_compute_what_one_process_does_on_the_joint_batch(case, count):
    results = on_ranks(count, trained, *EXACT[case])
    assert_same_bits(results, "algorithm", "student")
    alone = trained(*EXACT[case])
    assert_as_alone(results, alone)
    if "kept" in alone["monitors"] and "threshold" in EXACT[case][1]:
        assert alone["monitors"]["kept"].any()  # otherwise there is nothing to agree on


def test_no_algorithm_is_left_out():
    assert {name for name, _ in EXACT.values()} >= {*ALGORITHMS, *HINTED, *STARTS}


@pytest.mark.slow
@pytest.mark.parametrize("case", MIXED)
def test_ranks_that_mix_their_own_images_stay_alike(case):
    assert_same_bits(on_ranks(3, trained, *MIXED[case]), "algorithm", "student")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["fixmatch", "adamatch", "comatch", "paws"])
def test_with_synchronised_norms_too(case):
    results = on_ranks(2, trained, *EXACT[case], True)
    assert_same_bits(results, "algorithm", "student")
    assert_as_alone(results, trained(*EXACT[case], True))


def mixed() -> tuple[Tensor, Tensor]:
    """The same images on every rank, mixed, and the next number that would be drawn."""
    generator, images = torch.Generator().manual_seed(0), torch.arange(8.0).view(8, 1)
    return mixup(images, images, 0.75, generator)[0].flatten(), torch.rand((), generator=generator)


@pytest.mark.slow
def test_every_rank_mixes_its_own_images_with_numbers_of_its_own():
    generator, images = torch.Generator().manual_seed(0), torch.arange(8.0)
    one, other = torch._standard_gamma(torch.full((2, 16), 0.75), generator=generator)
    share, keys = torch.maximum(one, other) / (one + other), torch.rand(16, generator=generator)
    after = torch.rand((), generator=generator)
    for rank, (found, next_number) in enumerate(on_ranks(2, mixed)):
        own, partner = share.chunk(2)[rank], images[keys.chunk(2)[rank].argsort()]
        torch.testing.assert_close(found, own * images + (1 - own) * partner)
        assert torch.equal(next_number, after)
