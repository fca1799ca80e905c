"""Corrections of biased predictions. This package imports only torch, so you can copy it into your own project."""

from collections.abc import Callable

from debiaspl.debias.alignment import DistributionAlignment
from debiaspl.debias.causal_norm import CausalNorm
from debiaspl.debias.cdmad import CDMAD
from debiaspl.debias.composite import PLUS, Composite, CompositeBuilder
from debiaspl.debias.correction import Correction, Traits
from debiaspl.debias.debiaser import Debiaser
from debiaspl.debias.ldam import LDAM, LDAMDRW
from debiaspl.debias.logit_adjustment import LogitAdjustment, PosthocLogitAdjustment
from debiaspl.debias.simpro import SimPro
from debiaspl.debias.tau_norm import TauNorm

# By name. Each is built from its settings and the arguments it declares: num_classes, class_counts.
CORRECTIONS: dict[str, Callable[..., Correction]] = {
    "none": Correction,
    "debiaser": Debiaser,
    "alignment": DistributionAlignment,
    "logit-adjustment": LogitAdjustment,
    "logit-adjustment-posthoc": PosthocLogitAdjustment,
    "ldam": LDAM,
    "ldam-drw": LDAMDRW,
    "simpro": SimPro,
    "cdmad": CDMAD,
    "tau-norm": TauNorm,
    "causal-norm": CausalNorm,
}
