"""Reports of runs."""

from debiaspl.report.comparison import Comparison
from debiaspl.report.figures import draw_comparison, require_matplotlib

__all__ = ["Comparison", "draw_comparison", "require_matplotlib"]
