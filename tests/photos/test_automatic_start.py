"""``debiaspl train PHOTOS`` with many photos: features first, without labels, then everything else begins with them."""

import hashlib

import pytest

from debiaspl.photos import choose, run
from debiaspl.photos.choose import AUTOMATIC_FROM, choose_with_start, starts_by_itself
from debiaspl.recipes.lengths import START
from debiaspl.training.log import ProgressLine
from tests.photos.digits import write_digits
from tests.photos.test_choose import made
from tests.training.tiny import stop_at
from tests.typed import done, refused, results_of

STEPS = ("--set", "steps=6", "--set", "network.width=4", "--set", "checkpoint_every=2")


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Enough of them, on this machine."""
    monkeypatch.setitem(AUTOMATIC_FROM, "cpu", 60)
    real = choose.automatic_start
    monkeypatch.setattr(choose, "automatic_start", lambda *asked: real(*asked).changed(steps=6, checkpoint_every=2))
    return write_digits(tmp_path / "photos", labeled=12)


def asked(photos, out, *more):
    return "train", photos, "--device", "cpu", "--out", out, *STEPS, *more


def test_features_are_learned_first_and_all_runs_begin_with_them(photos, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(ProgressLine, "show", lambda self, *_: told.append(self.part))
    out = tmp_path / "run"
    ran = done(*asked(photos, out))
    assert "1 of 2: learn features without labels, 6 steps; to skip this: --set start=. 2 of 2: A small" in ran
    said = list(dict.fromkeys(part for part in told if part))
    assert said[0] == "1 of 2: learning features"
    assert said[1] == "2 of 2: run 1 of 8 (supervised, fold 1 of 3)"
    assert said[-1] == "2 of 2: run 8 of 8 (debiaspl)"
    assert results_of(out / "start")["labels"] == []  # the labels of the folds have taught it nothing
    digest = hashlib.sha256((out / "start" / "model.safetensors").read_bytes()).hexdigest()
    parts = [out, out / "supervised", *(out / "check").iterdir()]
    assert len(parts) == 8
    assert {results_of(part)["start"] for part in parts} == {digest}
    network = results_of(out)["recipe"]["network"]
    assert network == results_of(out / "start")["recipe"]["network"] == {"name": "small", "settings": {"width": 4}}


def test_it_can_be_turned_off_and_what_else_is_set_reaches_it(photos, tmp_path):
    done(*asked(photos, tmp_path / "off", "--set", "start="))
    assert not (tmp_path / "off" / "start").exists()
    assert "start" not in results_of(tmp_path / "off")
    done(*asked(photos, tmp_path / "moco", "--set", "algorithm=moco", "--set", "correction=none"))
    assert not (tmp_path / "moco" / "start").exists()
    done(*asked(photos, tmp_path / "on", "--set", "seed=3", "--set", "flip=false", "--set", "image_size=12"))
    recipe = results_of(tmp_path / "on" / "start")["recipe"]
    assert (recipe["seed"], recipe["flip"], recipe["image_size"]) == (3, False, 12)
    done(*asked(photos, tmp_path / "given", "--set", f"start={tmp_path / 'on' / 'start'}"))
    assert not (tmp_path / "given" / "start").exists()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [0, 3])
def test_both_parts_go_on_after_a_stop_to_the_same_bits(photos, tmp_path, monkeypatch, stop):
    done(*asked(photos, tmp_path / "whole"))
    real, calls = run.train_as, []

    def stopped(options, recipe, *arguments):
        calls.append(options.part)
        if len(calls) > stop:
            with monkeypatch.context() as patch:
                stop_at(patch, 3)
                return real(options, recipe, *arguments)
        return real(options, recipe, *arguments)

    # The start that is recorded is the path of its folder: stop in the same place.
    (tmp_path / "whole").rename(tmp_path / "kept")
    monkeypatch.setattr(run, "train_as", stopped)
    assert "stopped for the test" in refused(*asked(photos, tmp_path / "whole"))
    assert ("learning features" in calls[-1]) == (stop == 0)
    monkeypatch.setattr(run, "train_as", real)
    assert f"Resuming {tmp_path / 'whole'}." in done(*asked(photos, tmp_path / "whole", "--resume"))
    for part in ("start", "supervised", ""):
        weights = [(tmp_path / run / part / "model.safetensors").read_bytes() for run in ("whole", "kept")]
        assert weights[0] == weights[1], part
    done(*asked(photos, tmp_path / "whole", "--resume"))  # has ended: nothing is repeated


def test_only_where_there_are_many_photos_and_a_gpu():
    enough = AUTOMATIC_FROM["cuda"]
    assert starts_by_itself(made(5, 5, unlabeled=enough - 10), "cuda")
    assert not starts_by_itself(made(5, 5, unlabeled=enough - 11), "cuda")
    assert not starts_by_itself(made(enough, 5, unlabeled=0), "cuda")  # nothing is unlabeled
    assert not starts_by_itself(made(5, 5, unlabeled=10**6), "cpu")
    recipe, start = choose_with_start(made(5, 5, unlabeled=enough), "cuda", None, [], None)
    assert start is not None
    assert (recipe.start, recipe.network, recipe.image_size) == ("runs/photos/start", start.network, start.image_size)
    assert (recipe.learning_rate, recipe.algorithm.settings["labels_from"]) == (START.learning_rate, 0.02)
    assert choose_with_start(made(5, 5, unlabeled=enough), "cuda", None, ["start="], None)[1] is None


def test_a_run_that_was_begun_without_is_not_gone_on_with(photos, tmp_path):
    done(*asked(photos, tmp_path / "run", "--set", "start="))
    assert "start: not set" in refused(*asked(photos, tmp_path / "run", "--resume"))
