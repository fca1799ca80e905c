"""What runs show."""

from debiaspl.report.comparison import Comparison, compare
from debiaspl.report.figures import draw_comparison, require_matplotlib

__all__ = ["Comparison", "compare", "draw_comparison", "require_matplotlib"]
