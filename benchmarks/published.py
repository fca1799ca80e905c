"""Published numbers: those beside the DebiasPL paper's main CIFAR-10 table, and those of the standard long-tail
protocols, each with the table that it was read from.

Top-1 % on the balanced test set. The long-tail protocols are WRN-28-2, mean and standard deviation of three runs;
papers differ in whether labeled images are also unlabeled ones and in which evaluation is reported: docs/data.md.
Numbers of DARP, CReST+ and ABC are those that DASO's authors measured with their own code; of ACR and CPE, those that
CCL's authors print.
"""

from collections.abc import Iterator
from typing import NamedTuple

SOURCES = {
    "paper, add-on": "DebiasPL, CVPR 2022: its table of add-ons; in its main table FixMatch with 40 labels is 86.1, "
    "and 89.7 is FixMatch w/ DA w/ SimCLR",
    "paper, ablation": "DebiasPL, CVPR 2022: its table of parts; FixMatch is 73.1 in its main table",
    "paper, mismatch": "DebiasPL, CVPR 2022: its table of mismatched sets; FixMatch is 59.7 in its main table",
    "FixMatch": "Sohn et al., NeurIPS 2020, with RandAugment, as kekmodel's README.md quotes it",
    "USB": "github.com/microsoft/Semi-supervised-learning, results/classic_cv.csv; the best on the test set",
    "TorchSSL": "github.com/TorchSSL/TorchSSL, README.md; the best on the test set",
    "kekmodel": "github.com/kekmodel/FixMatch-pytorch, README.md; one run",
}
"""Of the numbers beside the paper's."""
PROTOCOL_SOURCES = {
    "DASO": "Oh et al., CVPR 2022, tables 1 and 2; median of the last 20 evaluations",
    "CCL": "Zhou et al., NeurIPS 2024, tables 2, 3 and 4",
    "SimPro": "Du et al., ICML 2024, table 1, as figures/exp1.png of github.com/LeapLabTHU/SimPro shows it; without "
    "deviations",
    "USB": "github.com/microsoft/Semi-supervised-learning, results/classic_cv_imb.csv; the best on the test set",
}
VOID = {
    ("USB", "DebiasPL"): "void: in the suite's DebiasPL, `delta_p = probs.mean()` has no dim, so its prior stays "
    "uniform and nothing is debiased; these runs are FixMatch",
}
"""(source, method) -> why these numbers are not of that method."""


class Elsewhere(NamedTuple):
    """A number of one of the paper's cells that is not in the paper's main tables."""

    cell: str
    method: str
    accuracy: float
    spread: float | None
    source: str
    """A key of ``SOURCES``."""


ELSEWHERE = (
    Elsewhere("cifar10-40", "FixMatch", 89.7, None, "paper, add-on"),
    Elsewhere("cifar10-40", "FixMatch", 86.19, 3.37, "FixMatch"),
    Elsewhere("cifar10-40", "FixMatch", 91.67, 1.41, "USB"),
    Elsewhere("cifar10-40", "FixMatch", 92.53, 0.28, "TorchSSL"),
    Elsewhere("cifar10-40", "FixMatch", 93.60, None, "kekmodel"),
    Elsewhere("cifar10-40", "UDA", 92.0, None, "USB"),
    Elsewhere("cifar10-40", "UDA", 89.4, None, "TorchSSL"),
    Elsewhere("cifar10-40", "UDA_Flex", 94.6, None, "TorchSSL"),
    Elsewhere("cifar10-40", "FlexMatch", 94.8, None, "USB"),
    Elsewhere("cifar10-40", "SoftMatch", 94.9, None, "USB"),
    Elsewhere("cifar10-40", "AdaMatch", 94.95, None, "USB"),
    Elsewhere("cifar10-40", "FreeMatch", 95.0, None, "USB"),
    Elsewhere("cifar10-250", "FixMatch", 94.93, 0.65, "FixMatch"),
    Elsewhere("cifar10-250", "FixMatch", 95.03, 0.05, "USB"),
    Elsewhere("cifar10-250", "FixMatch", 95.14, 0.05, "TorchSSL"),
    Elsewhere("cifar10-250", "FixMatch", 95.31, None, "kekmodel"),
    Elsewhere("cifar10-lt100-30pct", "FixMatch", 73.5, None, "paper, ablation"),
    Elsewhere("cifar10-lt200-10pct", "FixMatch", 62.3, None, "paper, mismatch"),
)

