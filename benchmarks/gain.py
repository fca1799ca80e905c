"""What a recipe reaches, fold by fold, and how it got there: one JSON file, for docs/results.md.

    python -m benchmarks.gain --out results/gain/cifar10-40 --recipe cifar10-40 --length minutes --method contrastmatch

Every fold is the command that a user would type, in a process of its own, and its seconds are that process's, from its
start to its end; with length start the features of the fold are learned first, and counted. Several can share the GPU
(--together), which uses it better: each then takes longer than alone.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.origin import origin
from debiaspl.recipes import recipe as find
from debiaspl.training.settings import parse_settings

OPTIONS = "--recipe", "--length", "--method"
KEPT = ("step", "accuracy", "losses", "kept", "pseudo_labels", "pseudo_right_labels", "pseudo_accuracy", "marginal")
"""Of a line of the log."""


Choice = tuple[str, str | None, str | None]
"""Cell, length and method."""


def command(chosen: Choice, settings: list[str]) -> list[str]:
    options = [part for name, value in zip(OPTIONS, chosen, strict=True) if value for part in (name, value)]
    return ["debiaspl", "train", *options, *(part for setting in settings for part in ("--set", setting))]


def typed(program: list[str], out: Path) -> None:
    """Run a command into a folder."""
    ended = subprocess.run([sys.executable, "-m", *program, "--out", str(out)], capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{' '.join(program)}\n{ended.stdout}{ended.stderr}")


def run(chosen: Choice, fold: int, settings: list[str], folder: Path) -> dict[str, Any]:
    out, began = folder / f"fold-{fold}", time.perf_counter()
    start: list[str] = []
    if chosen[1] == "start":
        typed(command((chosen[0], None, "moco"), [f"seed={fold}"]), folder / f"start-{fold}")
        start = [f"start={folder / f'start-{fold}'}"]
    typed(command(chosen, [*settings, *start, f"seed={fold}"]), out)
    seconds = time.perf_counter() - began
    results = json.loads((out / "results.json").read_text())
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    prior = ("prior",) if "prior" in log[-1] else ()
    print(f"fold {fold}: {100 * results['accuracy']:.2f} % in {seconds:.0f} s", flush=True)
    return {
        "fold": fold,
        "accuracy": results["accuracy"],
        "recall": results["recall"],
        "seconds": round(seconds, 1),
        "training_seconds": results["timing"]["seconds"],
        "log": [{key: rounded(line[key]) for key in (*KEPT, *prior) if key in line} for line in log],
    }


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return {key: rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--length")
    parser.add_argument("--method")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--name", help="of the file", default=None)
    parser.add_argument("--folds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--together", type=int, default=1, help="runs that share the device")
    parser.add_argument("--commit", default=None, help="where the code comes from, if this is no checkout")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    folds = range(options.first, options.first + options.folds)
    chosen = options.recipe, options.length, options.method
    recipe = parse_settings(find(*chosen), options.settings)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.together) as pool:
        begun = [pool.submit(run, chosen, fold, options.settings, Path(folder)) for fold in folds]
        measured = {
            **origin(),
            "recipe": recipe.to_json(),
            "command": " ".join(command(chosen, [*options.settings, f"seed={options.first}"])),
            **({"commit": options.commit} if options.commit else {}),
            "together": options.together,
            "folds": [future.result() for future in begun],
        }
        if options.length == "start":
            measured["start_command"] = " ".join(command((options.recipe, None, "moco"), [f"seed={options.first}"]))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{options.name or recipe.name}.json").write_text(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
