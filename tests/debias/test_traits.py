"""Table 1 in docs/corrections.md: what it says of each correction is what it is seen to do, and what the paper says."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from debiaspl.debias import CORRECTIONS, Correction
from debiaspl.training import train
from debiaspl.training.parts import build
from tests.training.tiny import EAGER, changed

PAGE = Path(__file__).parents[2] / "docs" / "corrections.md"
NAMES = [name for name in CORRECTIONS if name != "none"]
ROWS = re.findall(r"^\| `([\w-]+)` \|(.*)\|$", PAGE.read_text().partition("*Shift allowed*")[0], re.M)
TABLE = {name: tuple(cell.strip() == "yes" for cell in cells.split("|")) for name, cells in ROWS}
CLASSES = 4
UNEVEN, OTHERWISE, EVEN = (50, 20, 8, 2), (2, 8, 20, 50), (20, 20, 20, 20)
LABELS = torch.arange(24) % CLASSES

# Rows of the paper's Table 1, in the order of its lines; "LA or LDAM" is one column there.
PAPER = {
    "logit-adjustment": (True, False, False, False, False),
    "ldam": (True, False, False, False, False),
    "causal-norm": (False, True, False, False, False),
    "alignment": (True, False, True, True, False),
    "debiaser": (True, True, True, True, True),
}


def logits(seed: int = 0) -> Tensor:
    return 2 * torch.randn(24, CLASSES, generator=torch.Generator().manual_seed(seed))


def biased() -> Tensor:
    """Predictions that favour some classes, whatever the data are."""
    return logits(1) + torch.tensor([4.0, 2.0, 0.0, -2.0])


class Biased(nn.Module):
    """A network that favours the same classes, also in an image without content."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.tensor([4.0, 2.0, 0.0, -2.0]).expand(len(images), CLASSES)


def made(name: str, class_counts: tuple[int, ...], learned: bool = True) -> Correction:
    """As a run makes it, after a few batches of biased predictions."""
    correction = build("correction", name, {}, num_classes=CLASSES, class_counts=class_counts)
    for _ in range(5 if learned else 0):
        correction.learn(biased())
        correction.look(Biased(), torch.zeros(1, 3, 4, 4), torch.ones(()))
    return correction


def on_unlabeled(correction: Correction, values: Tensor, labels: Tensor) -> list[Tensor]:
    """All that the unlabeled images meet in training: probabilities for labels, and the loss of each image."""
    margin = correction.margin(values, labels)
    return [correction.probabilities(values), F.cross_entropy(margin, labels, reduction="none")]


def in_training(correction: Correction) -> list[Tensor]:
    labeled = F.cross_entropy(correction.labeled_margin(logits(), LABELS), LABELS, reduction="none")
    return [*on_unlabeled(correction, logits(), LABELS), labeled]


def finished(correction: Correction, head: nn.Linear, mean_features: Tensor) -> list[Tensor]:
    return [correction.classifier(head, mean_features)(logits()).softmax(-1)]


def uneven_head() -> nn.Linear:
    """What uneven data leave behind: classes of unequal norms, that lean unequally towards the mean feature."""
    head = nn.Linear(CLASSES, CLASSES)
    head.weight.data = torch.diag(torch.tensor([3.0, 2.0, 1.5, 1.0])) + 0.1
    head.bias.data = torch.tensor([0.3, 0.1, 0.0, -0.2])
    return head


@pytest.mark.parametrize("name", NAMES)
def test_counts_reach_exactly_those_that_name_them(name):
    """A correction that is said to need no class distribution is the same bits whatever the counts are."""
    mean = torch.tensor([2.0, 1.0, 0.5, 0.2])
    results = []
    for counts in (UNEVEN, OTHERWISE):
        correction = made(name, counts)
        results.append([*in_training(correction), *finished(correction, uneven_head(), mean)])
    unchanged = all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert unchanged == TABLE[name][1]


@pytest.mark.parametrize("name", NAMES)
def test_pseudo_labels_alone_means_that_the_labeled_loss_and_the_classifier_are_left_alone(name):
    correction, head = made(name, UNEVEN), uneven_head()
    untouched = (
        torch.equal(correction.labeled_margin(logits(), LABELS), logits())
        and correction.classifier(head, torch.ones(CLASSES)) is head
    )
    assert untouched == correction.corrects_pseudo_labels_alone


@pytest.mark.parametrize("name", NAMES)
def test_hard_labels_are_needed_by_those_whose_margin_depends_on_them(name):
    correction = made(name, UNEVEN)
    first, second = (correction.margin(logits(), labels) for labels in (LABELS, LABELS.roll(1)))
    assert torch.equal(first, second) != correction.needs_hard_labels


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Weights of one short run with each correction, on a long tail, all else equal."""
    tail = changed(EAGER, "protocol=long-tail", "gamma=20", "labeled_fraction=0.1", "average_decay=0.5")
    weights = {}
    for name in CORRECTIONS:
        folder = tmp_path_factory.mktemp("runs") / name
        train(changed(tail, f"correction={name}"), folder)
        weights[name] = load_file(folder / "model.safetensors")
    return weights


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_help_training_leaves_a_run_as_it_was_but_for_the_classifier(trained, name):
    plain, weights = trained["none"], trained[name]
    assert plain.keys() == weights.keys()  # so that the network can be loaded again
    body, head = [
        all(torch.equal(plain[key], weights[key]) for key in plain if key.startswith("head.") == wanted)
        for wanted in (False, True)
    ]
    assert body == (not TABLE[name][0])
    assert not head


def test_the_table_has_all_and_the_rows_of_the_paper():
    assert list(TABLE) == NAMES
    assert {name: TABLE[name] for name in PAPER} == PAPER
