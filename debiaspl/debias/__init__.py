"""Corrections of biased predictions. This package imports only torch, so you can copy it into your own project."""

from collections.abc import Callable

from debiaspl.debias.alignment import DistributionAlignment as DistributionAlignment
from debiaspl.debias.causal_norm import CausalNorm as CausalNorm
from debiaspl.debias.cdmad import CDMAD as CDMAD
from debiaspl.debias.composite import PLUS as PLUS, Composite as Composite, CompositeBuilder as CompositeBuilder
from debiaspl.debias.correction import Correction as Correction
from debiaspl.debias.debiaser import Debiaser as Debiaser
from debiaspl.debias.ldam import LDAM as LDAM, LDAMDRW as LDAMDRW
from debiaspl.debias.logit_adjustment import (
    LogitAdjustment as LogitAdjustment,
    PosthocLogitAdjustment as PosthocLogitAdjustment,
)
from debiaspl.debias.simpro import SimPro as SimPro
from debiaspl.debias.tau_norm import TauNorm as TauNorm

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
