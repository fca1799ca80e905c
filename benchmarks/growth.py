"""Time and memory of commands, by the number of photos: python -m benchmarks.growth --rows 1000 10000 --work DIR

Each command is a process of its own. ``encode`` reads real photos, all different; ``label`` opens hard links to 40 of
them; the others use made features of 1,280 numbers in 100 clusters, ten labels a class, which need no photos. Memory is
the largest RssAnon: pages of mapped files do not count. Every process has one core; seconds are those of the processor,
which other programs on the machine hardly change. Adds to results/growth/growth.json; ``--table`` writes what is
there, with the exponent b of time = a * rows ** b between the two largest numbers, and ``--figure`` draws it.
"""

import argparse
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.origin import ROOT, git
from debiaspl.data import manifest
from debiaspl.encoders import load_encoder
from debiaspl.encoders.feature_folder import FeatureFolder, ImageRow
from debiaspl.files import write_json

RESULTS = ROOT / "results" / "growth" / "growth.json"
CLASSES, LABELS, LINKED = 100, 10, 40
WHAT = ("encode", "label", "fit", "predict", "next", "audit")


def make_features(folder: Path, rows: int) -> None:
    """A folder of features as ``debiaspl encode`` writes it, and labels.csv beside it."""
    encoder, random = load_encoder("efficientnet-lite0"), np.random.default_rng(0)
    kept = FeatureFolder.of(folder, encoder, (3, 224, 224))
    centres = random.normal(size=(CLASSES, kept.width)).astype(np.float32)
    names, truth = [f"{row:09d}.jpg" for row in range(rows)], random.integers(0, CLASSES, rows)
    with manifest.alone_in(kept.path):
        kept.describe()
        files = manifest.add_to_manifest(kept.path, [], names)
    for number, line in enumerate(files):
        own = truth[number * manifest.ROWS :][: len(line)]
        noise = random.normal(size=(len(line), kept.width)).astype(np.float32)
        values = torch.from_numpy(centres[own] + 3 * noise)
        kept.write(number, line, [ImageRow((1, number), features=row) for row in values])
    # Anywhere among the rows, as a user's are: also where a fit on a sample has none.
    given = [row for label in range(CLASSES) for row in random.permutation(np.flatnonzero(truth == label))[:LABELS]]
    lines = "".join(f"{names[row]},class{truth[row]:02d}\n" for row in given)
    (folder.parent / "labels.csv").write_text(f"file_name,label\n{lines}")


def make_predictions(path: Path, rows: int) -> None:
    """A table of predictions of which four in five are right."""
    random = np.random.default_rng(1)
    with path.open("w") as file:
        file.write("file_name,label,confidence,truth\n")
        for start in range(0, rows, 100_000):
            truth = random.integers(0, CLASSES, min(100_000, rows - start))
            label = np.where(random.random(len(truth)) < 0.8, truth, random.integers(0, CLASSES, len(truth)))
            sure = random.random(len(truth))
            file.writelines(
                f"{start + n:09d}.jpg,class{label[n]:02d},{sure[n]:.6f},class{truth[n]:02d}\n"
                for n in range(len(truth))
            )


def make_links(folder: Path, photos: Sequence[Path], rows: int, copies: int) -> None:
    """Hard links to copies of some photos, 10,000 in a folder."""
    (folder.parent / "copies").mkdir(parents=True)
    own = [shutil.copy(photo, folder.parent / "copies" / f"{n}.jpg") for n, photo in enumerate(photos[:copies])]
    for row in range(rows):
        place = folder / f"{row // 10_000:05d}" / f"{row % 10_000:04d}.jpg"
        if row % 10_000 == 0:
            place.parent.mkdir(parents=True)
        os.link(own[row % len(own)], place)


def measured(words: Sequence[str], work: Path, opens_page: bool = False) -> dict[str, Any]:
    """Seconds, processor seconds and the largest RssAnon of a command; of the page, until its first photo is there."""
    began, most, seconds = time.monotonic(), 0, 0.0
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    typed = [sys.executable, "-u", "-m", "debiaspl", *words]
    with (work / "said").open("w+") as said, subprocess.Popen(typed, cwd=work, env=environment, stdout=said) as process:
        if opens_page:
            while (found := re.search(r"http://\S+", (work / "said").read_text())) is None:
                time.sleep(0.05)
            address = found[0]
            state = json.loads(urllib.request.urlopen(f"{address}state").read())
            urllib.request.urlopen(f"{address}image/{state['upcoming'][0]['image']}").read()
        while process.poll() is None:
            try:
                most = max(most, _anonymous(process.pid))
                seconds = _processor(process.pid)
            except (OSError, TypeError, IndexError):
                break
            if opens_page:
                process.kill()
            time.sleep(0.05)
    if process.returncode and not opens_page:
        raise SystemExit(process.returncode)
    numbers = {"seconds": time.monotonic() - began, "processor": seconds, "gigabytes": most / 2**20}
    return {name: round(value, 3) for name, value in numbers.items()}


