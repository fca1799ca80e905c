"""ZeroShot: labels from embeddings alone."""

import math

import numpy as np
import pytest
import torch

import debiaspl
from debiaspl.data import DataError
from debiaspl.zeroshot import ZeroShot
from debiaspl.zeroshot.embeddings import BATCH, ROUNDS


def biased(count: int = 600, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Balanced images of four classes, and class embeddings of which one draws all images to itself."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.nn.functional.normalize(torch.randn(4, 16, generator=generator), dim=-1)
    truth = torch.arange(count) % 4
    shared = torch.nn.functional.normalize(torch.randn(16, generator=generator), dim=-1)
    images = centres[truth] + shared + 0.3 * torch.randn(count, 16, generator=generator)
    classes = centres.clone()
    classes[0] = classes[0] + 0.8 * shared
    return classes, images, truth


def test_the_prior_is_a_running_mean_of_the_raw_predictions():
    classes, images, _ = biased(50)
    model = ZeroShot(classes, temperature=0.1, momentum=0.9, strength=0.7, head=False).fit(images)
    probabilities = []
    for image in images.double():
        cosines = [float(image @ other / image.norm() / other.norm()) for other in classes.double()]
        powers = [math.exp(cosine / 0.1) for cosine in cosines]
        probabilities.append([power / sum(powers) for power in powers])
    mean = [sum(column) / len(images) for column in zip(*probabilities, strict=True)]
    prior = [0.25] * 4
    for _ in range(ROUNDS):  # fewer images than a batch: each round sees them all
        prior = [0.9 * own + 0.1 * new for own, new in zip(prior, mean, strict=True)]
    assert len(images) < BATCH
    torch.testing.assert_close(torch.tensor(model.prior_), torch.tensor(prior), atol=1e-5, rtol=1e-4)
    for row, shares in enumerate(probabilities):
        scores = [share / own**0.7 for share, own in zip(shares, prior, strict=True)]
        expected = torch.tensor([score / sum(scores) for score in scores])
        torch.testing.assert_close(torch.tensor(model.debiased_[row]), expected, atol=1e-5, rtol=1e-3)
    assert np.array_equal(model.transduction_, model.debiased_.argmax(-1))
    assert np.array_equal(model.confidence_, model.debiased_.max(-1))


def test_debiasing_takes_from_the_class_that_draws_all_images_and_is_more_often_right():
    right: dict[str, list[float]] = {"raw": [], "debiased": [], "head": []}
    for seed in range(3):
        classes, images, truth = biased(seed=seed)
        model = ZeroShot(classes, temperature=0.1, strength=1.0, confidence=0.8, max_iter=100, random_state=seed).fit(
            images
        )
        assert model.prior_.argmax() == 0
        for name, label in (
            ("raw", model.zero_shot_.argmax(-1)),
            ("debiased", model.debiased_.argmax(-1)),
            ("head", model.transduction_),
        ):
            right[name].append(float((label == truth.numpy()).mean()))
    mean = {name: sum(values) / len(values) for name, values in right.items()}
    assert mean["debiased"] > mean["raw"] + 0.03
    assert mean["head"] > mean["raw"]


def test_the_same_seed_gives_the_same_bits_and_further_images_can_be_asked_for():
    classes, images, _ = biased(200)
    settings = {"temperature": 0.1, "confidence": 0.6, "max_iter": 30}
    first, second = (debiaspl.ZeroShot(classes.numpy(), **settings).fit(images.numpy()) for _ in range(2))
    assert np.array_equal(first.probabilities_, second.probabilities_)
    assert np.array_equal(first.predict_proba(images), first.probabilities_)
    assert np.array_equal(first.predict(images), first.transduction_)
    plain = ZeroShot(classes, temperature=0.1, head=False).fit(images)
    assert np.array_equal(plain.predict_proba(images), plain.debiased_)


@pytest.mark.parametrize("head", [False, True])
def test_it_speaks_numpy_and_the_words_of_the_estimator(head):
    classes, images, _ = biased(100)
    names = ["owl", "heron", "crane", "other"]
    settings = {"temperature": 0.1, "confidence": 0.6, "max_iter": 20, "random_state": np.int64(3), "head": head}
    model = ZeroShot(classes.clone().requires_grad_(), names, **settings).fit(images.clone().requires_grad_())
    numbered = ZeroShot(classes, **settings).fit(images)
    learned = ("classes_", "transduction_", "prior_", "confidence_", "probabilities_", "zero_shot_", "debiased_")
    assert all(type(getattr(model, name)) is np.ndarray for name in learned)
    assert model.classes_.tolist() == names
    assert np.array_equal(model.transduction_, np.array(names)[numbered.transduction_])
    assert np.array_equal(model.predict(images.numpy()[:5]), model.transduction_[:5])
    shared = set(vars(debiaspl.DebiasedClassifier())) & set(vars(model))
    assert shared >= {"strength", "momentum", "threshold", "max_iter", "random_state"}


@pytest.mark.parametrize(
    ("classes", "images", "noun"),
    [
        (torch.ones(1, 4), torch.ones(3, 4), "two or more"),
        (torch.ones(4), torch.ones(3, 4), "shape"),
        (torch.zeros(2, 4), torch.ones(3, 4), "zeros"),
        (torch.ones(2, 4), torch.ones(3, 5), "width"),
        (torch.ones(2, 4), torch.full((3, 4), torch.nan), "NaN"),
        (torch.ones(2, 4), torch.ones(3, 4), "two classes: head=False"),
    ],
)
def test_embeddings_that_cannot_be(classes, images, noun):
    with pytest.raises(DataError, match=noun):
        ZeroShot(classes).fit(images)


def test_settings_and_swapped_arrays_are_refused():
    with pytest.raises(DataError, match=r"is not fitted yet\. Call fit"):
        ZeroShot(torch.eye(3)).predict(torch.eye(3))
    with pytest.raises(ValueError, match="strength is -1"):
        ZeroShot(torch.eye(3), strength=-1)
    with pytest.raises(DataError, match="temperature is 0, expected a number above 0"):
        ZeroShot(torch.eye(3), temperature=0).fit(torch.eye(3))
    for wrong in ({"per_class": 0}, {"confidence": 2}, {"max_iter": 0}, {"threshold": 3}, {"random_state": None}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            ZeroShot(torch.eye(3), **wrong)
    classes, images, _ = biased(50)
    with pytest.raises(DataError, match="swapped"):
        ZeroShot(images).fit(classes)
    with pytest.raises(DataError, match="one each"):
        ZeroShot(images, ["a", "b", "c", "d"])
    assert ZeroShot(classes, list("abcd"), head=False).fit(images[:2]).transduction_.shape == (2,)


def test_a_head_that_loses_a_class_is_not_used():
    """At a threshold that the class of the rare images never reaches."""
    classes = torch.eye(4)
    images = torch.cat([classes.repeat(30, 1), torch.tensor([[0.0, 0.0, 0.95, 1.0]]).repeat(20, 1)])[
        torch.arange(140) % 4 != 3
    ]
    model = ZeroShot(classes, temperature=0.1, confidence=0.95, max_iter=20)
    with pytest.warns(UserWarning, match="lost"):
        model.fit(images)
    assert model.head_ is None
    assert np.array_equal(model.probabilities_, model.debiased_)
    model.confidence = None
    assert 3 in model.fit(images).transduction_
