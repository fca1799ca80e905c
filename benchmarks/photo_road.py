"""Processor time of ``debiaspl train PHOTOS --encoder``, with its folds and candidates, beside a plain script.

    python -m benchmarks.photo_road flowers20 --out results/photos/road.json
    python -m benchmarks.photo_road flowers20 --other WORKTREE --out road.json   and another commit

The plain script reads the same photos, encodes each once with the same function and batch, and fits scikit-learn's
logistic regression to the labels. All are processes of their own; measured is user and system time. Then one fit of
made features, of as many rows, in a process that has fitted before.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.origin import ROOT, origin, write

PHOTOS, LABELS = 600, 5
PLAIN = """
import sys
from pathlib import Path
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from debiaspl.data.decode import decode
from debiaspl.encoders import load_encoder
from debiaspl.encoders.encoding import BATCH
from debiaspl.models import scale

folder, side = Path(sys.argv[1]), 224
files = sorted(path for path in folder.rglob("*.jpg"))
encoder, rows = load_encoder("efficientnet-lite0"), []
with torch.no_grad():
    for start in range(0, len(files), BATCH["cpu"]):
        pictures = torch.stack([decode(path, (side, side)) for path in files[start : start + BATCH["cpu"]]])
        rows.append(encoder.embed(scale(pictures).contiguous(memory_format=torch.channels_last)))
features = torch.nn.functional.normalize(torch.cat(rows), dim=-1).numpy()
names = np.array([path.parent.name for path in files])
known = names != "unlabeled"
print(len(LogisticRegression(C=30, max_iter=300).fit(features[known], names[known]).predict(features)))
"""


FIT = """
import time
import torch
from debiaspl.features import fit

labels = torch.arange(600) % 20
features = torch.randn(20, 1280)[labels] + 4 * torch.randn(600, 1280)
labels[100:] = -1
for _ in range(2):
    began = time.process_time()
    fit(features, labels, 20, device=torch.device("cpu"))
print(round(time.process_time() - began, 2))
"""


def write_photos(source: Path, out: Path) -> None:
    """As many photos of each class, a few of them in class folders and the others in ``unlabeled``."""
    classes = sorted(path for path in source.iterdir() if path.is_dir())
    for folder in classes:
        for number, path in enumerate(sorted(folder.iterdir())[: PHOTOS // len(classes)]):
            place = out / (folder.name if number < LABELS else "unlabeled") / f"{folder.name}-{path.name}"
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


def environment(package: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}


def seconds(command: list[str], package: Path) -> float:
    """User and system time of a process and of those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment(package), cwd=package, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="a folder of class folders")
    parser.add_argument("--other", type=Path, help="a checkout of another commit")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        write_photos(options.photos, work / "photos")
        train = [sys.executable, "-m", "debiaspl", "train", str(work / "photos"), "--encoder", "efficientnet-lite0"]
        train += ["--device", "cpu", "--out"]
        found = {"train": seconds([*train, str(work / "own" / "run")], ROOT)}
        found["plain script"] = seconds([sys.executable, "-c", PLAIN, str(work / "photos")], ROOT)
        if options.other is not None:
            found["train, other commit"] = seconds([*train, str(work / "other" / "run")], options.other)
    fit = [sys.executable, "-c", FIT]
    found["one fit, 600 x 1,280"] = float(subprocess.check_output(fit, env=environment(ROOT), cwd=ROOT, text=True))
    made = {
        **origin("python -m benchmarks.photo_road flowers20"),
        "threads": "one a process",
        "photos": PHOTOS,
        "processor_seconds": found,
        "train_over_plain_script": round(found["train"] / found["plain script"], 2),
    }
    if options.other is not None:
        made["train_over_other_commit"] = round(found["train"] / found["train, other commit"], 2)
    write(options.out, made)
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
