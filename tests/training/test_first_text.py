"""A classifier that begins with the class names, as the text side of a CLIP or SigLIP reads them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from debiaspl import load_model
from debiaspl.cli import app
from debiaspl.data import ImageSet, Task
from debiaspl.data.decode import decode
from debiaspl.encoders import EncoderNetwork, load_encoder
from debiaspl.encoders.text import TextClassifier
from debiaspl.features.fit import LINEAR
from debiaspl.features.run import class_name_weights, encode_images, frozen, train_encoded
from debiaspl.models import LinearNetwork, scale
from debiaspl.photos.frozen import train_frozen
from debiaspl.training import Choice, Recipe, Run, classifier as classifier_module
from debiaspl.training.classifier import text_head
from debiaspl.training.step import Step
from debiaspl.training.tasks import task_of
from tests.data.photos import jpeg, patch
from tests.zeroshot.models import save_model

pytest.importorskip("transformers")
CPU, CLASSES = torch.device("cpu"), ("red_flower", "china temple")


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    """Thirty photos, eight of them labeled."""
    root = tmp_path_factory.mktemp("text")
    (root / "photos").mkdir()
    rows = ["file_name,label"]
    for number in range(30):
        (root / "photos" / f"{number:02d}.jpg").write_bytes(jpeg(patch(number % 2, number, 24)))
        rows += [f"{number:02d}.jpg,{CLASSES[number % 2]}"] * (number < 8)
    (root / "labels.csv").write_text("\n".join(rows) + "\n")
    return root


def recipe_of(photos: Path, model: Path, is_frozen: bool = True) -> Recipe:
    base = Recipe(
        "text",
        data=str(photos / "photos"),
        image_size=24,
        protocol=Choice("given", {"table": str(photos / "labels.csv")}),
        algorithm=Choice("fixmatch", {"joint": False}),
        labeled_batch=4,
        unlabeled_batch=8,
    )
    made = frozen(base, 30, load_encoder(str(model)))
    if not is_frozen:
        settings = {**made.network.settings, "frozen": False}
        made = replace(made, network=Choice("encoder", settings), strong=Choice("fixmatch"))
    return replace(made, steps=2, first_classifier="text")


def test_the_logits_are_scale_times_cosine_where_lengths_are_equal():
    """x = mean + stretch z, where z is orthogonal to the mean: all x have one length, and the head is exact."""
    generator = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(torch.randn(3, 6, generator=generator, dtype=torch.float64), dim=-1)
    mean = torch.tensor([2.0, 0, 0, 0, 0, 0], dtype=torch.float64)
    z = torch.nn.functional.normalize(torch.randn(5, 6, generator=generator, dtype=torch.float64)[:, 1:], dim=-1)
    z = torch.cat((torch.zeros(5, 1, dtype=torch.float64), z), 1)
    features = mean + 1.5 * z
    weight, bias = text_head(TextClassifier(directions, 30.0), mean, 1.5, (2.0**2 + 1.5**2) ** 0.5)
    for row, found in zip(features, z @ weight.T + bias, strict=True):
        for direction, logit in zip(directions, found, strict=True):
            cosine = (row * direction).sum() / (row.square().sum().sqrt() * direction.square().sum().sqrt())
            assert float(logit) == pytest.approx(30 * float(cosine))


@pytest.mark.parametrize("kind", ["clip", "siglip"])
@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_run_begins_with_what_the_model_itself_says(photos, tmp_path, kind, is_frozen):
    from debiaspl.encoders.templates import TEMPLATES
    from debiaspl.zeroshot.teacher import ClipTeacher, open_photos

    model = save_model(tmp_path / kind, kind)
    recipe = recipe_of(photos, model, is_frozen)
    task = task_of(recipe)
    if is_frozen:
        encoder = load_encoder(str(model), image_size=recipe.network.settings["architecture"]["image_size"])
        made = encode_images(task.every_image(), encoder, tmp_path / "features", "run", "again")
        linear = LinearNetwork(encoder.num_features, 2)
        linear.scaling = made.table.scaling
        network = EncoderNetwork.of(encoder, linear)
        weights = class_name_weights(recipe, made)(made.images.labels)
        network.load_state_dict(network.state_dict() | weights)
    else:
        network = Step(recipe, task, CPU).student.eval()
    teacher, names = ClipTeacher(str(model), tmp_path / "features", CPU), ("china temple", "red flower")
    images = open_photos(photos / "photos", names)
    own = teacher.predict(images, names, TEMPLATES["general"])[0].log()
    pictures = torch.stack([scale(decode(photos / "photos" / name, (24, 24))[None])[0] for name in images.ids])
    with torch.no_grad():
        found = network(pictures).log_softmax(-1)
    gaps = [(rows[:, 0] - rows[:, 1]).double() for rows in (own, found)]
    assert gaps[0].std() > 0.05
    # The features differ in length, which a linear classifier cannot divide by, and the photos were read at 24 pixels.
    assert float(torch.corrcoef(torch.stack(gaps))[0, 1]) > 0.9
    assert float((gaps[0] - gaps[1]).abs().mean()) < 0.5 * float(gaps[0].abs().mean())


def test_the_finished_model_is_an_encoder_with_a_linear_classifier(photos, tmp_path):
    train_encoded(recipe_of(photos, save_model(tmp_path / "clip", "clip")), tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert isinstance(model.network.head, torch.nn.Linear)
    assert not any("text" in name for name in model.network.state_dict())
    assert set(model.classes) == set(CLASSES)


@pytest.mark.parametrize("is_frozen", [True, False])
def test_coop_learns_its_words_from_labels_of_the_fold_alone(photos, tmp_path, is_frozen, monkeypatch):
    seen = []
    original = classifier_module.learned_text

    def watched(source, classes, features, labels, seed):
        seen.append(labels.tolist())
        return original(source, classes, features, labels, seed, epochs=2)

    monkeypatch.setattr(classifier_module, "learned_text", watched)
    recipe = replace(recipe_of(photos, save_model(tmp_path / "clip", "clip"), is_frozen), first_classifier="coop")
    if is_frozen:
        train_frozen(recipe, load_encoder(str(tmp_path / "clip")), tmp_path / "run", False, "again", tmp_path / "kept")
        *folds, last = map(len, seen)
        assert sum(8 - count for count in folds) == 8  # without the labels of their fold
        assert last == 8
    else:
        Step(recipe, task_of(recipe), CPU)
        assert sorted(seen[0]) == [0] * 4 + [1] * 4


def test_a_model_that_reads_no_texts_is_refused_before_anything_is_written(photos, tmp_path):
    from tests.encoders.tiny import save

    save("vit", tmp_path / "vit")
    recipe = recipe_of(photos, tmp_path / "vit")
    with pytest.raises(ValueError, match="cannot read text"):
        train_encoded(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    vectors = ImageSet(torch.eye(4), torch.tensor([0, 1, 0, 1]), CLASSES)
    task = Task(vectors, vectors.without_labels(), vectors)
    with pytest.raises(ValueError, match="cannot read text"):
        Step(replace(LINEAR, first_classifier="text"), task, CPU)


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "expected"), [((), "text"), (("--set", "first_classifier=random"), "random")])
def test_it_is_the_default_where_the_encoder_reads_texts(photos, tmp_path, settings, expected):
    model, out = save_model(tmp_path / "clip", "clip"), tmp_path / "run"
    arguments = ["train", photos / "photos", "--labels", photos / "labels.csv", "--encoder", model, "--out", out]
    arguments += ["--device", "cpu", "--set", "steps=3", "--set", "labeled_batch=4", *settings]
    ran = CliRunner().invoke(app, list(map(str, arguments)))
    assert ran.exit_code == 0, ran.output
    assert Run(out).recipe().first_classifier == expected
