"""What all algorithms have in common, with the settings of ``test_ranks``, under which all that they do matters."""

from typing import Any

import pytest
import torch
from torch import Tensor

from debiaspl.algorithms import ALGORITHMS, HINTED, Models
from debiaspl.debias import CDMAD, LDAM, Correction, Debiaser, LogitAdjustment, PosthocLogitAdjustment, SimPro, TauNorm
from tests.algorithms.test_ranks import CLASSES, COUNTS, EXACT, STEPS, built, network, part

ALIGNED = {"crest+", "adamatch, its own alignment"}
"""They take no other correction."""
LABELED = [case for case, (name, _) in EXACT.items() if name in {**ALGORITHMS, **HINTED} and case not in ALIGNED]
PSEUDO_LABELED = [case for case in LABELED if case != "supervised"]
TEACHER = [case for case in PSEUDO_LABELED if case not in ("acr", "distill", "graph", "mixmatch", "paws", "taught")]
"""The label is that of one weak view, or of the mean of two, as the teacher predicts it."""
STRONG = [case for case in TEACHER if case not in ("mean-teacher", "pseudolabel", "remixmatch")]
"""Labels come from weak views and are learned by strong ones."""
WHOLE = ["mixmatch", "remixmatch", "mean-teacher", "paws", "distill"]
"""No label is left out."""


def losses_of(case: str, correction: Correction | None, steps: int = STEPS) -> list[dict[str, Tensor]]:
    algorithm, student = built(*EXACT[case], correction), network(False, 1)
    generator = torch.Generator().manual_seed(3)
    models = Models(student, student)
    return [algorithm.losses(models, part(step, algorithm, generator)) for step in range(steps)]


