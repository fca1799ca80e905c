"""One file per algorithm: a batch of views in, named losses out."""

from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Views
from debiaspl.algorithms.fixmatch import FixMatch
from debiaspl.algorithms.pseudolabel import PseudoLabel
from debiaspl.algorithms.supervised import Supervised

ALGORITHMS: dict[str, type[Algorithm]] = {
    "supervised": Supervised,
    "pseudolabel": PseudoLabel,
    "fixmatch": FixMatch,
}

__all__ = ["ALGORITHMS", "Algorithm", "Batch", "FixMatch", "Models", "PseudoLabel", "Supervised", "Views"]
