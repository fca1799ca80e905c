"""Every figure of README and docs, by its command: python -m tools.figures [FILE ...]

``report.png`` is a picture of the report that `make demo` has written to runs/demo; it needs Chromium.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.marks import ROOT

COMMANDS = {
    "docs/demo.png": "python -m tools.figures docs/demo.png",
    "docs/label.png": "python -m tools.figures docs/label.png",
    "docs/report.png": "python -m tools.figures docs/report.png",
    "docs/results.svg": "python -m benchmarks.results_page",
    "docs/debiasing.svg": "python -m benchmarks.target --figure docs/debiasing.svg",
    "docs/first-labels.png": "python -m benchmarks.first_labels --figure docs/first-labels.png",
    "docs/reproduction.png": "python -m benchmarks.paper page",
    "docs/lab/growth.png": "python -m benchmarks.growth --figure docs/lab/growth.png",
    "docs/lab/debiasing-lt100.png": "python -m benchmarks.gain_figures results/gain/cifar10-lt100-10pct "
    "--out docs/lab/debiasing-lt100.png",
}


def draw_report(page: Path, out: Path) -> None:
    """The top of a report, as wide as a page of the docs."""
    from tests.report.chromium import Chromium

    if not page.is_file():
        raise SystemExit(f"{page} is not there, expected the report of the demo. Run first: make demo")
    with Chromium() as browser:
        browser.page(page.resolve().as_uri(), width=1040, height=1460).screenshot(out, whole=False)


def draw_label(out: Path) -> None:
    """The page of `debiaspl label`, with parts of the two photos that scikit-learn has."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    from tests.report.chromium import Chromium

    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        photos.mkdir()
        for number, pixels in enumerate(load_sample_images().images * 6):
            left = 40 * (number // 2)
            Image.fromarray(pixels[:, left : left + 420]).save(photos / f"{number:02d}.jpg")
        command = ["-m", "debiaspl", "label", "photos", "--classes", "flower,temple,other", "--no-browser"]
        with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, cwd=folder) as server:
            assert server.stdout is not None
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://127\S+", line)))
            with Chromium() as browser:
                page = browser.page(address, width=900, height=560)
                page.wait_for("document.querySelector('img')?.naturalWidth > 0")
                page.screenshot(out, whole=False)
            server.terminate()


def draw(figure: str) -> None:
    if figure == "docs/label.png":
        draw_label(ROOT / figure)
        return
    if figure == "docs/report.png":
        draw_report(ROOT / "runs" / "demo" / "report.html", ROOT / figure)
        return
    if figure == "docs/demo.png":
        from tools.demo_figure import draw_demo

        draw_demo(ROOT / "results" / "demo" / "results.json", ROOT / figure)
        return
    subprocess.run([sys.executable, *shlex.split(COMMANDS[figure])[1:]], cwd=ROOT, check=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or COMMANDS:
        draw(name)
        print(f"{name}: {COMMANDS[name]}")