def same(one: list[dict[str, Tensor]], other: list[dict[str, Tensor]]) -> bool:
    return all(
        mine.keys() == yours.keys() and all(torch.equal(mine[name], yours[name]) for name in mine)
        for mine, yours in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("case", PSEUDO_LABELED)
def test_a_strength_of_zero_is_no_correction_bit_for_bit(case):
    plain = losses_of(case, Correction())
    assert same(plain, losses_of(case, Debiaser(CLASSES, strength=0.0)))
    assert not same(plain, losses_of(case, Debiaser(CLASSES, momentum=0.2)))


OF_COUNTS = [LDAM, LogitAdjustment, PosthocLogitAdjustment, SimPro]
TWICE = [("acr", kind) for kind in OF_COUNTS[1:]] + [("abc", PosthocLogitAdjustment)]
"""These algorithms take the shares of the labels out themselves."""


@pytest.mark.parametrize("correction", [*OF_COUNTS, TauNorm, CDMAD], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("case", LABELED)
def test_every_algorithm_works_with_every_correction_or_says_why_not(case, correction):
    made = correction(COUNTS) if correction in OF_COUNTS else TauNorm() if correction is TauNorm else CDMAD(CLASSES)
    name = EXACT[case][0]
    soft = not {**ALGORITHMS, **HINTED}[name].hard_labels and correction is LDAM
    nothing = name == "supervised" and made.corrects_pseudo_labels_alone
    if soft or nothing or (name, correction) in TWICE:
        with pytest.raises(ValueError, match=correction.__name__):
            losses_of(case, made)
        return
    losses = losses_of(case, made, steps=2)
    assert all(loss.isfinite() for step in losses for loss in step.values())


@pytest.mark.parametrize("case", [case for case in EXACT if case != "distill"])
def test_half_precision_is_computed_in_float32(case):
    """As in a step on a GPU: bf16 in the networks, float32 in losses, memories and averages."""
    algorithm, student = built(*EXACT[case]).float(), network(False, 1).float()
    for step in range(2):
        batch = part(step, algorithm, torch.Generator().manual_seed(step), torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            losses = algorithm.losses(Models(student, student, student), batch)
    assert {loss.dtype for loss in losses.values()} == {torch.float32}
    assert all(value.dtype != torch.bfloat16 for value in algorithm.state_dict().values())
    torch.stack(list(losses.values())).sum().backward()
    # Weights that autocast has first cast where no gradient was asked for would get none.
    assert all(value.grad is not None for value in algorithm.parameters())


@pytest.mark.parametrize("case", [*TEACHER, "mixmatch"])
def test_a_teacher_that_is_not_the_student_labels_the_weak_views(case):
    algorithm, student, teacher = built(*EXACT[case], Correction()), network(False, 1), network(False, 2)
    batch = part(0, algorithm, torch.Generator().manual_seed(3))
    algorithm.losses(Models(student, teacher), batch)
    views = batch.weak[1:] if case == "mean-teacher" else batch.weak
    several = [teacher(view).detach() for view in views]
    if case == "mixmatch":
        several = [logits.softmax(-1) for logits in several]
    mean = several[0] if case == "fixmatch, paired views" else torch.stack(several).mean(0)
    assert torch.equal(algorithm.monitors["pseudo_label"], mean.argmax(-1))
    assert not torch.equal(algorithm.monitors["pseudo_label"], student(batch.weak[0]).argmax(-1))


@pytest.mark.parametrize("case", [*TEACHER, "mixmatch", "graph", "taught"])
def test_labels_carry_no_gradient(case):
    """It is that of a student whose teacher is a copy of it, and the copy gets none."""
    gradients = []
    for copied in (False, True):
        algorithm, student, copy = built(*EXACT[case]), network(False, 1), network(False, 1)
        models = Models(student, copy if copied else student)
        losses = algorithm.losses(models, part(0, algorithm, torch.Generator().manual_seed(3)))
        torch.stack(list(losses.values())).sum().backward()
        gradients.append({name: value.grad for name, value in student.named_parameters()})
        assert all(value.grad is None for value in copy.parameters())
    torch.testing.assert_close(*gradients)


KEPT: dict[str, Any] = {"threshold": 0.5, "unlabeled_weight": 2.0}
SEPARATE, TWO_VIEWS = {**KEPT, "joint": False}, {**KEPT, "views": 2, "cld_weight": 0.3}


@pytest.mark.parametrize(
    ("name", "settings", "of_fixmatch"),
    [
        ("abc", KEPT, KEPT),
        ("abc", SEPARATE, SEPARATE),
        ("contrastmatch", {**KEPT, "contrast_weight": 0.0, "labels_from": 0.0}, SEPARATE),
        ("crest", KEPT, KEPT),
        ("crest", TWO_VIEWS, TWO_VIEWS),
        ("crest", {**SEPARATE, "strong_share": 0.5}, {**SEPARATE, "strong_share": 0.5}),
        ("softmatch", {"sharpness": 0}, {"threshold": 0.0}),
    ],
)
def test_at_its_neutral_settings_it_is_fixmatch_bit_for_bit(name, settings, of_fixmatch):
    plain, own = built("fixmatch", of_fixmatch), built(name, settings)
    student, losses = network(False, 1), []
    for algorithm in (plain, own):
        drawn = part(0, algorithm, torch.Generator().manual_seed(3))
        losses.append(algorithm.losses(Models(student, student), drawn))
    expected, found = losses
    assert expected["unlabeled"] > 0
    assert all(torch.equal(found[key], value) for key, value in expected.items())


@pytest.mark.parametrize("case", STRONG)
def test_gradients_reach_labeled_and_strong_views_and_no_weak_one(case):
    algorithm, student = built(*EXACT[case]), network(False, 1)
    batch = part(0, algorithm, torch.Generator().manual_seed(3))
    for view in (batch.labeled, *batch.weak, *batch.strong):
        view.requires_grad_()
    torch.stack(list(algorithm.losses(Models(student, student), batch).values())).sum().backward()
    assert all(view.grad is None or view.grad.abs().sum() == 0 for view in batch.weak)
    assert all(view.grad.abs().sum() > 0 for view in (batch.labeled, *batch.strong))


@pytest.mark.parametrize("case", WHOLE)
def test_without_a_threshold_every_label_is_kept(case):
    algorithm, student = built(*EXACT[case]), network(False, 1)
    algorithm.losses(Models(student, student), part(0, algorithm, torch.Generator().manual_seed(3)))
    assert algorithm.monitors["kept"].all()


WRONG: dict[str, dict[str, Any]] = {
    "fixmatch": {"threshold": 1.2, "views": 3, "view_labels": "both", "strong_share": 0.5},
    "abc": {"ramp_up": 2.0},
    "acr": {"tau": -1.0, "begin": 2.0, "momentum": 1.0, "strong_views": 0},
    "adamatch": {"ramp_up": -1},
    "distill": {"temperature": 0, "labeled_weight": -1},
    "comatch": {"own_share": 2, "temperature": 0, "memory": 0},
    "contrastmatch": {
        "contrast_until": 0.0,
        "labels_from": 1.0,
        "relations": 1.5,
        "relation_temperature": -1.0,
        "memory": -1,
    },
    "crest": {"generations": 0, "sampling_power": -1},
    "crest+": {"final_temperature": 2},
    "flexmatch": {"threshold": -0.1},
    "freematch": {"decay": 1.0},
    "mean-teacher": {"ramp_up": 2},
    "mixmatch": {"views": 0, "temperature": -1.0, "alpha": -0.5},
    "moco": {"temperature": 0.0, "key_decay": 1.0},
    "paws": {"sharpening": 0, "label_smoothing": 1, "entropy_weight": -1, "width": 0, "support_views": 0},
    "remixmatch": {"views": 0},
    "simclr": {"temperature": -1.0},
    "softmatch": {"sharpness": -1.0},
    "swav": {"prototypes": 1, "rounds": 0, "small_views": -1, "code_temperature": 0.0, "queue": -1},
    "taught": {"sure": 1.5},
    "uda": {"annealing": "fast"},
}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {key: value}) for name, wrong in WRONG.items() for key, value in wrong.items()),
        ("fixmatch", {"strong_share": 0.0, "joint": False}),
        ("abc", {"strong_share": 0.5, "joint": False}),
    ],
)
def test_wrong_settings_are_refused_by_name(name: str, settings: dict[str, Any]):
    key, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=rf"\b{key} is '?{value}\b"):
        built(name, settings)
