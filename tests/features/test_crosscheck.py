"""Models are checked on labels that they did not learn from, and another than the preferred one must be better."""

from dataclasses import replace

import pytest
import torch

from debiaspl._measures import Cells
from debiaspl.features import FeatureTable, TableTask, fit_recipe
from debiaspl.features.crosscheck import Candidate, calibrate, choose, crosscheck, paired
from debiaspl.features.fit import LINEAR
from debiaspl.training.method import with_method
from tests.training.clusters import clusters


def candidate(name: str, right: set[str], total: int = 40) -> Candidate:
    return Candidate(name, Cells.of_dense([[len(right), total - len(right)], [0, 0]]), frozenset(right))


def names(count: int) -> set[str]:
    return {str(number) for number in range(count)}


@pytest.mark.parametrize(("other", "chosen"), [(20, "ours"), (25, "ours"), (26, "other"), (40, "other")])
def test_another_model_is_chosen_only_if_it_is_significantly_better(other, chosen):
    models = candidate("supervised", names(10)), candidate("other", names(other)), candidate("ours", names(20))
    assert choose(models).name == chosen
    assert choose(models, checked=False).name == "ours"


def test_where_every_class_counts_the_same_a_rare_one_decides():
    """The other model has three frequent ones wrong more, and six rare ones right more."""

    def of(name, right, mistakes, matrix, optimise):
        return Candidate(name, Cells.of_dense(matrix), frozenset(right), tuple(mistakes), optimise)

    frequent, rare = [f"a{number}" for number in range(40)], [f"b{number}" for number in range(6)]
    for optimise, expected in (("classes", "other"), ("photos", "ours")):
        ours = of("ours", frequent, [(file, 1, 0) for file in rare], [[40, 0], [6, 0]], optimise)
        wrong = [(file, 0, 1) for file in frequent[:3]]
        other = of("other", [*frequent[3:], *rare], wrong, [[37, 3], [0, 6]], optimise)
        assert choose([other, ours]).name == expected
        assert ours.measured[0] == pytest.approx({"photos": 40 / 46, "classes": 0.5}[optimise])
        assert ours.measured[1] < ours.measured[0] < ours.measured[2]
    assert ours.header != replace(ours, optimise="classes").header


def test_pairs_are_counted_label_by_label():
    assert paired(candidate("a", {"1", "2", "3"}), candidate("b", {"3", "4"})) == (2, 1, False)
    assert paired(candidate("a", {"1"}), candidate("b", {"1"})) == (0, 0, False)
    assert paired(candidate("a", names(6)), candidate("b", set())) == (6, 0, True)


def test_each_label_is_predicted_by_a_model_that_did_not_learn_from_it():
    features, labels, _ = clusters(labels=6, gap=2.0)
    labels[labels == 2] = -1
    labels[-1] = 2  # its only label is always learned from
    task = TableTask(labels, "abc", tuple(map(str, range(len(labels)))))
    table = FeatureTable(features, device=torch.device("cpu"))
    recipe = with_method(LINEAR, "supervised").changed(steps=30)
    one, same = crosscheck({"one": recipe, "same": recipe}, table, task, folds=3)
    assert one.right_files == same.right_files
    assert (one.checked, one.confusion.recall[2], one.confusion.of_true.tolist()) == (12, None, [6, 6, 0])
    single = torch.full_like(labels, -1)
    single[[0, 60, -1]] = torch.arange(3)
    (unchecked,) = crosscheck({"one": recipe}, table, replace(task, labels=single), folds=0)
    assert (unchecked.checked, unchecked.calibrated) == (0, None)
    flipped = labels.clone()
    place = int((labels >= 0).nonzero()[0])
    flipped[place] = 1 - labels[place]
    (wrong,) = crosscheck({"one": recipe}, table, replace(task, labels=flipped), folds=3)
    assert wrong.checked == 12
    assert wrong.mistakes[0] == (str(place), 1, 0), "the most confident first"
    assert fit_recipe(recipe, table, task).predict(table.features)[0].shape == (180,)


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_confidence_that_was_scaled_is_scaled_back(factor):
    box = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(4000, 4, generator=box)
    label = torch.multinomial(logits.softmax(-1), 1, generator=box).flatten()
    found = calibrate(factor * logits, label, torch.ones(4000))
    assert found.temperature == pytest.approx(factor, rel=0.1)
    assert found.error < 0.03
    assert found.labels == 4000
    if factor != 1:
        assert found.before > found.error + 0.05


def test_a_label_counts_as_many_rows_as_it_stands_for():
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    label = torch.tensor([0, 1])
    sure, unsure = (calibrate(logits, label, torch.tensor([1.0, weight])) for weight in (0.01, 0.9))
    assert sure.temperature < unsure.temperature
