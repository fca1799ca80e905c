"""DebiasedClassifier as a scikit-learn user meets it."""

import doctest
import pickle
import subprocess
import sys

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import debiaspl.estimator.classifier
from debiaspl import DebiasedClassifier
from debiaspl.estimator.labels import classes_and_codes, unlabeled
from debiaspl.features import fit


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels with -1, truth."""
    rows, truth = load_iris(return_X_y=True)
    labels = np.full(150, -1)
    labels[::10] = truth[::10]
    return rows, labels, truth


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images of the first three digits, labels with -1, truth."""
    bunch = load_digits(n_class=3)
    labels = np.full(len(bunch.target), -1)
    for number in range(3):
        labels[np.flatnonzero(bunch.target == number)[:4]] = number
    return bunch.images, labels, bunch.target


@pytest.fixture(scope="module")
def on_images(digits) -> DebiasedClassifier:
    images, labels, _ = digits
    return DebiasedClassifier(max_iter=60, random_state=0).fit(images, labels)


def few(**settings) -> DebiasedClassifier:
    return DebiasedClassifier(**{"max_iter": 60, "random_state": 0, **settings})


@parametrize_with_checks([DebiasedClassifier(max_iter=20)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring():
    assert doctest.testmod(debiaspl.estimator.classifier).failed == 0
    assert ">>> classifier" in DebiasedClassifier.__doc__


def test_transduction_keeps_given_labels_and_fills_the_others(iris):
    rows, labels, truth = iris
    wrong = labels.copy()
    wrong[0] = 2
    fitted = few().fit(rows, wrong)
    assert fitted.transduction_[0] == 2
    missing = wrong < 0
    assert np.array_equal(fitted.transduction_[missing], fitted.predict(rows)[missing])
    assert (few().fit(rows, labels).transduction_ == truth).mean() > 0.8


def test_attributes(iris):
    rows, labels, _ = iris
    fitted = few().fit(rows, labels)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.n_features_in_ == 4
    assert fitted.n_iter_ == 60
    assert fitted.prior_.shape == (3,)
    assert fitted.prior_.sum() == pytest.approx(1)
    probabilities = fitted.predict_proba(rows)
    assert np.allclose(probabilities.sum(1), 1)
    assert DebiasedClassifier(random_state=0).fit(rows, labels).n_iter_ == 250


def test_the_prior_is_an_estimate_of_the_bias(iris):
    """Rows of one class four times as many: the model predicts it more often, and the prior says so."""
    rows, labels, truth = iris
    more = np.concatenate([rows, rows[truth == 0], rows[truth == 0], rows[truth == 0]])
    fitted = few(max_iter=200, momentum=0.9).fit(more, np.concatenate([labels, np.full(150, -1)]))
    assert fitted.prior_.argmax() == 0
    assert np.abs(fitted.prior_ - fitted.predict_proba(more).mean(0)).max() < 0.05
    even = few(max_iter=200, momentum=0.9).fit(rows, labels)
    assert fitted.prior_[0] > even.prior_[0] + 0.2


def test_it_is_a_fit_of_its_features(iris):
    rows, labels, _ = iris
    seed = int(np.random.RandomState(3).randint(2**31 - 1))
    cpu = torch.device("cpu")
    plain = fit(torch.tensor(rows), torch.tensor(labels), 3, method="fixmatch", steps=60, seed=seed, device=cpu)
    zero = few(strength=0, random_state=3, device="cpu").fit(rows, labels)
    assert torch.equal(zero.model_.head.weight, plain.network.head.weight)
    debiased = few(strength=2.0, random_state=3, threshold=0.5).fit(rows, labels)
    fixmatch = few(strength=0, random_state=3, threshold=0.5).fit(rows, labels)
    assert not np.array_equal(debiased.predict_proba(rows), fixmatch.predict_proba(rows))


def test_wide_rows_are_divided_by_their_length_and_columns_by_their_deviation():
    rows = np.random.default_rng(0).standard_normal((40, 64))
    labels = np.where(np.arange(40) < 8, np.arange(40) % 2, -1)
    assert few().fit(rows, labels).model_.scaling.unit
    assert not few().fit(rows[:, :63], labels).model_.scaling.unit
    assert few(scaling="unit").fit(rows[:, :5], labels).model_.scaling.unit
    assert not few(scaling="standard").fit(rows, labels).model_.scaling.unit
    with pytest.raises(ValueError, match="scaling is 'none', expected 'auto', 'unit' or 'standard'"):
        few(scaling="none").fit(rows, labels)


def test_the_same_random_state_gives_the_same_bits(iris, digits, on_images):
    rows, labels, _ = iris
    users = torch.get_rng_state()
    assert np.array_equal(few().fit(rows, labels).predict_proba(rows), few().fit(rows, labels).predict_proba(rows))
    assert torch.equal(users, torch.get_rng_state())
    other = few(random_state=1).fit(rows, labels).predict_proba(rows)
    assert not np.array_equal(few().fit(rows, labels).predict_proba(rows), other)
    images, labels, _ = digits
    again = clone(on_images).fit(images, labels)
    assert np.array_equal(again.predict_proba(images), on_images.predict_proba(images))
    assert np.array_equal(again.prior_, on_images.prior_)


def test_images_and_a_wide_network(digits, on_images):
    images, labels, truth = digits
    assert (on_images.transduction_ == truth)[labels < 0].mean() > 0.8
    assert on_images.predict_proba(images).shape == (len(images), 3)
    # The same pictures as bytes, with a channel, and in colour.
    grey = np.rint(images * (255 / 16)).astype(np.uint8)
    for pictures in (grey, grey[..., None], np.repeat(grey[..., None], 3, -1)):
        fitted = few(max_iter=2).fit(pictures, labels)
        assert fitted.predict(pictures).shape == (len(images),)
    same = few().fit(grey, labels)
    assert np.array_equal(same.predict_proba(grey), on_images.predict_proba(images))
    images, labels, _ = digits
    fitted = few(max_iter=2, network="wrn-10-1", flip=True).fit(images, labels)
    assert type(fitted.model_).__name__ == "WideResNet"


def test_pickled_and_read_it_predicts_the_same(iris, digits, on_images):
    rows, labels, _ = iris
    for fitted, x in ((few().fit(rows, labels), rows), (on_images, digits[0])):
        stored = pickle.dumps(fitted)
        assert len(stored) < 500_000
        assert np.array_equal(pickle.loads(stored).predict_proba(x), fitted.predict_proba(x))


def test_grid_search_and_pipeline_leave_rows_without_a_label_out_of_the_score(iris):
    rows, labels, truth = iris
    assert set(few().fit(rows, labels).predict(rows)) == {0, 1, 2}
    fitted = few().fit(rows, labels)
    known = labels >= 0
    assert fitted.score(rows, labels) == pytest.approx((fitted.predict(rows)[known] == labels[known]).mean())
    assert fitted.score(rows, truth) == pytest.approx((fitted.predict(rows) == truth).mean())
    search = GridSearchCV(few(), {"strength": [0.0, 0.5], "max_iter": np.array([20, 40])}, cv=3, error_score="raise")
    search.fit(rows, labels)
    assert search.best_score_ > 0.6
    piped = make_pipeline(StandardScaler(), few()).fit(rows, labels)
    assert piped.score(rows, truth) > 0.8
    with pytest.raises(ValueError, match="no row of y has a label"):
        fitted.score(rows, np.full(150, -1))


@pytest.mark.parametrize("missing", [None, -1, "", "-1", float("nan")])
def test_texts_as_labels(iris, missing):
    rows, labels, truth = iris
    names = np.array(["Setosa, the first", "größte", "第三"], dtype=object)
    y = np.where(labels < 0, np.array(missing, dtype=object), names[labels])
    fitted = few().fit(rows, y)
    assert sorted(fitted.classes_) == sorted(names)
    assert (fitted.transduction_ == names[truth]).mean() > 0.8
    assert fitted.score(rows, y) > 0.8


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        (np.asarray(["cat", -1, "dog", ""]), [0, -1, 1, -1], ["cat", "dog"]),  # NumPy makes texts of it
        ([3, -1, 7, 7], [0, -1, 1, 1], [3, 7]),
        ([1.0, float("nan"), -1.0, 2.0], [0, -1, -1, 1], [1, 2]),
        ([-1, 1, 1], [0, 1, 1], [-1, 1]),  # a binary problem, as scikit-learn writes it
        ([0, 1, None], [0, 1, -1], [0, 1]),
        (pandas.Series([0, 1, None], dtype="Int64"), [0, 1, -1], [0, 1]),
        (np.array([True, False, None], dtype=object), [1, 0, -1], [False, True]),
        (pandas.Series([True, False, None], dtype="boolean"), [1, 0, -1], [False, True]),
    ],
)
def test_labels_of_any_kind_may_be_missing(y, codes, classes):
    found = classes_and_codes(y)
    assert [part.tolist() for part in found] == [classes, codes]
    if -1 not in classes:
        assert unlabeled(y).tolist() == [code < 0 for code in codes]  # as score asks


