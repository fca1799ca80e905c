"""Distillation (SimCLRv2, section 2.3: Chen et al., 2020): a finished run is the teacher of another network."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.algorithms.mixing import sharpen
from debiaspl.debias import Correction
from debiaspl.debias.correction import within
from debiaspl.encoders import NetworkFacts, load_trained
from debiaspl.models import Network
from debiaspl.models.average import InEvalMode, as_buffers
from debiaspl.models.start import WEIGHTS


class Distill(Algorithm):
    """The student learns a finished model's predictions for weak views of unlabeled images: the cross-entropy
    ``-sum_y P_T(y | x; tau) log P_S(y | x; tau)``, where P(y | x; tau) is the softmax of logits / tau.

    The student may be a smaller network than the teacher, or an equal one, which often becomes better. The correction
    is applied to the teacher's logits, and its margin to the student's, both before the temperature. The teacher's
    folder is read only when the run starts.

    Args:
        teacher_run: folder of the finished run that is the teacher.
        temperature: temperature of teacher and student (tau); above 1, less likely classes have more weight.
        labeled_weight: weight of the labeled loss, beside the teacher's loss of weight 1. The paper has
            1 - alpha and alpha; its main results use no labels here, which is 0.
    """

    views = Views(weak=1)
    hard_labels = False
    needs_pictures = "its teacher needs images."

    def __init__(
        self,
        classes: Sequence[str],
        channels: int,
        correction: Correction | None = None,
        teacher_run: str = "",
        temperature: float = 1.0,
        labeled_weight: float = 0.0,
    ) -> None:
        super().__init__(correction)
        if not teacher_run:
            raise ValueError("teacher_run is empty, expected a finished run. Use --set teacher_run=runs/mine.")
        self.temperature = within("temperature", temperature, "(0, inf)")
        self.labeled_weight = within("labeled_weight", labeled_weight, "[0, inf)")
        self.classes, self.channels, self.folder = tuple(classes), channels, Path(teacher_run).expanduser()
        self.finished = FinishedTeacher()

    def load_pretrained(self) -> None:
        network, facts = load_trained(self.folder)
        if facts.classes != self.classes:
            pairs = enumerate(zip_longest(facts.classes, self.classes))
            number, (there, here) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
            found = f"class {number} of the teacher in {self.folder} is {there}, and of this task {here}"
            raise ValueError(f"{found}. Expected the same classes in the same order; use a run of the same data.")
        if facts.channels != self.channels:
            raise ValueError(f"{self.folder} knows {facts.channels} channels, and images here have {self.channels}.")
        self.finished.take(network, facts)

    def files(self) -> dict[str, Path]:
        return {"teacher": self.folder / WEIGHTS}

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        (weak,) = batch.weak
        logits_teacher = self.finished(weak)
        probabilities = self.correction(logits_teacher)
        confidence, label = probabilities.max(-1)
        self.report_labels(logits_teacher, confidence, label)

        count = len(batch.labels) if self.labeled_weight else 0
        logits, logits_student = models.student(torch.cat([batch.labeled[:count], weak])).tensor_split([count])
        predicted = self.correction.margin(logits_student) / self.temperature
        losses = {"unlabeled": F.cross_entropy(predicted, sharpen(probabilities, self.temperature))}
        if self.labeled_weight:
            losses["labeled"] = self.labeled_weight * self.labeled_loss(logits, batch.labels)
        return losses


class FinishedTeacher(InEvalMode):
    """``teacher(images)``: logits of a finished network. Its weights and its description are buffers: a resumed run
    finds them in its own checkpoint."""

    facts: Tensor
    network: Network
    size: tuple[int, int]

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("facts", torch.empty(0, dtype=torch.uint8))

    def take(self, network: Network, facts: NetworkFacts) -> None:
        self.facts = torch.tensor(list(facts.text.encode()), dtype=torch.uint8, device=self.facts.device)
        self.size, self.network = facts.size, as_buffers(network).to(self.facts.device)
        for value in self.network.buffers():
            if value.ndim == 4:  # channels last, like the student
                value.data = value.data.contiguous(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            if images.shape[2:] != self.size:
                images = F.interpolate(images, self.size, mode="bilinear", antialias=True)
            return self.network(images)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        saved = state_dict.get(f"{prefix}facts")
        if saved is not None and not (saved.shape == self.facts.shape and saved.equal(self.facts.to(saved.device))):
            facts = NetworkFacts.of(bytes(saved.tolist()).decode(), "the checkpoint")
            self.take(facts.build("the checkpoint"), facts)
        super()._load_from_state_dict(state_dict, prefix, *others)
