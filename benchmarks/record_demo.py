"""Run the demo and keep what it measured: python benchmarks/record_demo.py NAME [options of debiaspl demo]

Writes results/NAME: results.json, the table, and where they come from. What varies from processor to
processor, by the numbers alone:

    ATEN_CPU_CAPABILITY=default python benchmarks/record_demo.py demo-range/default --seeds 10
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.origin import ROOT, origin, write


def main() -> None:
    command = ["debiaspl", "demo", *sys.argv[2:]]
    target = ROOT / "results" / sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        here = [sys.executable, "-m", *command, "--out", str(out)]
        print(subprocess.run(here, check=True, text=True, stdout=subprocess.PIPE).stdout)
        target.mkdir(parents=True, exist_ok=True)
        for name in ("results.json",) if "/" in sys.argv[1] else ("results.json", "table.md"):
            shutil.copy(out / name, target / name)
    write(target / "origin.json", origin(" ".join(command)))


if __name__ == "__main__":
    main()
