"""Mean Teacher (Tarvainen and Valpola, 2017): the student learns to predict like the average of its past weights."""

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.algorithms.mixing import ramp
from debiaspl.debias import Correction
from debiaspl.debias.correction import within


class MeanTeacher(Algorithm):
    """Squared error between the student's and the teacher's probabilities for two weak views of an unlabeled image (J,
    the mean over images and classes). The teacher is the run's average of the student, in eval mode (``average_decay``
    is the paper's alpha). The paper compares labeled images too.

    Args:
        unlabeled_weight: final weight of the squared error; the paper: 100, beside a labeled loss that is divided by
            the size of the whole batch.
        ramp_up: share of the training over which the weight grows, as exp(-5 (1 - t)^2) with t from 0 to 1; the
            paper: 40,000 of 150,000 steps.
    """

    views = Views(weak=2)
    teacher = "average"
    needs_average = True
    hard_labels = False

    def __init__(
        self, correction: Correction | None = None, unlabeled_weight: float = 50.0, ramp_up: float = 0.27
    ) -> None:
        super().__init__(correction)
        self.unlabeled_weight, self.ramp_up = unlabeled_weight, within("ramp_up", ramp_up, "[0, 1]")

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        seen_by_student, seen_by_teacher = batch.weak
        both = models.student(torch.cat([batch.labeled, seen_by_student]))
        logits, logits_student = both.tensor_split([len(batch.labeled)])
        with torch.no_grad():
            logits_teacher = models.teacher(seen_by_teacher)

        target = self.correction(logits_teacher)
        predicted = self.correction.margin(logits_student).softmax(-1)
        growth = (-5 * (1 - ramp(batch.progress, self.ramp_up)).square()).exp()

        confidence, label = target.max(-1)
        self.report_labels(logits_teacher, confidence, label)
        return {
            "labeled": self.labeled_loss(logits, batch.labels),
            "unlabeled": self.unlabeled_weight * growth * F.mse_loss(predicted, target),
        }