NOTES = {
    "cifar10-lt200-10pct-balanced": "45,000 balanced unlabeled images here; the paper does not say how many it has.",
}
"""Notes on the numbers of a cell."""


class PublishedRow(NamedTuple):
    """One number of a standard long-tail protocol."""

    cell: str
    """Such as ``cifar10-lt-500-4000-g100``."""
    method: str
    accuracy: float
    spread: float | None
    source: str
    """A key of ``PROTOCOL_SOURCES``."""
    table: str
    void: str = ""
    """Why it does not count."""


_BOTH, _TEN, _HUNDRED = (
    ("c10-500-4000-g100 c10-1500-3000-g100 c10-500-4000-g150 c10-1500-3000-g150 "
     "c100-50-400-g10 c100-150-300-g10 c100-50-400-g20 c100-150-300-g20"),
    "c10-500-4000-g100-uniform c10-1500-3000-g100-uniform c10-500-4000-g100-reversed c10-1500-3000-g100-reversed",
    "c100-50-400-g10-uniform c100-150-300-g10-uniform c100-50-400-g10-reversed c100-150-300-g10-reversed",
)  # fmt: skip
_SIMPRO = "c10-500-4000-g100 c10-500-4000-g100-uniform c10-500-4000-g100-reversed"
_USB = (
    "c10-1500-3000-g100 c10-1500-3000-g100-reversed c10-1500-3000-g150 c10-500-4000-g100 c10-500-4000-g100-reversed "
    "c10-500-4000-g150 c100-150-300-g10 c100-150-300-g10-reversed"
)