def test_reversed_arrays_and_binary_problems_with_minus_1(iris):
    rows = np.random.default_rng(0).normal(size=(6, 3))
    backwards = few(max_iter=2).fit(rows[::-1, ::-1], np.array([0, 1, -1] * 2)[::-1])
    assert backwards.predict(rows[::-1]).shape == (6,)
    rows, _, truth = iris
    y = np.where(truth == 0, -1, 1)
    fitted = few().fit(rows, y)
    assert fitted.classes_.tolist() == [-1, 1]
    assert fitted.score(rows, y) > 0.95


BAD = {
    "no labels": (lambda x, y: (x, np.full(150, -1)), {}, "no row has a label"),
    "one class": (lambda x, y: (x, np.where(y > 0, -1, y)), {}, "only one class, 0, has labels"),
    "continuous": (lambda x, y: (x, y + 0.5), {}, "Unknown label type"),
    "mixed": (lambda x, y: (x, np.array(["a", 1] * 75, dtype=object)), {}, "y mixes labels of the types int, str"),
    "unlabeled": (lambda x, y: (x, np.array(["a", "b", "unlabeled"] * 50)), {}, "unlabeled"),
    "no y": (lambda x, y: (x, None), {}, "requires y to be passed, but the target y is None. Rows without a label"),
    "NaN": (lambda x, y: (np.where(x > 5, np.nan, x), y), {}, "NaN"),
    "steps": (lambda x, y: (x, y), {"max_iter": 0}, "max_iter is 0, expected a whole number"),
    "half a step": (lambda x, y: (x, y), {"max_iter": 0.5}, "max_iter is 0.5, expected"),
    "strength": (lambda x, y: (x, y), {"strength": -1}, "strength is -1"),
    "momentum": (lambda x, y: (x, y), {"momentum": 1}, r"momentum is 1, expected a number in \[0, 1\)"),
    "network": (lambda x, y: (x, y), {"network": "small"}, "network is 'small', expected 'auto' or 'linear' for feat"),
    "channels first": (lambda x, y: (np.zeros((150, 3, 8, 8)), y), {}, "Channels come last"),
    "swapped": (lambda x, y: (y, x), {}, "Expected 2D array"),
    "five dimensions": (lambda x, y: (np.zeros((150, 2, 2, 2, 3)), y), {}, "expected features"),
    "linear for images": (lambda x, y: (np.zeros((150, 8, 8)), y), {"network": "linear"}, "'small' or a wide ResNet"),
    "device": (lambda x, y: (x, y), {"device": "gpu"}, "device is 'gpu', expected"),
    "optimise": (lambda x, y: (x, y), {"optimise": "speed"}, "optimise"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_words(iris, case):
    rows, labels, _ = iris
    spoil, settings, message = BAD[case]
    rows, labels = spoil(rows, labels)
    with pytest.raises(ValueError, match=message):
        few(**settings).fit(rows, labels)


def test_other_shapes_than_in_fit_are_refused(iris, digits, on_images):
    rows, labels, _ = iris
    with pytest.raises(ValueError, match=r"expected images \(N, H, W\)"):
        on_images.predict(digits[0].reshape(-1, 64)[:, :8])
    with pytest.raises(ValueError, match=r"have shape \(8, 4\), expected \(8, 8\), as in fit"):
        on_images.predict(digits[0][:, :, :4])
    with pytest.raises(ValueError, match=r"expected features \(N, D\), as in fit"):
        few(max_iter=1).fit(rows, labels).predict(np.zeros((5, 4, 4)))


@pytest.mark.slow
def test_without_scikit_learn_the_package_works_and_says_what_to_install():
    program = "import sys; sys.modules['sklearn'] = None\nimport debiaspl; debiaspl.Debiaser(3)\n"
    program += "try: debiaspl.DebiasedClassifier\nexcept ImportError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'debiaspl[sklearn]'" in said.stdout


def test_aims_differ_where_class_shares_are_uneven():
    box = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), (240, 40, 20))
    rows = 0.9 * np.eye(3, 70)[truth] + box.normal(size=(300, 70)) / 5
    y = np.full(300, -1)
    for number in range(3):
        y[np.flatnonzero(truth == number)[:8]] = number
    photos, classes = (few(optimise=aim).fit(rows, y) for aim in ("photos", "classes"))
    assert photos.shares_.argmax() == 0
    assert photos.shares_.sum() == pytest.approx(1)
    assert (photos.predict(rows) == 0).sum() >= (classes.predict(rows) == 0).sum()
    assert not np.array_equal(photos.predict_proba(rows), classes.predict_proba(rows))
    assert few(strength=0).fit(rows, y).shares_ is None
