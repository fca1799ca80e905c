"""Zero-shot alone, + FixMatch, + DebiasPL, with ConSE as teacher: python benchmarks/zeroshot.py [options]

    python benchmarks/zeroshot.py                                    both sets, both students, three seeds: on a GPU
    python benchmarks/zeroshot.py --teach                            the teacher alone, where its pieces are installed
    python benchmarks/zeroshot.py --students frozen --limit 2000     on a CPU, in minutes

Needs EuroSAT and CIFAR-10 (debiaspl data get NAME; --root for another place). What the teacher says is kept in
runs/zeroshot (2 MB a set) and asked for once: a machine without the teacher's pieces measures with what another has
kept. Writes results/zeroshot/SET-STUDENT.json. The truth is looked at in ``score`` alone.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from record_demo import ROOT, origin
from safetensors.torch import load_file, save_file
from torch import Tensor

from debiaspl.data import UNLABELED, ImageSet, Task, load
from debiaspl.debias import Debiaser
from debiaspl.encoders import features_of, load_encoder
from debiaspl.features import fit as fit_features
from debiaspl.training import Choice, Recipe
from debiaspl.training.evaluate import evaluate
from debiaspl.training.step import fit
from debiaspl.zeroshot.embeddings import BATCH, ROUNDS
from debiaspl.zeroshot.predictions import Predictions, Row, class_counts

KEPT = ROOT / "runs" / "zeroshot"
SIZE = 128
STRENGTH = {"FixMatch": 0.0, "DebiasPL": 0.5}
EUROSAT = (
    *("annual crop land", "forest", "herbaceous vegetation land", "highway or road", "industrial buildings"),
    *("pasture land", "permanent crop land", "residential buildings", "river", "sea or lake"),
)


def target(name: str, root: Path | None, limit: int | None) -> ImageSet:
    """The images to be labeled: those of the training set, a part of them that is the same every time."""
    train = load(name, root).train
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    return train.select(order[: limit or len(train)].sort().values)


def teach(name: str, images: ImageSet, limit: int | None) -> Tensor:
    """What ConSE says of every image; kept."""
    path = KEPT / f"{name}-{limit or 'all'}.safetensors"
    if not path.exists():
        from debiaspl.zeroshot.conse import ConseTeacher

        classes = EUROSAT if name == "eurosat" else images.classes
        probabilities, _ = ConseTeacher(SIZE, KEPT / "features", torch.device("cpu")).predict(images, classes, ("{}",))
        KEPT.mkdir(parents=True, exist_ok=True)
        save_file({"probabilities": probabilities}, path)
    return load_file(path)["probabilities"]


def debiased(probabilities: Tensor) -> Tensor:
    """The teacher's own predictions with their running prior taken out (Eq. 3 and 4); nothing is trained."""
    logits, debias = probabilities.clamp_min(1e-12).log(), Debiaser(probabilities.shape[1])
    order, seen = torch.Generator().manual_seed(0), 0
    while seen < ROUNDS:
        for rows in torch.split(torch.randperm(len(logits), generator=order), BATCH):
            debias(logits[rows])
            seen += 1
    return debias.eval()(logits).argmax(-1)


class Frozen:
    """A linear classifier on efficientnet-lite0 as it is."""

    def __init__(self, images: ImageSet, steps: int | None) -> None:
        self.classes, self.steps = images.num_classes, steps
        encoder = load_encoder("efficientnet-lite0", image_size=SIZE)
        encoder.to("cuda" if torch.cuda.is_available() else "cpu")
        self.vectors = features_of(images, encoder, KEPT / "features").values

    def __call__(self, labels: Tensor, strength: float, seed: int) -> Tensor:
        chosen = {"strength": strength, "steps": self.steps, "seed": seed, "unit": True}
        fitted = fit_features(self.vectors, labels, self.classes, first_classifier="random", **chosen)
        return fitted.probabilities(self.vectors).argmax(-1)


