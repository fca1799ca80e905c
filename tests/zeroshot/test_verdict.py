"""The verdict without labels: its numbers against plain loops, and that it tells a teacher that sees from one that does
not."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas
import pytest
import torch
import torch.nn.functional as F

from debiaspl.data import UNLABELED, DataError, ImageSet
from debiaspl.graph.neighbours import clusters
from debiaspl.zeroshot import experiment as module
from debiaspl.zeroshot.experiment import Experiment
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.student import Student
from debiaspl.zeroshot.teacher import EncodingTeacher
from debiaspl.zeroshot.verdict import CHANCE, DOUBTFUL, GOOD, TeacherVerdict, _shared, agreement, decidedness, judge
from tests.data.photos import write_photos
from tests.reference import agreement as slow
from tests.typed import results_of

CLASSES, COUNT, WIDTH = ("owl", "heron", "wren", "gull"), 200, 16
RESULTS = Path(__file__).parent.parent.parent / "results" / "zeroshot" / "verdict.json"


class Stub(EncodingTeacher):
    """Images are numbers; those of a class point the same way. ``noise`` is what the wording changes, where ``sees``
    says how much of the class names comes through."""

    name, about, default_templates = "stub", "a stub.", "name"
    encoder = SimpleNamespace(source="stub")

    def __init__(self, sees: float, noise: float) -> None:
        self.sees, self.noise = sees, noise
        generator = torch.Generator().manual_seed(0)
        self.centres = F.normalize(torch.randn(len(CLASSES), WIDTH, generator=generator), dim=-1)

    def predict(self, images, classes, templates, progress=None):
        numbers = torch.tensor([int(Path(name).stem) for name in images.ids])
        generator = torch.Generator().manual_seed(1)
        noise = 0.2 * torch.randn(COUNT, WIDTH, generator=generator)
        self.vectors = (self.centres[torch.arange(COUNT) % len(CLASSES)] + noise)[numbers]
        return self.read(self.vectors, classes, templates), {}

    def read(self, vectors, classes, templates):
        generator = torch.Generator().manual_seed(len("".join(templates)))
        wording = torch.randn(len(classes), WIDTH, generator=generator)
        return (20 * vectors @ (self.sees * self.centres + self.noise * wording).T).softmax(-1)


def images_of(count: int = COUNT) -> ImageSet:
    nothing = torch.full((count,), UNLABELED)
    return ImageSet(torch.zeros(count, 3, 1, 1, dtype=torch.uint8), nothing, CLASSES, tuple(map(str, range(count))))


def judged(teacher: Stub, count: int = COUNT) -> TeacherVerdict | None:
    images = images_of(count)
    probabilities, _ = teacher.predict(images, CLASSES, ("{}",))
    return judge(teacher, images, Predictions(probabilities, CLASSES, images.ids, "stub"), ("{}",))


def test_one_that_sees_is_good_and_one_that_follows_the_wording_is_at_chance():
    teacher = Stub(sees=1, noise=0.01)
    found = judged(teacher)
    assert found.word == GOOD
    assert "20 test it" in found.line("stub")
    blind = judged(Stub(sees=0, noise=1))
    assert blind.word == CHANCE
    assert "Do not rely on it" in blind.line("stub")
    assert judged(Stub(sees=1, noise=0.01), count=40) is None  # too few photos


def test_a_class_that_is_never_predicted_or_a_missing_sign_is_doubtful():
    good = {"prompts": 0.8, "clusters": 0.3, "decided": 0.5, "never": (), "images": 100}
    assert TeacherVerdict(**good).word == GOOD
    lacking = TeacherVerdict(**good | {"never": ("owl",)})
    assert lacking.word == DOUBTFUL
    assert "; never predicted: owl). Check it before you rely on it" in lacking.line("T")
    for name, value in (("prompts", 0.5), ("decided", 0.1)):
        assert TeacherVerdict(**good | {name: value}).word == DOUBTFUL
    assert TeacherVerdict(**good | {"prompts": 0.2}).word == CHANCE
    assert TeacherVerdict(**good | {"clusters": 0.1, "decided": 0.2}).word == CHANCE


def test_the_numbers_are_those_of_plain_loops():
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randint(3, (40,), generator=generator), torch.randint(3, (40,), generator=generator)
    other = torch.where(torch.rand(40, generator=generator) < 0.5, one, other)
    assert agreement(one, other, 5) == pytest.approx(slow.kappa(one.tolist(), other.tolist()))
    assert agreement(one * 0, one * 0, 5) == 0
    assert _shared(one, other, 3, 4) == pytest.approx(slow.mutual_information(one.tolist(), other.tolist()))
    rows = torch.rand(30, 4, generator=generator).double().softmax(-1)
    assert decidedness(rows) == pytest.approx(slow.decidedness(rows.tolist()))
    assert decidedness(torch.eye(4)) == pytest.approx(1)
    assert decidedness(torch.eye(4)[[2, 2, 2]]) == pytest.approx(0)


def test_clusters_are_found_whatever_the_seed_and_vectors_that_are_alike_are_no_error():
    generator = torch.Generator().manual_seed(0)
    groups = torch.arange(90) % 3
    vectors = F.normalize(10 * torch.eye(8)[groups] + torch.randn(90, 8, generator=generator), dim=-1)
    for seed in range(3):
        found = clusters(vectors, 3, seed)
        assert len(set(zip(found.tolist(), groups.tolist(), strict=True))) == 3
    assert clusters(F.normalize(torch.ones(5, 8), dim=-1), 3).shape == (5,)


def test_an_experiment_says_it_before_it_trains(encoder, tmp_path, monkeypatch):
    write_photos(tmp_path / "photos", [f"{number}.jpg" for number in range(60)])
    said: list[str] = []
    encode = module.encode_images
    monkeypatch.setattr(module, "encode_images", lambda *how: said.append("training") or encode(*how))
    teacher, student = Stub(sees=0, noise=1), Student(encoder, settings=("steps=1",))
    made = Experiment(tmp_path / "photos", CLASSES, teacher, ("{}",), 0.3, student)
    made.run(tmp_path / "out", say=said.append, device="cpu")
    assert "stub on these photos, judged without labels: at chance" in said[0]
    assert "training" in said[1:]
    results = results_of(tmp_path / "out")["zeroshot"]
    assert results["verdict"]["verdict"] == CHANCE
    assert results["handed out"] == "stub alone"
    teachers = pandas.read_csv(tmp_path / "out" / "zeroshot.csv").label
    assert pandas.read_csv(tmp_path / "out" / "predictions.csv").label.equals(teachers)
    said.clear()
    with pytest.raises(DataError, match=r"two classes\. Use other class names"):
        replace(made, confidence=2.0).run(tmp_path / "sure", say=said.append, device="cpu")
    assert "at chance" in said[0]


def test_the_thresholds_tell_what_was_measured_apart():
    """Where ConSE is far above chance the verdict is good, and nowhere else."""
    for name, found in json.loads(RESULTS.read_text())["verdicts"].items():
        signs = {key: found[key] for key in ("prompts", "clusters", "decided", "images")}
        word = TeacherVerdict(**signs, never=tuple(found["never"])).word
        assert word == found["verdict"], name
        assert (word == GOOD) == (found["above chance"] > 0.35), name
        assert word == CHANCE or found["above chance"] > 0.05, name