def _anonymous(process: int) -> int:
    """RssAnon in kilobytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1])


def _processor(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(what: str, rows: int, work: Path, photos: Sequence[Path]) -> dict[str, Any]:
    """Make what a command needs, if it is not there, and measure it."""
    place = work / str(rows)
    place.mkdir(parents=True, exist_ok=True)
    if what in ("fit", "predict", "next") and not (place / "features").exists():
        make_features(place / "features", rows)
    shutil.rmtree(place / "out", ignore_errors=True)
    encoded = ["--features", "features"]
    if what == "encode":
        if rows > len(photos):
            raise SystemExit(f"{rows:,} photos are wanted, and {len(photos):,} are there")
        make_links(place / "out" / "photos", photos, rows, copies=rows)
        return measured(["encode", "out/photos", "--out", "out/features"], place)
    if what == "label":
        make_links(place / "out" / "photos", photos, rows, LINKED)
        page = ["label", "out/photos", "--classes", "owl,heron", "--out", "out/labels.csv", "--no-browser"]
        return measured(page, place, opens_page=True)
    if what == "fit":
        return measured(["train", *encoded, "--labels", "labels.csv", "--out", "run", "--overwrite"], place)
    if what == "predict":
        return measured(["predict", "run", *encoded, "--out", "predicted.csv", "--overwrite"], place)
    if what == "next":
        return measured(["next", *encoded, "--labels", "labels.csv", "--overwrite"], place)
    make_predictions(place / "made.csv", rows)
    return measured(["audit", "made.csv", "--out", "audit.html", "--overwrite"], place)


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Seconds and gigabytes by the number of rows, and the exponents between the two largest."""
    sizes = sorted({int(rows) for by_rows in found.values() for rows in by_rows})
    lines = [["what", *(f"{rows:,}" for rows in sizes), "exponent of time", "of memory"]]
    for what in (name for name in WHAT if name in found):
        cells = [found[what].get(str(rows)) for rows in sizes]
        row = [what, *("-" if one is None else f"{one['processor']:.0f} s, {one['gigabytes']:.1f} GB" for one in cells)]
        ends = [(rows, one) for rows, one in zip(sizes, cells, strict=True) if one][-2:]
        row += [_exponent(ends, "processor"), _exponent(ends, "gigabytes")]
        lines.append(row)
    return "".join(f"| {' | '.join(line)} |\n" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])


def _exponent(ends: list[tuple[int, dict[str, Any]]], name: str) -> str:
    if len(ends) < 2 or not all(one[name] for _, one in ends):
        return "-"
    (few, first), (many, last) = ends
    return f"{math.log(last[name] / first[name]) / math.log(many / few):.2f}"


def figure(found: dict[str, dict[str, dict[str, Any]]], path: Path) -> None:
    import matplotlib.pyplot as plt

    shown, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    for axis, name, unit in zip(axes, ("processor", "gigabytes"), ("seconds of a core", "GB of memory"), strict=True):
        for what in (name for name in WHAT if name in found):
            points = sorted((int(rows), one[name]) for rows, one in found[what].items())
            axis.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=what)
        axis.set(xlabel="photos", ylabel=unit)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    shown.tight_layout()
    shown.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--what", nargs="*", default=list(WHAT), choices=WHAT)
    parser.add_argument("--work", type=Path, help="a folder with room for the features: 5.2 kB a row, three times")
    parser.add_argument("--photos", type=Path, help="a folder of JPEGs")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    about = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"found": {}}
    photos = sorted(options.photos.rglob("*.jpg")) if options.photos else []
    for rows in options.rows:
        for what in options.what:
            one = run(what, rows, options.work.resolve(), photos)
            one |= {"commit": git("rev-parse", "--short", "HEAD"), "load": round(os.getloadavg()[0], 1)}
            print(what, rows, one, flush=True)
            about["found"].setdefault(what, {})[str(rows)] = one
            about["command"] = "python -m benchmarks.growth --rows 1000 10000 ... --work DIR --photos EuroSAT"
            about["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            write_json(RESULTS, about)
    if options.table:
        (RESULTS.parent / "table.md").write_text(table(about["found"]))
    if options.figure:
        figure(about["found"], options.figure)


if __name__ == "__main__":
    main()
