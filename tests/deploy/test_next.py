"""Which images are picked, and what the command writes."""

import json
import math
import shutil

import pytest
import torch

from debiaspl.data.label_table import Columns
from debiaspl.deploy.labeled import labeled_files, learned_from_teacher
from debiaspl.deploy.next import SETTLED, Learned, Pool, learned_by, two_best, with_given_labels
from debiaspl.features.coverage import NEIGHBOURS, Coverage
from debiaspl.graph import Graph
from debiaspl.training import Choice, Recipe, Run
from tests.typed import debiaspl, done, refused, rows_of


def random_images(seed: int, images: int = 60, classes: int = 4):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(images, 6, generator=generator)
    return features, (2 * torch.randn(images, classes, generator=generator)).softmax(-1)


def test_margins_are_those_of_equation_3_with_the_mean_as_prior():
    _, probabilities = random_images(0)
    best = two_best(probabilities)
    rows = probabilities.tolist()
    prior = [sum(row[c] for row in rows) / len(rows) for c in range(4)]
    for row, values, classes in zip(rows, best.values.tolist(), best.indices.tolist(), strict=True):
        scores = [math.exp(math.log(p) - 0.5 * math.log(q)) for p, q in zip(row, prior, strict=True)]
        shares = sorted(((score / sum(scores), c) for c, score in enumerate(scores)), reverse=True)[:2]
        assert values == pytest.approx([share for share, _ in shares])
        assert classes == [c for _, c in shares]


@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.9])
def test_confidence_is_made_to_agree_with_the_learned_by(accuracy):
    _, probabilities = random_images(1)
    best = two_best(probabilities, accuracy)
    assert float(best.values[:, 0].mean()) == pytest.approx(accuracy, abs=1e-4)
    assert best.indices.tolist() == two_best(probabilities).indices.tolist()


def test_picks_are_those_of_coverage_times_uncertainty():
    features, probabilities = random_images(2)
    coverage = Coverage(Graph.of(features, search=NEIGHBOURS).near)
    doubt = 1 - two_best(probabilities, 0.7).values.diff().abs().flatten().numpy()
    # The fewer labels a model has learned from, the less its uncertainty counts.
    for labels, power in ((None, 1), (0, 1 / (4 * SETTLED)), (SETTLED, 1 / 4), (100, 1)):
        chosen = Pool(features, probabilities, tuple("abcd"), Learned(0.7, labels)).choose(8, {3: None, 5: "a"})
        assert [one.place for one in chosen] == coverage.order(8, [3, 5], doubt**power).tolist()
        assert {one.asked for one in chosen} == {"uncertainty"}


def groups(images: int = 60) -> torch.Tensor:
    """Three far groups."""
    generator = torch.Generator().manual_seed(0)
    return 9 * torch.eye(3, 8)[torch.arange(images) % 3] + 0.1 * torch.randn(images, 8, generator=generator)


def test_without_a_model_every_group_comes_before_a_second_of_one():
    first = Pool(groups()).choose(3, {})
    assert {one.place % 3 for one in first} == {0, 1, 2}
    assert {(one.asked, one.why) for one in first} == {("coverage", "typical of similar photos")}
    assert Pool(groups()[:1]).choose(5, {})[0].place == 0
    assert Pool(groups()[:1]).choose(5, {0: "a"}) == []


def test_the_reason_is_the_doubt_or_the_distance():
    features = torch.cat([groups(), torch.full((1, 8), -9.0)])
    probabilities = torch.tensor([[0.97, 0.03, 0.0], [0.03, 0.97, 0.0], [0.0, 0.49, 0.51]])[torch.arange(61) % 3]
    pool = Pool(features, probabilities, ("owl", "heron", "other"))
    reasons = {one.place: one.why for one in pool.choose(60, {0: None, 1: None})}
    both = "unsure: heron or other", "unsure: other or heron"
    assert all(reasons[place] in both for place in range(2, 60, 3)), "no number beside another one, the confidence"
    assert reasons[60] == "unlike every labelled photo"
    assert reasons[3] == "typical of photos that the model is unsure of"


