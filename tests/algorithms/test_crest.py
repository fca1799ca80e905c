"""CReST and CReST+ against their slow twins. What happens between generations is in tests/training."""

import pytest
import torch
from torch.nn import functional as F

from debiaspl.algorithms.crest import CReST, CReSTPlus, sampling_rates
from debiaspl.debias import Debiaser, DistributionAlignment
from tests.algorithms.test_algorithms import CLASSES, PRIOR, batch, biased_debiaser, models
from tests.reference import crest as twin
from tests.reference.paper import debiased

COUNTS = (8, 2, 1, 4)


def predictions(rows: int = 200, seed: int = 0) -> torch.Tensor:
    return (2 * torch.randn(rows, CLASSES, generator=torch.Generator().manual_seed(seed))).softmax(-1)


def aligned(counts: tuple[int, ...] = COUNTS, **settings: float) -> CReSTPlus:
    return CReSTPlus(counts, DistributionAlignment(counts), **settings)


@pytest.mark.parametrize("counts", [COUNTS, (1, 2, 4, 8), (5, 5, 1, 1), (7, 7, 7, 7)])
@pytest.mark.parametrize("power", [0.0, 1 / 3, 1.0])
def test_adopted_labels_equal_the_slow_twin(counts, power):
    rates = twin.sampling_rates(list(counts), power)
    assert sampling_rates(counts, power) == pytest.approx(rates)
    found = CReST(counts, sampling_power=power).adopt(predictions(), 0).tolist()
    assert found == twin.adopted(predictions().tolist(), rates)
    if len(set(counts)) == 1 or power == 0:
        assert found == predictions().argmax(-1).tolist()
    else:
        assert -1 in found


def test_whole_shares_are_not_lost_to_rounding():
    """15 / 22 * 22 is 14.999999999999998: of 22 predictions, fifteen all the same."""
    probabilities = torch.stack([torch.linspace(0.6, 0.9, 22), torch.linspace(0.4, 0.1, 22)], -1)
    assert (CReST((22, 15), sampling_power=1.0).adopt(probabilities, 0) >= 0).sum() == 15


def test_a_class_that_is_never_predicted_adopts_nothing():
    """And a rate below 1 of a single prediction is none. Equally sure: the first is taken."""
    found = CReST((3, 2, 1)).adopt(F.one_hot(torch.tensor([0, 0, 1]), 3).float(), 0)
    assert found.tolist() == [0, -1, -1]


def test_even_probabilities_are_no_prediction():
    """A file that cannot be read has them; with a biased prior the correction would make a class of them."""
    probabilities = torch.tensor([[0.25] * 4, [0.4, 0.2, 0.2, 0.2]])
    assert CReST((1,) * CLASSES, biased_debiaser(), adopt_corrected=True).adopt(probabilities, 0).tolist()[0] == -1
    assert CReST((1,) * CLASSES).adopt(probabilities, 0).tolist() == [-1, 0]


@pytest.mark.parametrize("correction", [biased_debiaser(2.0), DistributionAlignment(COUNTS)])
def test_the_paper_adopts_by_what_the_network_predicts(correction):
    """The correction has its place in a step; between generations, predictions are used as they are."""
    expected = twin.adopted(predictions().tolist(), twin.sampling_rates(list(COUNTS), 1 / 3))
    assert CReST(COUNTS, correction).adopt(predictions(), 0).tolist() == expected


def test_adopted_labels_may_be_corrected_too():
    """They are then pseudo-labels like those of a step: softmax(f - lambda log p-hat)."""
    probabilities = predictions()
    crest = CReST((1,) * CLASSES, biased_debiaser(2.0), adopt_corrected=True)
    expected = [debiased(row.log().tolist(), PRIOR, 2.0) for row in probabilities]
    labels = [row.index(max(row)) for row in expected]
    assert crest.adopt(probabilities, 0).tolist() == labels
    assert labels != probabilities.argmax(-1).tolist()


def test_the_target_of_crest_plus_by_hand_over_its_generations():
    crest = aligned(generations=3, final_temperature=0.5)
    shares = [count / 15 for count in COUNTS]
    for generation in range(3):
        crest.losses(models(), batch(seed=generation))
        expected = twin.aligned_target(shares, generation, 2, 0.5)
        torch.testing.assert_close(crest.correction.target, torch.tensor(expected))
        if generation < 2:
            crest.adopt(predictions(), generation)
    root = [share**0.5 for share in shares]
    torch.testing.assert_close(crest.correction.target, torch.tensor([value / sum(root) for value in root]))


def test_crest_plus_refuses_another_correction_when_it_is_built():
    for correction in (None, Debiaser(CLASSES)):
        with pytest.raises(ValueError, match="correction=alignment"):
            CReSTPlus(COUNTS, correction)
