"""A frozen encoder on data with a test set, whose images have the same names as those to train with."""

from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from debiaspl import load_model, train
from debiaspl.data import FewLabels, Task, load
from debiaspl.encoders import load_encoder
from debiaspl.features.run import frozen, train_encoded
from debiaspl.training import Recipe, RunError
from tests.encoders.tiny import save


def test_a_known_set_with_a_test_set_of_its_own(tmp_path):
    save("resnet", tmp_path / "encoder")
    encoder = load_encoder(str(tmp_path / "encoder"))
    recipe = frozen(Recipe("digits"), 100, encoder)
    recipe = recipe.changed(steps=5, **{"protocol.per_class": 2}, joint=False)
    results = train_encoded(recipe, tmp_path / "run")
    task = Task.of(load("digits"), FewLabels(2), 0)
    assert (results["test"], results["labels"]) == (len(task.test), [2] * 10)
    own = load_model(tmp_path / "run").probabilities(task.test.images).argmax(-1)
    assert results["accuracy"] == pytest.approx(float((own == task.test.truth).double().mean()), abs=0.01)
    assert train_encoded(recipe, tmp_path / "run", resume=True) == results
    with pytest.raises(RunError, match="frozen encoder"):
        train(replace(recipe, name="other"), tmp_path / "other")
    assert not (tmp_path / "other").exists()
