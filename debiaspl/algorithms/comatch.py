"""CoMatch (Li, Xiong and Hoi, 2021): class probabilities and embeddings that regularise each other."""

from types import MappingProxyType

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views, predict
from debiaspl.algorithms.contrast import perceptron, unit, write_over_oldest
from debiaspl.algorithms.mixing import one_hot
from debiaspl.debias import Correction, ranks
from debiaspl.debias.correction import within


class CoMatch(Algorithm):
    """Smooths labels over similar images, and trains images with similar labels to have similar embeddings.

    A memory holds the embeddings z and probabilities p of the last weak views, and of labeled images with their true
    label. The pseudo-label of a weak view is ``q = alpha p + (1 - alpha) sum_k a_k p_k``, where
    ``a = softmax(z z_k / t)`` over the memory, once that is full. There are two unlabeled losses:

    * The first strong view learns the soft label q, if max q reaches tau.
    * Two strong views give the embedding graph ``exp(z_b z'_j / t)``, which is trained to match the pseudo-label graph
      ``q_b q_j``, without edges below T and with 1 from each image to itself. As in the authors' code all edges go from
      the first view to the second; in the paper, those between two images go from first to first.

    The paper first aligns p with a uniform marginal: the correction ``alignment`` with ``target=uniform``.

    Args:
        unlabeled_weight: weight of the pseudo-label loss (lambda_cls).
        contrast_weight: weight of the graph loss (lambda_ctr).
        own_share: share of an image's own prediction in its label (alpha); 1 is no smoothing.
        temperature: temperature of the similarity of embeddings (t).
        graph_threshold: images whose labels are less similar than this have no edge (T).
        memory: number of images in the memory (K); the paper: five batches.
        embedding: width of the embeddings.
    """

    views = Views(weak=1, strong=2)
    hard_labels = False
    own_correction = "alignment"
    own_settings = MappingProxyType({"target": "uniform"})
    embeddings: Tensor
    probabilities: Tensor
    written: Tensor

    def __init__(
        self,
        num_classes: int,
        num_features: int,
        correction: Correction | None = None,
        threshold: float = 0.95,
        unlabeled_weight: float = 1.0,
        contrast_weight: float = 1.0,
        own_share: float = 0.9,
        temperature: float = 0.2,
        graph_threshold: float = 0.8,
        memory: int = 2560,
        embedding: int = 64,
    ) -> None:
        super().__init__(correction)
        self.threshold = within("threshold", threshold, "[0, 1]")
        self.graph_threshold = within("graph_threshold", graph_threshold, "[0, 1]")
        self.unlabeled_weight, self.contrast_weight = unlabeled_weight, contrast_weight
        self.own_share = within("own_share", own_share, "[0, 1]")
        self.temperature = within("temperature", temperature, "(0, inf)")
        self.memory = within("memory", memory, "[1, inf)")
        embedding = within("embedding", embedding, "[1, inf)")
        self.projection = perceptron((num_features, num_features, embedding), norm=False)
        self.register_buffer("embeddings", torch.zeros(memory, embedding))
        self.register_buffer("probabilities", torch.zeros(memory, num_classes))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))

    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        features, (features_weak,), (features_strong, features_second) = predict(models, batch, True, features=True)
        logits, logits_strong = models.student.head(features), models.student.head(features_strong)
        logits_weak = models.teacher.head(features_weak).detach()
        embedded, embedded_weak = self._embed(features).detach(), self._embed(features_weak).detach()

        probabilities = self.correction(logits_weak)
        smoothed = self._smoothed(probabilities, embedded_weak)
        known = one_hot(batch.labels, probabilities)
        self._remember((embedded_weak, probabilities), (embedded, known))

        confidence, label = smoothed.max(-1)
        keep = confidence >= self.threshold
        unlabeled = F.cross_entropy(self.correction.margin(logits_strong), smoothed, reduction="none") * keep
        pair = self._embed(features_strong), self._embed(features_second)
        self.report_labels(logits_weak, confidence, label, keep)
        return {
            "labeled": self.labeled_loss(logits, batch.labels),
            "unlabeled": self.unlabeled_weight * unlabeled.mean(),
            "contrast": self.contrast_weight * contrast(*pair, smoothed, self.temperature, self.graph_threshold),
        }

    def _embed(self, features: Tensor) -> Tensor:
        return unit(self.projection(features))

    def _smoothed(self, probabilities: Tensor, embedded: Tensor) -> Tensor:
        with torch.autocast(embedded.device.type, enabled=False):  # the temperature amplifies rounding errors of bf16
            similarity = (embedded @ self.embeddings.T / self.temperature).softmax(-1)
            recalled = similarity @ self.probabilities
        full = self.written >= self.memory
        return probabilities.lerp(recalled, full * (1 - self.own_share))

    def _remember(self, *pairs: tuple[Tensor, Tensor]) -> None:
        rows = torch.cat([ranks.gathered(torch.cat(pair, 1)) for pair in pairs])
        width = self.embeddings.shape[1]
        write_over_oldest(self.written, (self.embeddings, rows[:, :width]), (self.probabilities, rows[:, width:]))


def contrast(first: Tensor, second: Tensor, labels: Tensor, temperature: float, threshold: float) -> Tensor:
    """Cross-entropy of the embedding graph, ``first`` to ``second`` of all ranks, with the graph of soft ``labels``."""
    second, others = ranks.gathered_with_gradient(second), ranks.gathered(labels)
    itself = ranks.own() * len(first) + torch.arange(len(first), device=first.device)
    with torch.autocast(first.device.type, enabled=False):
        graph = labels @ others.T
        graph = (graph * (graph >= threshold)).scatter(1, itself[:, None], 1)
        similarity = first @ second.T / temperature
    return F.cross_entropy(similarity, graph / graph.sum(-1, keepdim=True))
