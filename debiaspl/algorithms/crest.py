"""CReST and CReST+ (Wei et al., 2021): generations of FixMatch, each with labels that the one before it was sure of."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.algorithms.fixmatch import FixMatch
from debiaspl.debias import Correction
from debiaspl.debias.alignment import DistributionAlignment


class CReST(FixMatch):
    """When a generation ends, its most confident labels of rare classes join the labeled images of the next one.

    Rare classes are predicted seldom but, when they are, rightly. So with the classes sorted by their labels, N_1 the
    largest, the share ``mu_l = (N_{L+1-l} / N_1) ** alpha`` of the images predicted as class l is taken: all of the
    rarest class, fewest of the most frequent. Each generation starts from new weights, from a correction that has
    learned nothing yet, and from the first labels, to which it adds its own choice.

    Args:
        class_counts: labels of each class, of which the sampling rates are made. Equal counts take every prediction.
        correction: what is done to the predictions before they become labels in a step; nothing, if not given.
        generations: how often the network is trained; the steps are shared among them. 1 is FixMatch; the paper: 6 on
            CIFAR-10, 15 on larger sets.
        sampling_power: how much the frequent classes are held back (alpha); 0 takes every prediction.
        adopt_corrected: choose and label the adopted images by corrected predictions; the paper takes the raw ones.
        **others: those of FixMatch, for every generation alike.
    """

    def __init__(
        self,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        generations: int = 3,
        sampling_power: float = 1 / 3,
        adopt_corrected: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(correction, **others)
        if generations < 1:
            raise ValueError(f"generations is {generations}, expected at least 1, which is FixMatch; CReST uses 6.")
        if not 0 <= sampling_power < float("inf"):
            raise ValueError(
                f"sampling_power is {sampling_power}, expected a number >= 0: 0 takes every prediction, CReST uses "
                "1/3; a negative one would prefer the frequent classes."
            )
        self.generations, self.adopt_corrected = generations, adopt_corrected
        self.sampling_rates = sampling_rates(class_counts, sampling_power)
        self._unlearned = {name: value.clone() for name, value in self.correction.state_dict().items()}

    def adopt(self, probabilities: Tensor, generation: int) -> Tensor:
        used = self.correction.probabilities(probabilities.log()) if self.adopt_corrected else probabilities
        confidence, label = used.max(-1)
        # Even probabilities, those of a file that cannot be read, are no prediction.
        label = label.where(probabilities.amax(-1) > probabilities.amin(-1), -1)
        adopted = torch.full_like(label, -1)
        for number, rate in enumerate(self.sampling_rates):
            predicted = (label == number).nonzero().flatten()
            order = confidence[predicted].argsort(descending=True, stable=True)
            # Rounded first: 15 / 22 * 22 is 14.999999999999998.
            adopted[predicted[order[: int(round(rate * len(predicted), 6))]]] = number
        self.correction.load_state_dict(self._unlearned)
        return adopted


class CReSTPlus(CReST):
    """CReST with progressive distribution alignment: later generations are pulled towards more balanced labels.

    In generation g of 0 to G the target of the alignment is ``p ** t_g``, normalised, where p is the target that the
    correction was made with and ``t_g = (1 - g / G) + (g / G) t_min``.

    Args:
        class_counts: as in CReST.
        final_temperature: t in the last generation (t_min); 1 is alignment that does not change.
        **others: those of CReST.
    """

    own_correction = "alignment"
    temperature: Tensor
    first_target: Tensor

    def __init__(
        self,
        class_counts: Sequence[int],
        correction: Correction | None = None,
        final_temperature: float = 0.5,
        **others: Any,
    ) -> None:
        super().__init__(class_counts, correction, **others)
        if not isinstance(self.correction, DistributionAlignment):
            raise ValueError(
                f"CReST+ is CReST with distribution alignment, found {type(self.correction).__name__} as correction. "
                "Use correction=alignment, or algorithm=crest, which takes any correction."
            )
        if not 0 <= final_temperature <= 1:
            raise ValueError(
                f"final_temperature is {final_temperature}, expected a number in [0, 1]: with 0 the last generation's "
                "target is uniform, with 1 it is that of the first; CReST+ uses 0.5."
            )
        self.final_temperature = final_temperature
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
        """From the temperature, which is what a checkpoint holds."""
        assert isinstance(self.correction, DistributionAlignment)
        tempered = self.first_target**self.temperature
        self.correction.target.copy_(tempered / tempered.sum())


def sampling_rates(class_counts: Sequence[int], power: float) -> list[float]:
    """Share of the predictions of each class that is adopted: the rarest class has the rate 1."""
    order = sorted(range(len(class_counts)), key=lambda number: -class_counts[number])
    largest = class_counts[order[0]]
    rates = {number: (class_counts[order[-1 - rank]] / largest) ** power for rank, number in enumerate(order)}
    return [rates[number] for number in range(len(class_counts))]
