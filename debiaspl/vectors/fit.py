"""DebiasPL on feature vectors: a linear classifier from a few labels and many vectors without."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from debiaspl.algorithms import FixMatch
from debiaspl.debias import Correction, Debiaser
from debiaspl.vectors.checks import check_labels, check_strong, checked_features, checked_steps
from debiaspl.vectors.loop import Schedule, run
from debiaspl.vectors.network import LinearNetwork
from debiaspl.vectors.scaling import CHUNK, Scaling
from debiaspl.vectors.views import VectorViews


@dataclass(frozen=True, eq=False)
class FittedHead:
    """What was learned, on the CPU."""

    head: nn.Linear
    """Raw features to logits: the scaling of the features is inside."""
    prior: Tensor
    """(C,): how often the model predicts each class, the bias that was taken out of its labels. It is the running
    estimate of the correction or, if that keeps none, the mean prediction of the finished head."""
    history: list[dict[str, Any]]
    """A few lines of what happened: step, losses, share of labels kept, prior."""

    @torch.no_grad()
    def probabilities(self, features: Tensor) -> Tensor:
        """Of raw features, (..., D): (..., C), in the precision of the head."""
        width = self.head.in_features
        if features.shape[-1] != width:
            raise ValueError(f"features are {features.shape[-1]} wide, expected {width}, as those of the training.")
        parts = torch.split(features.reshape(-1, width), CHUNK)
        found = [self.head(part.to(self.head.weight)).softmax(-1) for part in parts]
        return torch.cat(found).reshape(*features.shape[:-1], -1)


def fit_head(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    *,
    strong: Tensor | None = None,
    correction: Correction | None = None,
    algorithm: Callable[..., FixMatch] = FixMatch,
    threshold: float = 0.7,
    steps: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    unlabeled_weight: float = 1.0,
    labeled_batch: int = 64,
    unlabeled_batch: int = 448,
    learning_rate: float = 1.0,
    weight_decay: float = 1e-4,
    hidden: float = 0.25,
    noise: float = 0.0,
) -> FittedHead:
    """Train a linear classifier with FixMatch and a correction: with a Debiaser, the default, this is DebiasPL.

    Every row serves as an unlabeled one, labeled or not, as in FixMatch. The same arguments give the same bits.

    Args:
        features: (N, D), a vector per image, or (V, N, D), V weak views of each image; of any unit and scale.
        labels: int64, (N,); -1 where there is none.
        num_classes: number of classes; one without any label cannot be learned.
        strong: (W, N, D), strong views of the same images; if not given, they are made of the features, by hiding some
            and disturbing the others.
        correction: what is done to predictions before they become labels; a copy is trained, this one stays as it is.
            ``Correction()`` makes it plain FixMatch.
        algorithm: what makes FixMatch, or a kind of it, of a correction, a threshold and the weight below.
        threshold: labels less confident than this are not learned from. FixMatch's 0.95 is for deep networks: few
            labels of a linear head would pass it.
        steps: training steps; chosen by the number of rows, if not given.
        seed: decides order and views.
        device: ``cuda`` if there is one, else ``cpu``, unless named.
        unlabeled_weight: weight of the unlabeled loss; 0 is the supervised baseline.
        labeled_batch: labeled rows a step.
        unlabeled_batch: unlabeled rows a step.
        learning_rate: at the start; it falls to 0.
        weight_decay: of the weights, for vectors scaled to length 1.
        hidden: share of the features that a made strong view hides.
        noise: of a made strong view, in deviations of each feature.
    """
    weak = checked_features(features)
    check_labels(labels, weak.shape[1], num_classes)
    given = None if strong is None else checked_features(strong, "strong views")
    if given is not None:
        check_strong(given, weak)
    schedule = Schedule(
        checked_steps(steps, weak.shape[1]), labeled_batch, unlabeled_batch, learning_rate, weight_decay, seed
    )
    own = Debiaser(num_classes) if correction is None else deepcopy(correction)
    learner = algorithm(own, threshold, unlabeled_weight, joint=False)

    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    weak, given = weak.to(where), None if given is None else given.to(where)
    generator = torch.Generator(where).manual_seed(seed)
    views = VectorViews(weak, given, Scaling.of(weak), hidden, noise, generator)
    student = LinearNetwork(weak.shape[-1], num_classes).to(where)
    history = run(student, learner.to(where).train(), views, labels.to(where), schedule)

    # The mean of what this classifier is given is 0: the scaling has seen to that.
    head = own.classifier(student.head, torch.zeros(weak.shape[-1], device=where))
    folded = views.scaling.folded_into(head)
    prior = getattr(own, "prior", None)
    if prior is None:
        prior = FittedHead(folded, torch.empty(0), history).probabilities(weak[0]).mean(0)
    return FittedHead(folded.cpu(), prior.detach().float().cpu(), history)
