"""How well the verdict without labels tells a teacher that sees something from one that guesses.

    python benchmarks/verdict.py --root DATA        about half an hour of one core; features are kept in runs/verdict

ConSE on up to 2,000 images of CIFAR-10 (as they are, and shrunk to 24, 16 and 12 pixels before, which makes the teacher
worse), EuroSAT, digits and, where DATA/flowers20 is, photos of flowers; of each, all classes and four draws of half of
them. Then students that begin with random weights against students that begin with labels spread over the graph; and,
with five true labels a class, whether the cross-check hands out the better of teacher and students.
Writes results/zeroshot/verdict.json. The truth is looked at in ``above_chance`` and ``accuracy`` alone.
"""

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.origin import ROOT, origin
from benchmarks.zeroshot import EUROSAT
from debiaspl.data import UNLABELED, ImageSet, load
from debiaspl.data.lazy import read_listing
from debiaspl.data.listing import list_folder
from debiaspl.encoders import features_of
from debiaspl.features import FeatureTable, TableTask, fit_recipe
from debiaspl.features.fit import LINEAR, enough_steps
from debiaspl.features.run import EncodedImages
from debiaspl.graph import directions, nearest
from debiaspl.zeroshot.check import check_with_labels
from debiaspl.zeroshot.conse import ConseTeacher
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.student import DEBIASPL, HINTED, TAUGHT, Student, Students
from debiaspl.zeroshot.teacher import lite0_size
from debiaspl.zeroshot.verdict import judge

KEPT = ROOT / "runs" / "verdict"
MOST, PARTS, SEEDS, DRAWS = 2000, 4, 3, 3
CONFIDENCE = 0.95
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def sets(root: Path | None) -> Iterator[tuple[str, ImageSet]]:
    """Sets by name, with class names in plain words."""
    cifar = some(load("cifar10", root).test)
    yield "cifar10", cifar
    for side in (24, 16, 12):
        small = F.interpolate(cifar.images.float(), (side, side), mode="area")
        blurred = F.interpolate(small, (32, 32), mode="bilinear").round().to(torch.uint8)
        yield f"cifar10 at {side} pixels", ImageSet(blurred, cifar.labels, cifar.classes, truth=cifar.truth)
    eurosat = some(load("eurosat", root).train)
    yield "eurosat", named(eurosat, EUROSAT)
    yield "digits", named(some(load("digits", root).train), DIGITS)
    if root is not None and (root / "flowers20").is_dir():
        flowers = some(read_listing(list_folder(root / "flowers20"), (224, 224))[0])
        yield "flowers20", named(flowers, [name.replace("-", " ") for name in flowers.classes])


def some(images: ImageSet) -> ImageSet:
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    return images.select(order[:MOST].sort().values)


def named(images: ImageSet, classes: Sequence[str]) -> ImageSet:
    return ImageSet(images.images, images.labels, tuple(classes), images.ids, images.truth)


class Kept(ConseTeacher):
    """ConSE, with the vectors of one set, computed once for all draws of its classes."""

    def __init__(self, images: ImageSet) -> None:
        super().__init__(lite0_size(images), KEPT / "features", torch.device("cpu"))
        self.place = {identity: number for number, identity in enumerate(images.ids)}
        self.whole = features_of(images, self.encoder, self.folder).values

    def look(self, images: ImageSet) -> Tensor:
        self.vectors = self.whole[[self.place[name] for name in images.ids]]
        return self.vectors


