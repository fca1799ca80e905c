"""What runs show: their report, one page for one run or for many."""

from debiaspl.report.runs.page import runs_page as runs_page, runs_values as runs_values, write_report as write_report
from debiaspl.report.runs.record import RunRecord as RunRecord, read_run as read_run, runs_in as runs_in
