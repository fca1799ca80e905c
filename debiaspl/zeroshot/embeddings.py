"""Debiased zero-shot predictions from embeddings only: no image is needed and no network is trained."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.data.text import check_class_names
from debiaspl.debias import Debiaser
from debiaspl.debias.correction import within
from debiaspl.features import Fitted, fit
from debiaspl.zeroshot.arrays import TEMPERATURE, check_embeddings, cosine_logits
from debiaspl.zeroshot.predictions import PER_CLASS, Predictions, lost_classes

BATCH = 1024
ROUNDS = 300
"""Least number of batches for the prior: with a momentum of 0.99, its initial value is forgotten by then."""


class ZeroShot:
    """Class embeddings and image embeddings of one model (such as CLIP) -> a label for every image.

        model = ZeroShot(class_embeddings, ["cat", "truck"]).fit(image_embeddings)
        model.transduction_, model.confidence_, model.prior_

    Arrays are NumPy's or tensors; what is returned is NumPy's, in the words of ``DebiasedClassifier``.
    ``fit`` goes over the embeddings in batches and keeps the running prior of the zero-shot predictions (Eq. 4);
    ``debiased_`` are its probabilities after debiasing (Eq. 3). Then, with ``head=True``, the most confident raw
    predictions of each class become labels, and a linear classifier is trained on the embeddings with DebiasPL, like a
    student. ``transduction_`` are its labels; without a head, or if it loses classes that are predicted, the debiased
    ones.

    Args:
        class_embeddings: (C, D), of any length; only their direction counts.
        classes: names of the classes, in this order; by default they are numbered from 0.
        temperature: divisor of the cosines; CLIP's is 0.01.
        strength: how much of the bias is removed (lambda).
        momentum: momentum of the prior's moving average.
        per_class: how many of the most confident raw predictions of each class become labels of the head.
        confidence: minimum confidence of a raw prediction that becomes a label, instead.
        head: train a linear classifier.
        threshold: pseudo-labels of the head less confident than this are not used (tau).
        max_iter: training steps of the head; by default chosen from the number of images.
        random_state: seed of the order.

    Learned: ``classes_`` (C,); ``zero_shot_`` (N, C), the raw probabilities; ``prior_`` (C,); ``debiased_`` (N, C);
    ``probabilities_`` (N, C), from which ``transduction_`` (N,), of ``classes_``, and ``confidence_`` (N,) are taken;
    ``head_`` or None.
    """

    def __init__(
        self,
        class_embeddings: Any,
        classes: Sequence[str] | None = None,
        *,
        temperature: float = TEMPERATURE,
        strength: float = 0.5,
        momentum: float = 0.99,
        per_class: int = PER_CLASS,
        confidence: float | None = None,
        head: bool = True,
        threshold: float = 0.95,
        max_iter: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.class_embeddings = check_embeddings("class embeddings", class_embeddings)
        number = len(self.class_embeddings)
        if number < 2:
            raise DataError(f"there is {number} class embedding, expected two or more: one row per class.")
        self.classes = classes
        self.classes_ = np.arange(number) if classes is None else np.array(check_class_names(classes))
        if len(self.classes_) != number:
            found = f"{number:,} class embeddings for {len(self.classes_)} classes"
            raise DataError(f"there are {found}, expected one each.")
        if not bool(self.class_embeddings.norm(dim=-1).all()):
            raise DataError("a class embedding is all zeros, so it has no direction. Expected those of a text model.")
        self.temperature, self.per_class, self.confidence, self.head = temperature, per_class, confidence, head
        self.strength, self.momentum = strength, momentum
        self.threshold, self.max_iter, self.random_state = threshold, max_iter, random_state
        Debiaser(number, strength, momentum)  # raises for bad settings
        intervals = {"per_class": "[1, inf)", "confidence": "[0, 1]", "max_iter": "[1, inf)", "threshold": "[0, 1]"}
        for name in intervals:
            _ = vars(self)[name] is None or within(name, vars(self)[name], intervals[name])
        if not isinstance(random_state, Integral) or random_state < 0:
            raise ValueError(f"random_state is {random_state!r}, expected a whole number of at least 0.")

    def fit(self, image_embeddings: Any) -> "ZeroShot":
        images = check_embeddings("image embeddings", image_embeddings, self.class_embeddings.shape[1])
        if self.classes is None and len(images) < len(self.classes_):
            found = f"{len(images):,} image embeddings and {len(self.classes_):,} class embeddings look swapped"
            raise DataError(f"{found}: ZeroShot(class_embeddings). If it is right, name the classes.")
        logits = self._logits(images)
        zero_shot, debiaser = logits.softmax(-1), Debiaser(len(self.classes_), self.strength, self.momentum)
        generator = torch.Generator().manual_seed(int(self.random_state))
        seen = 0
        while seen < ROUNDS:
            for rows in torch.split(torch.randperm(len(logits), generator=generator), BATCH):
                debiaser(logits[rows])
                seen += 1
        self.zero_shot_, self.prior_ = zero_shot.numpy(), debiaser.prior.numpy()
        self._fitted_debiaser = debiaser.eval()
        self.debiased_ = self.probabilities_ = debiaser(logits).numpy()
        self.head_ = self._fitted_head(images, zero_shot) if self.head else None
        if self.head_ is not None:
            self.probabilities_ = self.head_.probabilities(images).numpy()
        self.confidence_ = self.probabilities_.max(-1)
        self.transduction_ = self.classes_[self.probabilities_.argmax(-1)]
        return self

    def predict_proba(self, image_embeddings: Any) -> NDArray[np.float32]:
        """Probabilities for new images, (N, C): of the head, or debiased with the learned prior."""
        if not hasattr(self, "prior_"):
            raise DataError("this ZeroShot is not fitted yet. Call fit(image_embeddings) first.")
        images = check_embeddings("image embeddings", image_embeddings, self.class_embeddings.shape[1])
        if self.head_ is not None:
            return self.head_.probabilities(images).numpy()
        return self._fitted_debiaser.probabilities(self._logits(images)).numpy()

    def predict(self, image_embeddings: Any) -> NDArray[Any]:
        """The most likely class of each image."""
        return np.asarray(self.classes_[self.predict_proba(image_embeddings).argmax(-1)])

    def _logits(self, images: Tensor) -> Tensor:
        return cosine_logits(images, self.class_embeddings, self.temperature)

    def _fitted_head(self, images: Tensor, zero_shot: Tensor) -> Fitted | None:
        predictions = Predictions(zero_shot, tuple(map(str, self.classes_)), ("",) * len(images), "ZeroShot")
        try:
            labels = predictions.choose(self.confidence, self.per_class)
        except DataError as error:  # the rest of it is for the command line
            raise DataError(f"{str(error).split('. ')[0]}. A head needs two classes: head=False fits none.") from None
        head = fit(
            images,
            labels,
            len(self.classes_),
            strength=self.strength,
            momentum=self.momentum,
            threshold=self.threshold,
            steps=self.max_iter,
            seed=int(self.random_state),
            device=torch.device("cpu"),
            unit=True,
            first_classifier="random",
        )
        if lost := lost_classes(head.probabilities(images).argmax(-1), predictions):
            what = f"the head has lost classes that are predicted, so it is not used: {', '.join(lost)}."
            warnings.warn(what, stacklevel=3)
        return None if lost else head
