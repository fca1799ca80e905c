"""DebiasPL as a scikit-learn classifier."""

import warnings
from copy import deepcopy
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_consistent_length, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("DebiasedClassifier needs scikit-learn 1.6 or newer: pip install 'debiaspl[sklearn]'") from error

from debiaspl.data import UNLABELED, ImageSet
from debiaspl.estimator.images import STEPS, Pictures, recipe_of, train_network
from debiaspl.estimator.labels import classes_and_codes, unlabeled
from debiaspl.features import fit
from debiaspl.models import Network, predict_set


class DebiasedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifier for few labeled and many unlabeled rows, trained with debiased pseudo-labels.

    DebiasPL (Wang et al., CVPR 2022) on top of FixMatch. For features it trains a linear classifier, which starts from
    labels propagated over the graph of nearest neighbours; for images it trains a small convolutional network.

    Parameters
    ----------
    strength : float, default=0.5
        How much of the bias is removed from the pseudo-labels; with 0 it is FixMatch.
    momentum : float, default=0.99
        Momentum of the running estimate of the bias, in [0, 1).
    threshold : float, default=0.7
        Pseudo-labels less confident than this are not used. The paper's 0.95 is for long training of large networks;
        small ones are less confident.
    max_iter : int, default=None
        Training steps; by default chosen from the data.
    network : {'auto', 'linear', 'small'} or str, default='auto'
        'linear' is for features. For images: 'small', or a wide ResNet by depth and width, such as 'wrn-28-2'.
    scaling : {'auto', 'unit', 'standard'}, default='auto'
        For features: 'unit' subtracts the mean and divides every row by its length, for embeddings and pixels;
        'standard' divides every column by its standard deviation, for columns with different units. 'auto' is 'unit'
        from 64 columns on.
    flip : bool, default=False
        For images: whether a mirrored image shows the same class; True for most photos, not for digits.
    optimise : {'photos', 'classes'}, default='photos'
        For features: 'photos' is right for most rows, 'classes' counts every class the same. They differ where the
        class shares of the rows without a label, which are estimated, are uneven.
    random_state : int, RandomState instance or None, default=None
        Seed of initial weights, order and views. The same number gives the same predictions, bit for bit.
    device : str, default=None
        'cuda' or 'cpu'; by default 'cuda' if available.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes that have labels.
    transduction_ : ndarray of shape (n_samples,)
        A label for every row of fit: the given one, or the predicted one for rows without a label.
    prior_ : ndarray of shape (n_classes,)
        The bias: how often the model predicted each class during training, whatever the true classes are.
    shares_ : ndarray of shape (n_classes,)
        For features: the estimated class shares of the rows without a label; None with strength 0.
    model_ : torch.nn.Module
        The trained classifier: a linear one for raw features, or a network for images.
    n_features_in_ : int
        Number of features in fit; for images, the height.
    n_iter_ : int
        Number of training steps.

    Notes
    -----
    A row has no label if y is -1 or, among labels of other types, None, NaN, an empty string or the string '-1'. If y
    contains only -1 and 1, they are the two classes of a binary problem. ``score`` ignores rows without a label, so
    that a grid search over partly labeled data works.

    Images are arrays of shape (n_samples, height, width) or (n_samples, height, width, channels), with 1 or 3
    channels. uint8 is used as it is; other numbers are scaled from the smallest to the largest value in fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from debiaspl import DebiasedClassifier
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.full(150, -1)
    >>> y[::10] = truth[::10]                  # 15 labels, 135 rows without
    >>> classifier = DebiasedClassifier(random_state=0).fit(X, y)
    >>> bool((classifier.transduction_ == truth).mean() > 0.85)
    True
    """

    def __init__(
        self,
        *,
        strength: float = 0.5,
        momentum: float = 0.99,
        threshold: float = 0.7,
        max_iter: int | None = None,
        network: str = "auto",
        scaling: str = "auto",
        flip: bool = False,
        optimise: str = "photos",
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.strength = strength
        self.momentum = momentum
        self.threshold = threshold
        self.max_iter = max_iter
        self.network = network
        self.scaling = scaling
        self.flip = flip
        self.optimise = optimise
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from rows with and without labels; y is -1 for rows without a label."""
        rows = self._rows(X, reset=True)
        self.classes_, codes = classes_and_codes(y)
        check_consistent_length(rows, codes)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if rows.ndim == 2:
            self._fit_features(rows, torch.from_numpy(codes), seed)
        else:
            self._fit_images(rows, torch.from_numpy(codes), seed)
        self.transduction_ = self.classes_[np.where(codes >= 0, codes, self._most_likely(rows))]
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """Class probabilities, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._probabilities(self._rows(X, reset=False))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """The most likely class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self._most_likely(self._rows(X, reset=False))])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803 - scikit-learn's name
        """Accuracy on the rows of X that have a label in y."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        known = np.ones(len(rows), bool) if -1 in self.classes_.tolist() else ~unlabeled(y)
        check_consistent_length(rows, known, sample_weight)
        if not known.any():
            raise ValueError("no row of y has a label, expected at least one to compute the score.")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(super().score(rows[known], np.asarray(y)[known], weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _rows(self, X: Any, reset: bool) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        rows: NDArray[Any] = validate_data(self, X, reset=reset, dtype="numeric", allow_nd=True)
        if not reset and (self._pictures is None) != (rows.ndim == 2):
            kind = "features (N, D)" if self._pictures is None else "images (N, H, W) or (N, H, W, C)"
            raise ValueError(f"X has shape {rows.shape}, expected {kind}, as in fit.")
        if rows.ndim == 2 and rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float32 if rows.dtype == np.float16 else np.float64)
        return np.ascontiguousarray(rows)  # torch takes no reversed arrays

    def _fit_features(self, rows: NDArray[Any], codes: torch.Tensor, seed: int) -> None:
        if self.network not in ("auto", "linear"):
            raise ValueError(f"network is {self.network!r}, expected 'auto' or 'linear' for features, {rows.shape}.")
        if self.scaling not in ("auto", "unit", "standard"):
            raise ValueError(f"scaling is {self.scaling!r}, expected 'auto', 'unit' or 'standard'.")
        fitted = fit(
            _tensor(rows),
            codes,
            len(self.classes_),
            strength=self.strength,
            momentum=self.momentum,
            threshold=self.threshold,
            steps=self._steps(),
            seed=seed,
            device=self._device(),
            unit=None if self.scaling == "auto" else self.scaling == "unit",
            optimise=self.optimise,
        )
        self._pictures: Pictures | None = None
        self._fitted = fitted
        self.model_: Network = fitted.network
        self.prior_ = np.asarray(fitted.prior)
        self.shares_ = None if fitted.shares is None else fitted.shares.estimate.numpy()
        self.n_iter_: int = fitted.recipe.steps

    def _fit_images(self, rows: NDArray[Any], codes: torch.Tensor, seed: int) -> None:
        settings = self.network, self.strength, self.momentum, self.threshold, self.flip
        recipe = recipe_of(*settings, self._steps() or STEPS, seed)
        pictures = Pictures(rows)
        self.model_, prior = train_network(pictures(rows), codes, len(self.classes_), recipe, self._device())
        self._pictures, self.prior_, self.n_iter_ = pictures, prior.numpy(), recipe.steps

    def _probabilities(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self._pictures is None:
            return np.asarray(self._fitted.probabilities(_tensor(rows)))
        where = self._device()
        network = self.model_ if where.type == "cpu" else deepcopy(self.model_).to(where)
        pixels, names = self._pictures(rows), tuple(map(str, range(len(self.classes_))))
        images = ImageSet(pixels, torch.full((len(pixels),), UNLABELED), names)
        return torch.cat([seen.probabilities.cpu() for seen in predict_set(network, images)]).numpy()

    def _most_likely(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self._pictures is None:
            return np.asarray(self._fitted.predict(_tensor(rows))[1])
        return self._probabilities(rows).argmax(1)

    def _steps(self) -> int | None:
        steps = self.max_iter
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1):
            raise ValueError(f"max_iter is {steps!r}, expected a whole number of at least 1, or None.")
        return None if steps is None else int(steps)

    def _device(self) -> torch.device:
        found = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device not in (None, "cpu", found):
            raise ValueError(f"device is {self.device!r}, expected 'cuda' or 'cpu'; there is a {found.upper()} here.")
        return torch.device(self.device or found)


def _tensor(rows: NDArray[Any]) -> torch.Tensor:
    """The rows without a copy. They are only read, so that a file that is mapped into memory may be read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(rows)
