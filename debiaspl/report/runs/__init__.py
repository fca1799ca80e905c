"""What runs show: their report, one page for one run or for many."""

from debiaspl.report.runs.page import runs_page, runs_values, write_report
from debiaspl.report.runs.record import RunRecord, read_run, runs_in
