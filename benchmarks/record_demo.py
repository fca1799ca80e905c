"""Run the demo and keep what it measured: python benchmarks/record_demo.py NAME [options of debiaspl demo]

Writes results/NAME: results.json, the table, and where they come from. What varies from processor to
processor, by the numbers alone:

    ATEN_CPU_CAPABILITY=default python benchmarks/record_demo.py demo-range/default --seeds 10
"""

import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from debiaspl._processes import usable_cores

ROOT = Path(__file__).parent.parent


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
    (target / "origin.json").write_text(json.dumps(origin(" ".join(command)), indent=2) + "\n")


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {usable_cores()} cores, no GPU used"


def origin(command: str) -> dict[str, object]:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], check=True, cwd=ROOT, text=True, stdout=subprocess.PIPE
        ).stdout.strip()

    return {
        "command": command,
        "commit": git("rev-parse", "HEAD"),
        "changed_since": git("status", "--porcelain", "--", "debiaspl").splitlines(),
        "machine": machine(),
        "threads": torch.get_num_threads(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


if __name__ == "__main__":
    main()