def test_only_what_was_checked_on_other_labels_counts_as_accuracy(run, tmp_path):
    results = Run(run).results()

    def accuracy(**check):
        (tmp_path / "results.json").write_text(json.dumps(results | check))
        return learned_by(tmp_path).accuracy

    assert accuracy() == accuracy(check={"kind": "cross-check"}) == results["accuracy"]
    assert accuracy(check={"kind": "none"}) is accuracy(check={"kind": "teacher"}) is None
    assert learned_by(tmp_path).labels == sum(results["labels"])
    assert learned_by(tmp_path / "missing") == Learned()


def test_the_command_leaves_out_what_has_a_label(run, photos, model, tmp_path):
    first = debiaspl("next", run, photos, "--count", 6, "--out", tmp_path / "1.csv", "--page", tmp_path / "1.html")
    assert first.exit_code == 0, first.output
    assert "6 of 24 images; they are in" in first.output
    assert "Give their table: --labels FILE" in first.stderr
    picked = rows_of(tmp_path / "1.csv")
    assert list(picked[0]) == ["file_name", "label", "asked", "predicted", "confidence", "why"]
    assert all(row["label"] == "" for row in picked)
    assert picked[0]["predicted"] in model.classes
    page = (tmp_path / "1.html").read_text()
    assert page.count("data:image/webp;base64,") == 6
    assert "src=" not in page.replace("{ src: picture", "")

    labels = tmp_path / "labels.csv"
    labels.write_text("file_name,label\n" + "".join(f"{row['file_name']},china\n" for row in picked) + "gone.jpg,x\n")
    for name in ("2.csv", "3.csv"):
        ran = done("next", run, photos, "--count", 6, "--labels", labels, "--out", tmp_path / name)
        assert "6 of 18 images, 6 with a label left out" in ran
    assert not {row["file_name"] for row in rows_of(tmp_path / "2.csv")} & {row["file_name"] for row in picked}
    assert (tmp_path / "2.csv").read_bytes() == (tmp_path / "3.csv").read_bytes()


def test_nothing_to_pick_and_files_that_exist(run, photos, tmp_path):
    every = tmp_path / "all.csv"
    names = [f"{name}/{number:04d}.jpg" for name in ("china", "flower") for number in range(12)]
    every.write_text("file_name,label\n" + "".join(f"{name},x\n" for name in names))
    ran = refused("next", run, photos, "--labels", every, "--out", tmp_path / "next.csv")
    assert "is without a label, so there is nothing to pick" in ran
    (tmp_path / "next.html").write_text("mine")
    out = "--out", tmp_path / "next.csv"
    assert "--overwrite" in refused("next", run, photos, *out, "--page", tmp_path / "next.html")
    assert f"next {run} PHOTOS" in refused("next", run, *out)
    assert not (tmp_path / "next.csv").exists()


def test_labels_are_found_where_the_run_was_told_them_or_beside_the_photos(run, photos, tmp_path):
    copy = shutil.copytree(photos, tmp_path / "photos")
    files = ("china/0001.jpg", "flower/0002.jpg", "u\u0308.jpg")
    assert labeled_files(run, copy, files) is None
    (copy / "labels.csv").write_text("file_name,label\nchina/0001.jpg,china\nflower/0002.jpg,\n\u00fc.jpg,flower\n")
    assert set(labeled_files(run, copy, files)) == {"china/0001.jpg", "u\u0308.jpg"}

    other = tmp_path / "given.csv"
    other.write_text("file_name,label\nflower/0002.jpg,flower\nchina/0003.jpg,china\n")
    recipe = Recipe(name="own", data=str(copy), protocol=Choice("given", {"table": str(other)}))
    with Run(tmp_path / "run").begin(recipe):
        pass
    assert set(labeled_files(tmp_path / "run", copy, files)) == {"flower/0002.jpg"}
    assert set(labeled_files(tmp_path / "run", copy, files, copy / "labels.csv")) == {"china/0001.jpg", "u\u0308.jpg"}
    other.unlink()  # the run lies on another machine, or its table is gone
    assert set(labeled_files(tmp_path / "run", copy, files)) == {"china/0001.jpg", "u\u0308.jpg"}