class Trained:
    """A network that begins from nothing, with EMAN."""

    def __init__(self, images: ImageSet, steps: int | None) -> None:
        self.images, self.steps = images, steps or 2**14
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def __call__(self, labels: Tensor, strength: float, seed: int) -> Tensor:
        known, rest = (labels >= 0).nonzero().flatten(), (labels < 0).nonzero().flatten()
        hidden = torch.full_like(labels, UNLABELED)
        # A set without a truth: nothing behind this line can know it.
        blind = ImageSet(self.images.images, hidden, self.images.classes)
        told = blind.select(known)
        labeled = ImageSet(told.images, labels[known], told.classes)
        task = Task(labeled, blind.select(rest if len(rest) else known), labeled)
        recipe = Recipe(
            "zeroshot",
            network=Choice("wrn", {"norm_momentum": 0.1}),
            algorithm=Choice("fixmatch", {"joint": False}),
            correction=Choice("debiaser", {"strength": strength}),
            seed=seed,
            steps=self.steps,
            average_statistics=True,
            teacher="average",
        )
        step = fit(recipe, task, self.device)
        return evaluate(step.finished(), blind.to(self.device)).label


def score(method: str, label: Tensor, images: ImageSet) -> dict[str, Any]:
    return Row(method, label, images.num_classes, images.truth).to_json()


def measure(name: str, images: ImageSet, probabilities: Tensor, student: Any, arguments: Any) -> dict[str, Any]:
    teacher = Predictions(probabilities, images.classes, images.ids, "ConSE")
    found: dict[str, Any] = {
        "ConSE alone": score("ConSE", teacher.label, images),
        "ConSE debiased": score("debiased", debiased(probabilities), images),
        "confidence": {},
    }
    for confidence in arguments.confidence:
        labels = torch.where(teacher.confidence >= confidence, teacher.label, UNLABELED)
        own = labels >= 0
        cell: dict[str, Any] = {"labels": class_counts(labels[own], len(teacher.classes))}
        found["confidence"][str(confidence)] = cell
        if sum(count > 0 for count in cell["labels"]) < 2:
            cell["skipped"] = "labels of fewer than two classes"
            continue
        cell["labels_right"] = float((labels == images.truth)[own].double().mean())
        for method in STRENGTH:
            runs = []
            for seed in range(arguments.seeds):
                runs.append(score(method, student(labels, STRENGTH[method], seed), images))
            accuracy = [run["accuracy"] for run in runs]
            cell[method] = {"accuracy": statistics.fmean(accuracy), "runs": runs}
            shown = ", ".join(f"{100 * value:.1f}" for value in accuracy)
            print(f"{name} confidence {confidence}: {int(own.sum())} labels, {method} {shown}", flush=True)
    return found


def command(name: str, kind: str, limit: int | None) -> str:
    return f"python benchmarks/zeroshot.py --students {kind} --sets {name}" + (f" --limit {limit}" if limit else "")


def machine() -> dict[str, str]:
    """Where a GPU was used, its name."""
    return {"machine": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="cifar10,eurosat")
    parser.add_argument("--students", default="frozen,wrn-28-2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--confidence", type=float, nargs="+", default=[0.2, 0.4, 0.6, 0.8, 0.95])
    parser.add_argument("--steps", type=int, default=None, help="of the student; its own choice unless given")
    parser.add_argument("--limit", type=int, default=None, help="images of a set")
    parser.add_argument("--teach", action="store_true", help="ask the teacher, and end")
    parser.add_argument("--root", type=Path, default=None, help="a further folder with the sets")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "zeroshot")
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        images = target(name, arguments.root, arguments.limit)
        probabilities = teach(name, images, arguments.limit)
        for kind in [] if arguments.teach else arguments.students.split(","):
            started = time.monotonic()
            frozen = kind == "frozen"
            student = Frozen(images, arguments.steps) if frozen else Trained(images, arguments.steps)
            measured = measure(name, images, probabilities, student, arguments)
            written = {
                "set": name,
                "images": len(images),
                "classes": list(EUROSAT if name == "eurosat" else images.classes),
                "student": kind,
                "note": "the teacher's pre-training saw labeled pictures of ImageNet's classes",
                **measured,
                "seconds": round(time.monotonic() - started, 1),
                "origin": origin(command(name, kind, arguments.limit)) | machine(),
                "settings": {key: getattr(arguments, key) for key in ("seeds", "steps", "limit")},
            }
            arguments.out.mkdir(parents=True, exist_ok=True)
            part = f"-{arguments.limit}" if arguments.limit else ""
            (arguments.out / f"{name}-{kind}{part}.json").write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
