"""CReST (Wei et al., 2021): generations of FixMatch, each adding confident labels from the one before."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.algorithms.fixmatch import FixMatch
from debiaspl.debias import Correction
from debiaspl.debias.alignment import DistributionAlignment
from debiaspl.debias.correction import within


class CReST(FixMatch):
    """After each generation, confident predictions of rare classes become labels for the next generation.

    Rare classes are predicted rarely, but then mostly correctly. So with the classes sorted by their number of labels,
    N_1 the largest, the share ``mu_l = (N_{L+1-l} / N_1) ** alpha`` of the images predicted as class l is adopted: all
    of the rarest class. Each generation starts with new weights and a new correction.

    Args:
        generations: how often the network is trained; the steps are divided among them. 1 is FixMatch; the paper: 6 on
            CIFAR-10, 15 on larger sets.
        sampling_power: how strongly frequent classes are reduced (alpha); with 0, as with equal counts, every
            prediction is adopted.
        adopt_corrected: adopt labels from corrected predictions; the paper uses the raw ones.
    """

    def __init__(
        self,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        generations: int = 6,
        sampling_power: float = 1 / 3,
        adopt_corrected: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        self.generations = within("generations", generations, "[1, inf)")
        self.adopt_corrected = adopt_corrected
        self.sampling_rates = sampling_rates(class_counts, within("sampling_power", sampling_power, "[0, inf)"))
        self._initial_state = {name: value.clone() for name, value in self.correction.state_dict().items()}

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        used = self.correction.probabilities(probabilities.log()) if self.adopt_corrected else probabilities
        confidence, label = used.max(-1)
        # Uniform probabilities are those of a file that cannot be read.
        label = label.where(probabilities.amax(-1) > probabilities.amin(-1), -1)
        adopted = torch.full_like(label, -1)
        for number, rate in enumerate(self.sampling_rates):
            predicted = (label == number).nonzero().flatten()
            order = confidence[predicted].argsort(descending=True, stable=True)
            # Rounded first, because 15 / 22 * 22 is 14.999999999999998.
            adopted[predicted[order[: int(round(rate * len(predicted), 6))]]] = number
        self.correction.load_state_dict(self._initial_state)
        return adopted


class CReSTPlus(CReST):
    """CReST with progressive distribution alignment: the target becomes more balanced with each generation g of 0 to G.
    It is ``p ** t_g``, normalised, with the correction's own target p and ``t_g = (1 - g / G) + (g / G) t_min``.

    Args:
        sampling_power: as in CReST; 1/2 here and 1/3 there, as the authors chose.
        final_temperature: t in the last generation (t_min); with 1 the target does not change, with 0 it is uniform.
    """

    about = "CReST+ (Wei et al., 2021): CReST with labels that are aligned with a more balanced target each generation."
    own_correction = "alignment"
    temperature: Tensor
    first_target: Tensor

    def __init__(
        self,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        sampling_power: float = 1 / 2,
        final_temperature: float = 0.5,
        **others: Any,
    ) -> None:
        super().__init__(class_counts, correction, sampling_power=sampling_power, **others)
        if not isinstance(self.correction, DistributionAlignment):
            raise ValueError(f"CReST+ needs alignment, but has {type(self.correction).__name__}: correction=alignment.")
        self.final_temperature = within("final_temperature", final_temperature, "[0, 1]")
        self.register_buffer("temperature", torch.ones(()))
        self.register_buffer("first_target", self.correction.target.clone(), persistent=False)

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        self._set_target()
        return super().losses(models, batch)

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        self._set_target()
        adopted = super().adopt(probabilities, generation)
        done = (generation + 1) / (self.generations - 1)
        self.temperature.fill_(1 - done * (1 - self.final_temperature))
        return adopted

    def _set_target(self) -> None:
        """Set the target from the temperature, which is part of the checkpoint."""
        assert isinstance(self.correction, DistributionAlignment)
        tempered = self.first_target**self.temperature
        self.correction.target.copy_(tempered / tempered.sum())


def sampling_rates(class_counts: Sequence[int], power: float) -> list[float]:
    """Share of the predictions of each class that is adopted: the rarest class has the rate 1."""
    order = sorted(range(len(class_counts)), key=lambda number: -class_counts[number])
    largest = class_counts[order[0]]
    rates = {number: (class_counts[order[-1 - rank]] / largest) ** power for rank, number in enumerate(order)}
    return [rates[number] for number in range(len(class_counts))]
