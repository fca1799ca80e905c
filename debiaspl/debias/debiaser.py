"""DebiasPL: adaptive debiasing with an adaptive marginal loss (Wang et al., CVPR 2022)."""

from torch import Tensor

from debiaspl.debias.correction import Traits, at_least_float32
from debiaspl.debias.running import RunningPrior


class Debiaser(RunningPrior):
    """Keeps a running estimate of how often the model predicts each class, and removes that bias from pseudo-labels.

    In the paper's letters: ``prior`` is p-hat, ``strength`` is lambda, ``momentum`` is m.

    * ``debiaser(weak_logits)`` is ``softmax(f - strength * log(prior))`` (Eq. 3) with the prior from before the batch.
      In training mode the prior then moves towards the batch mean of the **raw** probabilities ``softmax(f)`` (Eq. 4).
      Every row counts, confident or not, over all ranks if ``torch.distributed`` is initialised.
    * ``debiaser.margin(strong_logits)`` is ``z + strength * log(prior)``, with the prior after the batch. Its
      cross-entropy is the adaptive marginal loss (Eq. 5), whose margins are ``strength * log(1 / prior)``.

    The paper contradicts itself on the update: Eq. 4 uses ``softmax(f)``, Algorithm 1 the debiased prediction. This
    class follows Eq. 4.

    The prior does not change if the batch is empty or has a non-finite logit on any rank.

    Args:
        num_classes: number of classes, C; the prior starts at 1 / C.
        strength: how much of the bias is removed; 0 removes nothing.
        momentum: momentum of the prior's moving average, in [0, 1).
        labeled_strength: strength of the same margin on the labeled loss; 0, as in the paper, is no margin.
        margin_strength: strength of the margin on the unlabeled loss; by default that of the labels. With 0 only the
            labels are debiased, as in the paper's ablation.
    """

    traits = Traits(
        helps_training=True,
        needs_no_class_distribution=True,
        adapts=True,
        works_on_balanced=True,
        allows_shift=True,
    )
    corrects_pseudo_labels_alone = True

    def __init__(
        self,
        num_classes: int,
        strength: float = 0.5,
        momentum: float = 0.99,
        labeled_strength: float = 0.0,
        margin_strength: float | None = None,
    ) -> None:
        super().__init__(num_classes, momentum)
        margin = strength if margin_strength is None else margin_strength
        strengths = {"strength": strength, "labeled_strength": labeled_strength, "margin_strength": margin}
        for name, value in strengths.items():
            if not 0 <= value < float("inf"):
                raise ValueError(
                    f"{name} is {value!r}, expected a number >= 0: 0 removes no bias, the paper uses a strength of "
                    "0.5, and a negative strength would add bias."
                )
        self.strength, self.labeled_strength, self.margin_strength = map(float, strengths.values())

    def places(self) -> frozenset[str]:
        strengths = {
            "labels": self.strength,
            "unlabeled loss": self.margin_strength,
            "labeled loss": self.labeled_strength,
        }
        return frozenset(place for place, strength in strengths.items() if strength)

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        self.check(weak_logits, "weak_logits")
        return (at_least_float32(weak_logits.detach()) - self.strength * self.log_prior()).softmax(-1)

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        self.check(strong_logits, "strong_logits")
        return at_least_float32(strong_logits) + self.margin_strength * self.log_prior()

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        if not self.labeled_strength:
            return super().labeled_margin(logits, labels)
        self.check(logits, "logits")
        return at_least_float32(logits) + self.labeled_strength * self.log_prior()

    def extra_repr(self) -> str:
        text = f"num_classes={self.num_classes}, strength={self.strength}, momentum={self.momentum}"
        if self.labeled_strength:
            text += f", labeled_strength={self.labeled_strength}"
        return text if self.margin_strength == self.strength else f"{text}, margin_strength={self.margin_strength}"
