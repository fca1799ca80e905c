"""Where a number comes from: the command, the commit, the machine and the versions; and the file that holds it."""

import json
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from debiaspl._processes import usable_cores

ROOT = Path(__file__).parent.parent


def git(*arguments: str) -> str:
    """What git says of this checkout; nothing, if it is none."""
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {usable_cores()} cores"


def origin(command: str | None = None) -> dict[str, Any]:
    """Of this process; ``command`` is by default the benchmark that runs, with its options."""
    import torch  # not before: processes that a benchmark starts would begin with its memory

    return {
        "command": command or shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]),
        "commit": git("rev-parse", "HEAD") or "unknown",
        "changed_since": git("status", "--porcelain", "--", "debiaspl").splitlines(),
        "machine": machine(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
        "threads": torch.get_num_threads(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def write(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1) + "\n")
