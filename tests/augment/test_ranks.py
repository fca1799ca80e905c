"""The views of an image do not depend on how many ranks there are."""

import pytest
import torch
from torch import Tensor

from debiaspl.augment import RandAugment, Weak
from debiaspl.augment.batch import uniform
from debiaspl.augment.cropcolor import CropColor
from debiaspl.debias import ranks
from tests.ranks import on_ranks

pytestmark = pytest.mark.slow


def images() -> Tensor:
    return torch.randint(256, (6, 3, 8, 8), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


def views() -> dict[str, Tensor]:
    generator, mine = torch.Generator().manual_seed(0), ranks.own_part(images())
    found = {"numbers": uniform(4, mine, generator).T}
    for view in (Weak(), RandAugment(), CropColor()):
        found[type(view).__name__] = view(mine, generator)
    return found | {"generator": generator.get_state()}


@pytest.mark.parametrize("count", [2, 3])
def test_the_views_of_ranks_together_are_those_of_one_process(count):
    results, alone = on_ranks(count, views), views()
    for result in results:
        assert torch.equal(result.pop("generator"), alone["generator"])
    for name in results[0]:
        assert torch.equal(torch.cat([result[name] for result in results]), alone[name]), name
