"""The command ``zeroshot`` beside its teacher, ConSE: python benchmarks/zeroshot.py --root DATA

Three draws of 2,000 photos of CIFAR-10 (test), EuroSAT and DATA/flowers20, with the defaults of ``debiaspl zeroshot
PHOTOS --classes NAMES``; some ten minutes of one core. True labels are read by ``--evaluate`` alone, at the end. Writes
results/zeroshot/students.json: accuracy and its mean over classes of the teacher, of both students, and of what was
handed out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.origin import ROOT, origin
from debiaspl.data import ImageSet, load
from debiaspl.data.lazy import read_listing
from debiaspl.data.listing import list_folder

DRAWS, PHOTOS = 3, 2000
EUROSAT = (
    *("annual crop land", "forest", "herbaceous vegetation land", "highway or road", "industrial buildings"),
    *("pasture land", "permanent crop land", "residential buildings", "river", "sea or lake"),
)


def sets(root: Path) -> dict[str, tuple[ImageSet, tuple[str, ...]]]:
    """Photos, and class names in plain words."""
    cifar, flowers = load("cifar10", root).test, read_listing(list_folder(root / "flowers20"), (224, 224))[0]
    return {
        "cifar10": (cifar, cifar.classes),
        "eurosat": (load("eurosat", root).train, EUROSAT),
        "flowers20": (flowers, tuple(name.replace("-", " ") for name in flowers.classes)),
    }


def measure(images: ImageSet, classes: tuple[str, ...], draw: int, place: Path) -> dict[str, Any]:
    photos = place / "photos"
    photos.mkdir()
    truth = ["file_name,label"]
    for row in np.random.default_rng([draw, 5]).permutation(len(images))[:PHOTOS].tolist():
        Image.fromarray(images.images[row].permute(1, 2, 0).numpy()).save(photos / f"{row}.png")
        truth.append(f"{row}.png,{classes[int(images.truth[row])]}")
    (place / "truth.csv").write_text("\n".join(truth) + "\n")
    command = ["zeroshot", str(photos), "--classes", ",".join(classes), "--evaluate", str(place / "truth.csv")]
    options = ["--out", str(place / "run"), "--device", "cpu", "--set", f"seed={draw}"]
    subprocess.run([sys.executable, "-m", "debiaspl", *command, *options], check=True, cwd=ROOT)
    made = json.loads((place / "run" / "results.json").read_text())["zeroshot"]
    methods = {
        name: {"accuracy": round(100 * one["accuracy"], 2), "macro": round(100 * float(np.mean(one["recall"])), 2)}
        for name, one in made["methods"].items()
    }
    return {"verdict": made["verdict"]["verdict"], "handed out": made["handed out"], "methods": methods}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    options = parser.parse_args()
    results: dict[str, Any] = {
        "origin": origin(f"python benchmarks/zeroshot.py --root {options.root.name}"),
        "sets": {},
    }
    for name, (images, classes) in sets(options.root).items():
        for draw in range(DRAWS):
            with tempfile.TemporaryDirectory() as place:
                results["sets"].setdefault(name, []).append(measure(images, classes, draw, Path(place)))
            print(name, draw, results["sets"][name][-1], flush=True)
    (ROOT / "results" / "zeroshot" / "students.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
