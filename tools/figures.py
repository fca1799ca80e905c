"""Every figure of README and docs, by its command: python -m tools.figures [FILE ...]

``report.png`` is a picture of the report that `make demo` has written to runs/demo; it needs Chromium.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tools.marks import ROOT

COMMANDS = {
    "docs/demo.png": "cp results/demo/comparison.png docs/demo.png",
    "docs/report.png": "python -m tools.figures docs/report.png",
    "docs/results.svg": "python -m benchmarks.results_page",
    **{
        f"docs/lab/debiasing-{name}.png": f"python -m benchmarks.gain_figures results/gain/{cell} "
        f"--out docs/lab/debiasing-{name}.png"
        for name, cell in {
            "lt100": "cifar10-lt100-10pct",
            "40": "cifar10-40",
            "mismatch": "cifar10-lt200-10pct-balanced",
        }.items()
    },
}
"""``debiaspl demo`` draws comparison.png; results/demo is what it wrote."""


def draw_report(page: Path, out: Path) -> None:
    """The top of a report, as wide as a page of the docs."""
    from tests.report.chromium import Chromium

    if not page.is_file():
        raise SystemExit(f"{page} is not there, expected the report of the demo. Run first: make demo")
    with Chromium() as browser:
        browser.page(page.resolve().as_uri(), width=1040, height=1460).screenshot(out, whole=False)


def draw(figure: str) -> None:
    if figure == "docs/report.png":
        draw_report(ROOT / "runs" / "demo" / "report.html", ROOT / figure)
        return
    if figure == "docs/demo.png":
        shutil.copy(ROOT / "results" / "demo" / "comparison.png", ROOT / figure)
        return
    subprocess.run([sys.executable, *shlex.split(COMMANDS[figure])[1:]], cwd=ROOT, check=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or COMMANDS:
        draw(name)
        print(f"{name}: {COMMANDS[name]}")