# Source, table, cells, and the rows of the table: a method, and for every cell a mean and a deviation.
_TABLES = (
    ("DASO", "table 1", _BOTH, """
        FixMatch      67.8 1.13 77.5 1.32 62.9 0.36 72.4 1.03 45.2 0.55 56.5 0.06 40.0 0.96 50.7 0.25
        FixMatch+LA   75.3 2.45 82.0 0.36 67.0 2.49 78.0 0.91 47.3 0.42 58.6 0.36 41.4 0.93 53.4 0.32
        DARP          74.5 0.78 77.8 0.63 67.2 0.32 73.6 0.73 49.4 0.20 58.1 0.44 43.4 0.87 52.2 0.66
        CReST+        76.3 0.86 78.1 0.42 67.5 0.45 73.7 0.34 44.5 0.94 57.4 0.18 40.1 1.28 52.1 0.21
        DASO          76.0 0.37 79.1 0.75 70.1 1.81 75.1 0.77 49.8 0.24 59.2 0.35 43.6 0.09 52.9 0.42
        ABC           78.9 0.82 83.8 0.36 66.5 0.78 80.1 0.45 47.5 0.18 59.1 0.21 41.6 0.83 53.7 0.55
        ABC+DASO      80.1 1.16 83.4 0.31 70.6 0.80 80.4 0.56 50.2 0.62 60.0 0.32 44.5 0.25 55.3 0.53"""),
    ("DASO", "table 2", _TEN, """
        FixMatch      73.0 3.81 81.5 1.15 62.5 0.94 71.8 1.70
        DARP          82.5 0.75 84.6 0.34 70.1 0.22 80.0 0.93
        CReST         83.2 1.67 87.1 0.28 70.7 2.02 80.8 0.39
        CReST+        82.2 1.53 86.4 0.42 62.9 1.39 72.9 2.00
        DASO          86.6 0.84 88.8 0.59 71.0 0.95 80.3 0.65"""),
    ("CCL", "table 2", _BOTH, """
        ACR           81.6 0.19 84.1 0.39 77.0 1.19 80.9 0.22 51.1 0.32 61.0 0.41 44.3 0.21 55.2 0.28
        CPE           80.7 0.96 84.4 0.29 76.8 0.53 82.3 0.34 50.3 0.34 59.8 0.16 43.8 0.28 55.6 0.15
        CCL           84.5 0.38 86.2 0.35 81.5 0.99 84.0 0.21 53.5 0.49 63.5 0.39 46.8 0.45 57.5 0.16"""),
    ("CCL", "table 3", _TEN, """
        ACR           92.1 0.18 93.5 0.11 85.0 0.99 89.5 0.17
        CPE           92.3 0.17 93.3 0.21 84.8 0.88 89.3 0.11
        CCL           93.1 0.21 93.9 0.12 85.0 0.70 89.8 0.31"""),
    ("CCL", "table 4", _HUNDRED, """
        FixMatch      45.5 0.71 58.1 0.72 44.2 0.43 57.3 0.19
        DARP          43.5 0.95 55.9 0.32 36.9 0.48 51.8 0.92
        CReST         43.5 0.30 59.2 0.25 39.0 1.11 56.4 0.62
        CReST+        43.6 1.60 58.7 0.16 39.1 0.77 56.4 0.78
        DASO          53.9 0.66 61.8 0.98 51.0 0.19 60.0 0.31
        ACR           57.9 0.56 65.8 0.91 51.7 0.22 63.3 0.17
        CCL           59.8 0.28 67.9 0.70 54.4 0.14 64.7 0.22"""),
    ("SimPro", "table 1", _SIMPRO, """
        SimPro        80.7 nan 93.8 nan 85.8 nan"""),
    ("USB", "classic_cv_imb.csv", _USB, """
        FixMatch      76.69 0.78 69.95 1.18 73.01 0.57 72.41 1.71 62.1  1.49 65.37 0.97 57.76 0.6  57.56 0.55
        CReST         77.19 0.34 80.8  0.14 73.47 0.39 74.21 0.76 68.83 5.96 67.0  1.36 57.92 0.4  58.27 1.15
        CReST+        78.25 0.36 68.81 0.63 74.59 0.66 76.38 1.37 61.59 1.1  72.0  2.35 58.13 0.23 56.75 0.51
        DARP          78.49 0.49 69.67 0.65 74.73 0.3  74.67 0.76 63.26 1.33 68.97 0.81 58.22 0.23 58.08 0.44
        DASO          76.51 0.49 78.07 0.38 71.97 0.51 68.62 0.67 69.16 1.03 64.4  0.66 59.01 0.16 60.06 0.2
        ABC           83.88 0.27 83.78 0.27 81.73 0.25 82.02 0.58 80.13 0.5  77.15 1.26 59.71 0.22 60.22 0.42
        CoSSL         85.28 0.23 75.48 0.98 82.98 0.12 82.22 0.27 70.91 1.5  78.15 1.6  59.03 0.39 58.54 0.49
        DebiasPL      77.51 0.76 69.72 0.1  73.41 0.47 73.49 1.05 63.62 0.38 67.03 1.0  58.01 0.32 58.38 0.4"""),
)  # fmt: skip


def _read() -> Iterator[PublishedRow]:
    for source, table, named, text in _TABLES:
        cells = [name.replace("c10-", "cifar10-lt-").replace("c100-", "cifar100-lt-") for name in named.split()]
        for line in text.strip().splitlines():
            method, *numbers = line.split()
            for cell, accuracy, spread in zip(cells, numbers[::2], numbers[1::2], strict=True):
                deviation = None if spread == "nan" else float(spread)
                void = VOID.get((source, method), "")
                name = f"FixMatch, as {source}'s {method}" if void else method
                yield PublishedRow(cell, name, float(accuracy), deviation, source, table, void)


PUBLISHED = tuple(_read())
