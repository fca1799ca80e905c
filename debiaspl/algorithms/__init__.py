"""Semi- and self-supervised algorithms, one per file: each turns a batch of views into named losses."""

from debiaspl.algorithms.abc import ABC
from debiaspl.algorithms.acr import ACR
from debiaspl.algorithms.adamatch import AdaMatch
from debiaspl.algorithms.algorithm import Algorithm, Batch, Models, Supervised, Views, predict
from debiaspl.algorithms.comatch import CoMatch
from debiaspl.algorithms.contrastmatch import ContrastMatch
from debiaspl.algorithms.crest import CReST, CReSTPlus
from debiaspl.algorithms.distill import Distill
from debiaspl.algorithms.fixmatch import FixMatch
from debiaspl.algorithms.flexmatch import FlexMatch
from debiaspl.algorithms.freematch import FreeMatch
from debiaspl.algorithms.meanteacher import MeanTeacher
from debiaspl.algorithms.mixmatch import MixMatch
from debiaspl.algorithms.moco import MoCo
from debiaspl.algorithms.paws import PAWS
from debiaspl.algorithms.pseudolabel import PseudoLabel
from debiaspl.algorithms.remixmatch import ReMixMatch
from debiaspl.algorithms.ride import RIDE
from debiaspl.algorithms.simclr import SimCLR
from debiaspl.algorithms.softmatch import SoftMatch
from debiaspl.algorithms.swav import SwAV
from debiaspl.algorithms.taught import GraphLabels, TaughtFixMatch
from debiaspl.algorithms.uda import UDA

ALGORITHMS: dict[str, type[Algorithm]] = {
    "supervised": Supervised,
    "pseudolabel": PseudoLabel,
    "mean-teacher": MeanTeacher,
    "uda": UDA,
    "mixmatch": MixMatch,
    "remixmatch": ReMixMatch,
    "fixmatch": FixMatch,
    "contrastmatch": ContrastMatch,
    "flexmatch": FlexMatch,
    "freematch": FreeMatch,
    "softmatch": SoftMatch,
    "comatch": CoMatch,
    "crest": CReST,
    "crest+": CReSTPlus,
    "adamatch": AdaMatch,
    "abc": ABC,
    "acr": ACR,
    "paws": PAWS,
}

HINTED: dict[str, type[Algorithm]] = {"graph": GraphLabels, "taught": TaughtFixMatch, "distill": Distill, "ride": RIDE}
"""Algorithms that need more than images and labels, or a network of several experts. Recipes can name them;
comparisons of all algorithms skip them."""

STARTS: dict[str, type[Algorithm]] = {"moco": MoCo, "simclr": SimCLR, "swav": SwAV}
"""Self-supervised algorithms: they learn features without labels, as a start for other runs."""

__all__ = ["ALGORITHMS", "HINTED", "STARTS", "Algorithm", "Batch", "FixMatch", "Models", "Views", "predict"]
