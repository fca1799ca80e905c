"""Run a comparison and keep what it measured: python benchmarks/record_matrix.py NAME [options of debiaspl compare]

Writes results/NAME: results.json, the table, and where they come from. The runs are kept in runs/record-NAME: the same
command goes on with one that was stopped. Delete that folder to begin anew.
"""

import shlex
import shutil
import subprocess
import sys

from benchmarks.origin import ROOT, origin, write


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    name, *options = sys.argv[1:]
    command = ["debiaspl", "compare", *options, "--device", "cpu"]
    out, target = ROOT / "runs" / f"record-{name}", ROOT / "results" / name
    # What is written down is where the runs began, not where a resumed command found the tree.
    began = out.with_suffix(".origin.json")
    if not out.exists():
        write(began, origin(shlex.join(command)))
    subprocess.run([sys.executable, "-m", *command, "--out", str(out), "--resume"], check=True)
    target.mkdir(parents=True, exist_ok=True)
    for file in ("results.json", "table.md"):
        shutil.copy(out / file, target / file)
    shutil.copy(began, target / "origin.json")


if __name__ == "__main__":
    main()