def test_a_table_names_photos_in_its_own_columns_and_by_their_whole_path(run, photos, tmp_path):
    files = ("china/0001.jpg", "flower/0002.jpg")
    table = tmp_path / "t.csv"
    table.write_text(f"photo,kind\n{photos}/china/0001.jpg,china\nflower/0002.jpg,\ngone.jpg,x\n/elsewhere.jpg,x\n")
    assert set(labeled_files(run, photos, files, table, Columns("photo", "kind"))) == {"china/0001.jpg"}
    copy = shutil.copytree(photos, tmp_path / "photos")
    shutil.copy(table, copy / "labels.csv")
    assert not labeled_files(run, copy, files, columns=Columns("photo", "kind")), "named by paths of the original"


def zeroshot_run(folder, photos, mark, student="debiaspl"):
    """What ``debiaspl zeroshot`` leaves behind of one student, and the labels it was told."""
    folder.mkdir()
    (folder / ".zeroshot").write_text(mark)
    (folder / "labels.csv").write_text("file_name,label\nchina/0001.jpg,china\nflower/0009.jpg,flower\n")
    recipe = Recipe(name="own", data=str(photos), protocol=Choice("given", {"table": str(folder / "labels.csv")}))
    with Run(folder / student).begin(recipe):
        pass
    return folder / student


def test_labels_of_a_teacher_are_no_labels_and_those_of_a_person_are(photos, tmp_path):
    files = ("china/0001.jpg", "flower/0002.jpg")
    copy = shutil.copytree(photos, tmp_path / "photos")
    taught = zeroshot_run(tmp_path / "alone", copy, '{"labels": "teacher"}')
    assert learned_from_teacher(taught)
    assert set(labeled_files(taught, copy, files)) == set()
    assert labeled_files(taught, photos, files) is None  # other photos: nobody knows
    assert set(labeled_files(taught, copy, files, tmp_path / "alone" / "labels.csv")) == {"china/0001.jpg"}

    given = zeroshot_run(tmp_path / "given", copy, '{"labels": "person"}')
    assert not learned_from_teacher(given)
    assert set(labeled_files(given, copy, files)) == {"china/0001.jpg"}

    moved = (tmp_path / "alone").rename(tmp_path / "moved") / "debiaspl"
    assert learned_from_teacher(moved)
    assert set(labeled_files(moved, copy, files)) == set()

    # What a person has labeled since counts.
    (copy / "labels.csv").write_text("file_name,label\nflower/0002.jpg,flower\n")
    assert set(labeled_files(moved, copy, files)) == {"flower/0002.jpg"}
    assert set(labeled_files(given, copy, files)) == {"china/0001.jpg"}


def two_groups() -> tuple[torch.Tensor, torch.Tensor]:
    """Forty features in two groups, and a model that knows nothing of three classes."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.tensor([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]])[torch.arange(40) % 2]
    return centres + 0.3 * torch.randn(40, 3, generator=generator), torch.full((40, 3), 1 / 3)


def test_labels_given_since_reach_similar_images():
    features, probabilities = two_groups()
    graph = Graph.of(features)
    found = with_given_labels(graph, probabilities, {0: "a", 1: "b", 2: "a", 7: "unknown"}, ("a", "b", "c"))
    assert found[:, :2].argmax(-1).tolist() == [0, 1] * 20
    torch.testing.assert_close(found.sum(-1), torch.ones(40))
    torch.testing.assert_close(found[:, 2], probabilities[:, 2])  # a class without a label is left alone
    told = torch.tensor([[0.4, 0.2, 0.4]]).expand(40, 3)
    spread = graph.spread(torch.tensor([0, 1, 0, *[-1] * 37]), 3)
    both = with_given_labels(graph, told, {0: "a", 1: "b", 2: "a"}, ("a", "b", "c"))
    for row, other in zip(both.tolist(), spread.tolist(), strict=True):
        product = [0.4 * max(other[0], 1e-12), 0.2 * max(other[1], 1e-12)]
        assert row == pytest.approx([*(0.6 * value / sum(product) for value in product), 0.4], abs=1e-5)


@pytest.mark.parametrize("labels", [{}, {0: "a", 2: "a"}, {0: "unknown", 1: "other"}])
def test_labels_of_fewer_than_two_known_classes_change_nothing(labels):
    features, probabilities = two_groups()
    assert with_given_labels(Graph.of(features), probabilities, labels, ("a", "b", "c")) is probabilities
