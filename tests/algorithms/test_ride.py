"""RIDE against plain loops, and its networks."""

import pytest
import torch
from torch import nn

from debiaspl import load_model
from debiaspl.algorithms import RIDE, Batch, Models
from debiaspl.debias import LDAMDRW, Correction, Debiaser
from debiaspl.debias.heads import NormalisedHead
from debiaspl.models import Network, WideExperts
from debiaspl.training import train
from tests.reference import corrections, ride
from tests.reference.paper import cross_entropy, debiased, marginal_loss, softmax
from tests.training.tiny import EAGER, changed, check_resume

COUNTS, CLASSES = (20, 10, 6, 3), 4
NETWORK = "network=experts", "depth=10", "width=1", "experts=2"


class Three(Network):
    """Features are the pixels; three experts have four of them each."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.num_features, self.head = 12, NormalisedHead(12, CLASSES, heads=3, scale=5.0)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)


def batch(progress: float) -> Batch:
    drawn = torch.Generator().manual_seed(1)
    labeled, weak, strong = (torch.randn(count, 3, 2, 2, generator=drawn) for count in (5, 8, 8))
    labels = torch.arange(5) % CLASSES
    return Batch(labeled, labels, (weak,), (strong,), progress=torch.tensor(progress))


def each(network: Three, images: torch.Tensor) -> list[list[list[float]]]:
    """Logits by image, then by expert."""
    return network.head.each(images.flatten(1)).transpose(0, 1).tolist()


@pytest.mark.parametrize("progress", [0.5, 0.9])
def test_the_loss_of_labels_is_ldams_less_the_divergence(progress):
    network, drawn = Three(), batch(progress)
    correction = LDAMDRW(COUNTS, scale=5.0)
    correction.look(network, drawn.labeled, drawn.progress)
    losses = RIDE(COUNTS, correction, unlabeled_weight=0.0).losses(Models(network, network), drawn)
    assert set(losses) == {"labeled", "diversity"}
    late = progress >= 0.8
    weights = corrections.effective_weights(list(COUNTS), 0.9999) if late else [1.0] * CLASSES
    warm = ride.temperatures(list(COUNTS), 0.05) if late else [1.0] * CLASSES
    labeled, apart = 0.0, 0.0
    for experts, label in zip(each(network, drawn.labeled), drawn.labels.tolist(), strict=True):
        for logits in experts:
            lowered = [value / 5 for value in logits]
            labeled += weights[label] * corrections.ldam_loss(lowered, label, list(COUNTS), 0.5, 5) / 5
        apart += ride.divergence(experts, warm) / 5
    assert losses["labeled"].item() == pytest.approx(labeled, rel=1e-4)
    assert losses["diversity"].item() == pytest.approx(-0.45 * apart, rel=1e-4)


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_every_expert_learns_the_labels_of_their_mean(strength):
    network, drawn = Three(), batch(0.5)
    correction = Debiaser(CLASSES, strength=strength, momentum=0.0) if strength else Correction()
    losses = RIDE(COUNTS, correction, threshold=0.5, diversity=0.3).losses(Models(network, network), drawn)
    means = [[sum(column) / 3 for column in zip(*one, strict=True)] for one in each(network, drawn.weak[0])]
    prior = [sum(column) / 8 for column in zip(*map(softmax, means), strict=True)]
    total, kept = 0.0, 0
    for mean, experts in zip(means, each(network, drawn.strong[0]), strict=True):
        sure = debiased(mean, [0.25] * CLASSES, strength)
        if max(sure) < 0.5:
            continue
        kept += 1
        for logits in experts:
            label = sure.index(max(sure))
            total += marginal_loss(logits, label, prior, strength) if strength else cross_entropy(logits, label)
        total -= 0.3 * ride.divergence(experts, [1.0] * CLASSES)
    assert 0 < kept < 8
    assert losses["unlabeled"].item() == pytest.approx(total / 8, rel=1e-4)


def test_experts_share_the_first_layers_and_are_narrower():
    network = WideExperts(num_classes=5, channels=3, depth=16, width=1).eval()
    images = torch.randn(2, 3, 32, 32)
    features = network.embed(images)
    width = 48
    assert features.shape == (2, 3 * width) == (2, network.num_features)
    with torch.no_grad():
        for parameter in network.experts[1].parameters():
            parameter.zero_()
    changed_by = (network.embed(images) != features).any(0).view(3, width).any(1)
    assert changed_by.tolist() == [False, True, False]
    torch.testing.assert_close(network(images), network.head.each(network.embed(images)).mean(0))
    assert not any(isinstance(part, nn.Linear) for part in network.shared.modules())


@pytest.mark.parametrize(
    "method", ["ride+ldam-drw unlabeled_weight=0", "ride+debiaser threshold=0.2", "fixmatch+debiaser threshold=0.2"]
)
def test_runs_resume_and_their_models_are_loaded(tmp_path, method):
    pair, setting = method.split()
    algorithm, correction = pair.split("+")
    recipe = changed(EAGER, *NETWORK, f"algorithm={algorithm}", f"correction={correction}", setting)
    check_resume(recipe, tmp_path, 6)
    assert isinstance(load_model(tmp_path / "run").network, WideExperts)


def test_one_classifier_is_too_few(tmp_path):
    with pytest.raises(ValueError, match="network=experts"):
        train(changed(EAGER, "algorithm=ride"), tmp_path / "run")
