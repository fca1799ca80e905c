"""Runs of several generations: what is handed on, what begins anew, and the same bits after a stop in any of them."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from debiaspl.algorithms import Batch
from debiaspl.data import FewLabels, LongTail, Task, load
from debiaspl.models import scale
from debiaspl.training import Choice, train
from debiaspl.training.evaluate import predict_all
from debiaspl.training.step import Step
from debiaspl.training.tasks import task_of
from tests.data.photos import write_folder
from tests.training.test_stream import recipe as photos
from tests.training.tiny import EAGER, TINY, changed, check_resume, log, outcome

# Three generations of four steps; the tail makes the choice of what is adopted a choice.
LENGTH = 4
CREST = replace(
    TINY,
    protocol=Choice("long-tail", {"gamma": 20.0, "labeled_fraction": 0.1}),
    algorithm=Choice("crest", {"threshold": 0.1, "joint": False, "generations": 3}),
    checkpoint_every=1,
)
CREST_PLUS = changed(CREST, "algorithm=crest+", "correction=alignment")


def task() -> Task:
    return Task.of(load("digits"), LongTail(gamma=20.0, labeled_fraction=0.1), seed=0)


def step_of(recipe=CREST, made: Task | None = None) -> Step:
    return Step(recipe, task() if made is None else made, torch.device("cpu"))


def watch(step: Step) -> list[Batch]:
    """The batches that the algorithm is given."""
    seen: list[Batch] = []
    original = step.algorithm.losses

    def watched(models, batch):
        seen.append(batch)
        return original(models, batch)

    step.algorithm.losses = watched
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [CREST, CREST_PLUS], ids=["crest", "crest+"])
@pytest.mark.parametrize("stop", [LENGTH, LENGTH + 1, 2 * LENGTH + 2])
def test_a_run_stopped_in_a_later_generation_ends_with_the_same_bits(tmp_path, recipe, stop):
    check_resume(recipe, tmp_path, stop)


def test_a_file_that_cannot_be_read_is_not_adopted(tmp_path):
    write_folder(tmp_path / "data")
    bad = {"china/0003.jpg", "flower/0007.jpg", "china/0005.jpg"}
    for name in bad:
        (tmp_path / "data" / name).write_bytes(b"\xff\xd8\xff broken")
    chosen = photos(tmp_path / "data", stream=True, algorithm=CREST.algorithm)
    step = step_of(chosen, task_of(chosen))
    for number in range(LENGTH + 1):
        step(number)
    ids = step.task.unlabeled.ids
    adopted = {name for name, label in zip(ids, step.adopted.tolist(), strict=True) if label >= 0}
    assert bad & set(ids)
    assert adopted
    assert not adopted & bad


def test_adopted_labels_are_those_of_the_averaged_student():
    step = step_of()
    for generation in (0, 1):
        for number in range(generation * LENGTH, (generation + 1) * LENGTH):
            step(number)
        averaged, student = (
            deepcopy(step.algorithm).adopt(predict_all(model, step.task.unlabeled), generation)
            for model in (step.average.model, deepcopy(step.student).eval())
        )
        step((generation + 1) * LENGTH)
        assert torch.equal(step.adopted, averaged)
        assert not torch.equal(step.adopted, student)
        assert -1 in step.adopted


def test_adopted_images_are_labeled_images_of_the_next_generation_and_of_no_other():
    """Every batch is one epoch: ten labels first, then sixteen images; pixels are compared, not places."""
    recipe = changed(replace(EAGER, algorithm=CREST.algorithm), "correction=none", "labeled_batch=16")
    step = step_of(recipe, Task.of(load("digits"), FewLabels(1), seed=0))
    step.views = replace(step.views, flip_and_crop=lambda images, generator: images)
    seen = watch(step)
    choices = iter([torch.arange(100, 106), torch.arange(200, 206)])

    def adopt(probabilities: torch.Tensor, generation: int) -> torch.Tensor:
        assert probabilities.shape == (len(step.task.unlabeled), 10)
        labels = torch.full((len(probabilities),), -1)
        labels[next(choices)] = torch.tensor([3, 1, 4, 1, 5, 9])
        return labels

    step.algorithm.adopt = adopt
    for number in range(recipe.steps):
        step(number)

    def pairs(images: torch.Tensor, labels: torch.Tensor) -> set[tuple[bytes, int]]:
        return {(image.numpy().tobytes(), label) for image, label in zip(images, labels.tolist(), strict=True)}

    known = pairs(scale(step.task.labeled.images), step.task.labeled.labels)
    for number, batch in enumerate(seen):
        generation = number // LENGTH
        expected = known
        if generation:
            places = torch.arange(100 * generation, 100 * generation + 6)
            given = pairs(scale(step.task.unlabeled.images[places]), torch.tensor([3, 1, 4, 1, 5, 9]))
            expected = known | given
        assert pairs(batch.labeled, batch.labels) == expected


def test_the_student_begins_anew_and_so_does_what_follows_it():
    step = step_of()
    first = deepcopy(step.student.state_dict())
    before: list[tuple[dict, dict, float, float]] = []
    original = step.algorithm.losses

    def watched(models, batch):
        student, average = (deepcopy(model.state_dict()) for model in (step.student, step.average.model))
        momentum = sum(float(value.abs().sum()) for value in step.update.momenta().values())
        before.append((student, average, momentum, float(batch.progress)))
        return original(models, batch)

    step.algorithm.losses = watched
    rates: list[float] = []
    for number in range(3 * LENGTH):
        step(number)
        rates.append(step.learning_rate)

    starts = [before[generation * LENGTH] for generation in range(3)]
    for student, average, momentum, _ in starts:
        assert momentum == 0
        for name, value in student.items():
            assert torch.equal(average[name], value), name
            if "running" in name or "num_batches" in name:
                assert torch.equal(value, first[name]), name
    # New weights each time: of the size of the first ones, and not the first ones.
    heads = [student["head.weight"] for student, *_ in starts]
    assert len({head.numpy().tobytes() for head in heads}) == 3
    assert all(head.std() == pytest.approx(float(heads[0].std()), rel=0.3) for head in heads)
    assert all(momentum > 0 for number, (_, _, momentum, _) in enumerate(before) if number % LENGTH)
    assert [progress for *_, progress in before] == [0, 0.25, 0.5, 0.75] * 3
    assert rates[0] == pytest.approx(CREST.learning_rate)
    assert rates[:LENGTH] == sorted(rates[:LENGTH], reverse=True)
    assert rates[:LENGTH] == rates[LENGTH : 2 * LENGTH] == rates[2 * LENGTH :]


@pytest.mark.parametrize(("steps", "generations"), [(10, 4), (12, 5), (12, 3), (7, 6), (5, 5)])
def test_generations_are_equally_long_to_within_a_step(steps, generations):
    """A last generation of one step would be what is evaluated."""
    step = step_of(changed(CREST, f"steps={steps}", f"generations={generations}"))
    seen = watch(step)
    for number in range(steps):
        step(number)
    starts = [number for number, batch in enumerate(seen) if batch.progress == 0]
    lengths = [end - start for start, end in zip(starts, [*starts[1:], steps], strict=True)]
    assert len(lengths) == generations
    assert max(lengths) - min(lengths) <= 1


def test_one_generation_is_fixmatch_bit_for_bit(tmp_path):
    train(changed(CREST, "generations=1"), tmp_path / "crest")
    train(changed(CREST, "algorithm=fixmatch"), tmp_path / "fixmatch")
    train(CREST, tmp_path / "three")
    crest, fixmatch, three = (outcome(tmp_path / name) for name in ("crest", "fixmatch", "three"))
    assert crest[0] == fixmatch[0]
    assert crest[2] == fixmatch[2]
    assert three[0] != fixmatch[0]
    assert three[2][0]["losses"] != fixmatch[2][0]["losses"]  # step 5 lies in the second generation


def test_the_prior_of_a_correction_begins_anew_with_the_student(tmp_path):
    """The first line of the log is of step 5, the first of a generation that began with a uniform prior."""
    train(changed(CREST, "momentum=0.999"), tmp_path / "run")
    prior = torch.tensor(log(tmp_path / "run")[0]["prior"])
    assert 0 < (prior - 0.1).abs().max() < 1e-3  # one step moves it by at most 0.001 * 0.9


FORGETFUL = """
from debiaspl.algorithms import Algorithm


class Forgetful(Algorithm):
    generations = 2

    def losses(self, models, batch):
        raise AssertionError
"""


def test_generations_without_adopt_are_refused_before_the_first(tmp_path):
    (tmp_path / "mine.py").write_text(FORGETFUL)
    recipe = replace(TINY, algorithm=Choice(f"{tmp_path / 'mine.py'}:Forgetful"))
    with pytest.raises(ValueError, match="adopt"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
