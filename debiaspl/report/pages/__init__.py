"""Self-contained HTML pages. The values are computed in Python; the script only draws them."""

from debiaspl.report.pages.build import build_page, embedded, refuse_other_page, rounded, short_name

__all__ = ["build_page", "embedded", "refuse_other_page", "rounded", "short_name"]
