"""BYOL (Grill et al., 2020): self-supervised features without negative examples."""

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models, Views
from debiaspl.algorithms.heads import AveragedHead, perceptron, unit
from debiaspl.algorithms.self_supervised import SelfSupervised
from debiaspl.debias import Correction


class BYOL(SelfSupervised):
    """The student predicts from one strong view the teacher's features of the other ones; the teacher is its average.

    With two views this is BYOL. With more, the target is the mean of the teacher's other views (Pototzky et al., 2022),
    which is less noisy, so that fewer steps are needed.

    Args:
        strong_views: views of each image.
        hidden: width of the hidden layers of the heads.
        width: width of the space in which predictions are made.
        key_decay: decay of the moving average of the teacher's head.
    """

    teacher = "average"
    needs_average = True
    heads = ("projector.", "predictor.", "average.")

    def __init__(
        self,
        correction: Correction | None = None,
        num_features: int = 512,
        strong_views: int = 2,
        hidden: int = 1024,
        width: int = 256,
        key_decay: float = 0.99,
    ) -> None:
        super().__init__(correction)
        if strong_views < 2:
            raise ValueError(f"strong_views is {strong_views}, expected 2 or more: one view predicts the others.")
        self.views = Views(strong=strong_views)
        self.projector = perceptron((num_features, hidden, width), norm=True)
        self.predictor = perceptron((width, hidden, width), norm=True)
        self.average = AveragedHead(self.projector, key_decay)
        self.advice = (
            "Only the slow teacher and the predictor keep features apart here: set average_decay and key_decay "
            f"closer to 1 (key_decay is {key_decay:g}), train for more steps, or try a smaller learning_rate. With "
            "little data, a contrastive algorithm is safer: algorithm=simclr or moco."
        )

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        count, views = self.views.strong, torch.cat(batch.strong)
        self.average.follow(self.projector)
        with torch.no_grad():
            seen = unit(self.average(models.teacher.embed(views)))
            seen = seen.view(count, -1, seen.shape[-1])
            target = unit((seen.sum(0) - seen) / (count - 1))
        predicted = self.predictor(self.projector(models.student.embed(views)))
        predicted = unit(predicted).view_as(target)
        return {"prediction": 2 - 2 * (predicted * target).sum(-1).mean()}