def draws(images: ImageSet) -> Iterator[tuple[str, ImageSet]]:
    """All classes, then half of them, four times."""
    yield "all classes", images
    generator = torch.Generator().manual_seed(1)
    for number in range(PARTS):
        own = torch.randperm(images.num_classes, generator=generator)[: images.num_classes // 2].sort().values
        rows = torch.isin(images.truth, own).nonzero().flatten()
        place = torch.full((images.num_classes,), UNLABELED)
        place[own] = torch.arange(len(own))
        part = images.select(rows)
        truth = place[part.truth]
        yield f"half {number}", ImageSet(part.images, truth, tuple(images.classes[c] for c in own), part.ids, truth)


def above_chance(label: Tensor, images: ImageSet) -> dict[str, float]:
    right, chance = accuracy(label, images), 1 / images.num_classes
    return {"accuracy": round(right, 4), "above chance": round((right - chance) / (1 - chance), 4)}


def accuracy(label: Tensor, images: ImageSet) -> float:
    return float((label == images.truth).double().mean())


def neighbours(vectors: Tensor, label: Tensor, classes: int) -> float:
    """The share of the ten nearest neighbours with the same label, beyond chance: measured, and not used."""
    places = nearest(directions(vectors, vectors.mean(0)), 10).places
    shares = torch.bincount(label, minlength=classes).double() / len(label)
    expected = float(shares.square().sum())
    return (float((label[places] == label[:, None]).double().mean()) - expected) / (1 - expected)


def judged(images: ImageSet, teacher: Kept) -> dict[str, Any]:
    blind = ImageSet(images.images, torch.full_like(images.labels, UNLABELED), images.classes, images.ids)
    probabilities = teacher.read(teacher.look(blind), images.classes, ("{}",))
    said = Predictions(probabilities, images.classes, images.ids, "ConSE")
    verdict = judge(teacher, blind, said, ("{}",))
    assert verdict is not None
    near = neighbours(teacher.look(blind), said.label, len(images.classes))
    return {**above_chance(said.label, images), **verdict.to_json(), "neighbours": round(near, 3)}


def students(images: ImageSet, teacher: Kept) -> dict[str, Any]:
    """FixMatch and DebiasPL on frozen features, by what the classifier begins with: from ConSE's confident labels, and
    from five true labels a class."""
    vectors = teacher.look(images)
    confidence, label = teacher.read(vectors, images.classes, ("{}",)).max(-1)
    sure = torch.where(confidence >= CONFIDENCE, label, UNLABELED)
    found: dict[str, Any] = {}
    for kind in ("from ConSE", "from five true labels a class"):
        cell: dict[str, Any] = {}
        for method, strength in (("FixMatch", 0.0), ("DebiasPL", 0.5)):
            for first in ("random", "graph"):
                runs = []
                for seed in range(SEEDS):
                    labels = sure if kind == "from ConSE" else five(images, seed)
                    if len(set(labels.tolist()) - {UNLABELED}) < 2:
                        break
                    runs.append(accuracy(trained(vectors, labels, images, strength, first, seed), images))
                if runs:
                    cell[f"{method}, {first}"] = {"accuracy": round(statistics.fmean(runs), 4), "runs": runs}
        found[kind] = cell or {"skipped": "labels of fewer than two classes"}
    found["from ConSE"] |= {"labels": int((sure >= 0).sum())}
    return found


def five(images: ImageSet, seed: int) -> Tensor:
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    labels = torch.full((len(images),), UNLABELED)
    for number in range(images.num_classes):
        own = order[images.truth[order] == number][:5]
        labels[own] = number
    return labels


def trained(vectors: Tensor, labels: Tensor, images: ImageSet, strength: float, first: str, seed: int) -> Tensor:
    """Labels of every image by a student of these."""
    chosen = {"strength": strength, "threshold": 0.95, "first_classifier": first, "seed": seed}
    recipe = LINEAR.changed(**chosen, steps=enough_steps(len(vectors)))
    table = FeatureTable(vectors, unit=True, device=torch.device("cpu"))
    fitted = fit_recipe(recipe, table, TableTask(labels, images.classes, images.ids))
    return fitted.probabilities(vectors).argmax(-1)


def choices(images: ImageSet, teacher: Kept) -> list[dict[str, Any]]:
    """Five true labels a class: how right the teacher and both students are on the other images, and who of them the
    cross-check of the labels hands out."""
    vectors = teacher.look(images)
    said = Predictions(teacher.read(vectors, images.classes, ("{}",)), images.classes, images.ids, "teacher")
    table, found = FeatureTable(vectors, unit=True, device=torch.device("cpu")), []
    nothing = Path("unused")
    recipes = Student().recipes(nothing, nothing, len(images), teacher.encoder, HINTED)
    for seed in range(DRAWS):
        labels = five(images, seed)
        others = images.select((labels < 0).nonzero().flatten())
        scores = {"teacher alone": accuracy(said.label[labels < 0], others)}
        own = {name: recipes[key].changed(seed=seed) for name, key in {"alone": DEBIASPL, "taught": TAUGHT}.items()}
        students = Students(EncodedImages(teacher.encoder, images, table, {}), said, labels)
        for name, recipe in own.items():
            scores[name] = accuracy(students.label(students.fit(recipe))[labels < 0], others)
        told = check_with_labels(said, labels, *students.crosscheck(own)).to_json()
        scores = {name: round(value, 4) for name, value in scores.items()}
        found.append({"handed out": told["handed out"], "accuracy": scores, "checked": told["checked"]})
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=None, help="a further folder with the sets")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "zeroshot" / "verdict.json")
    parser.add_argument("--choices", action="store_true", help="measure the choices alone, and add them to the file")
    arguments = parser.parse_args()
    written: dict[str, Any] = {"verdicts": {}, "students": {}, "choices": {}}
    if arguments.choices:
        written = json.loads(arguments.out.read_text()) | {"choices": {}}
    for name, images in sets(arguments.root):
        teacher = Kept(images)
        if "pixels" not in name:
            written["choices"][name] = choices(images, teacher)
        if arguments.choices:
            continue
        for draw, part in draws(images):
            found = judged(part, teacher)
            written["verdicts"][f"{name}, {draw}"] = found
            print(f"{name}, {draw}: {found}", flush=True)
        if "pixels" not in name:
            written["students"][name] = students(images, teacher)
            print(name, written["students"][name], flush=True)
    part, option = ("origin of choices", " --choices") if arguments.choices else ("origin", "")
    written[part] = origin(f"python benchmarks/verdict.py --root DATA{option}")
    arguments.out.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
