"""Fifty answers: what ``next``, ``train`` and ``evaluate`` make of 600 photos of 20 kinds, over folders drawn anew.

    python -m benchmarks.fifty flowers20 --out results/photos/fifty.json

Each folder has 30 photos of every class, drawn and shuffled by its seed. The 50 that ``next`` asks for get their true
label; the 550 others are what is measured. Processor time is that of the commands.
"""

import argparse
import csv
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.origin import origin, write
from benchmarks.photo_road import seconds

EACH, ASKED, SEEDS = 30, 50, range(5)


def measured(source: Path, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    kinds = [(folder.name, sorted(folder.iterdir())) for folder in sorted(source.iterdir()) if folder.is_dir()]
    drawn = [(path, name) for name, paths in kinds for path in draw.sample(paths, EACH)]
    draw.shuffle(drawn)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "photos").mkdir()
        truth = {f"{number:04}.jpg": name for number, (_, name) in enumerate(drawn)}
        for file, (path, _) in zip(truth, drawn, strict=True):
            shutil.copy(path, work / "photos" / file)
        write_table(work / "truth.csv", ["file_name", "label"], truth.items())

        def command(*typed: str) -> float:
            return seconds([sys.executable, "-m", "debiaspl", *typed], work)

        took = [command("next", "photos", "--count", str(ASKED), "--out", "next.csv")]
        with (work / "next.csv").open(newline="") as file:
            asked = {row["file_name"]: row["asked"] for row in csv.DictReader(file)}
        answers = [(file, truth[file], how) for file, how in asked.items()]
        write_table(work / "photos" / "labels.csv", ["file_name", "label", "asked"], answers)
        took.append(command("train", "photos", "--device", "cpu", "--out", "runs/first"))
        command("evaluate", "runs/first", "photos", "--labels", "truth.csv", "--out", "found.json")
        found = json.loads((work / "found.json").read_text())
    classes = len({truth[file] for file in asked})
    return {"seed": seed, "accuracy": found["accuracy"], "classes_found": classes, "processor_seconds": took}


def write_table(path: Path, header: list[str], rows: Iterable[tuple[str, ...]]) -> None:
    path.write_text("".join(f"{','.join(row)}\n" for row in (header, *rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="a folder of class folders")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [measured(options.photos, seed) for seed in SEEDS]
    means = {
        "accuracy": round(fmean(row["accuracy"] for row in rows), 4),
        "processor_seconds": round(fmean(sum(row["processor_seconds"]) for row in rows), 1),
    }
    command = f"python -m benchmarks.fifty {options.photos.name}"
    write(options.out, {**origin(command), "means": means, "folders": rows})


if __name__ == "__main__":
    main()
