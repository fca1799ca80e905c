"""Which model is handed out, by a paired test on labels that it did not learn from."""

import json
import shutil
from math import comb

import pytest
import torch

from debiaspl import load_model
from debiaspl.deploy.chosen import CHOSEN, chosen_folder, hand_out
from debiaspl.photos.evidence import TrainedCandidate, choose_by_evidence, paired
from debiaspl.training import RunError


def candidate(name, right, folder="", total=40):
    results = {"confusion": [[len(right), total - len(right)], [0, 0]], "test": total, "check": {"right": list(right)}}
    return TrainedCandidate(name, results, folder)


def photos(first, last):
    return [f"{number}.jpg" for number in range(first, last)]


@pytest.mark.parametrize(("more", "less"), [(0, 0), (3, 0), (6, 0), (8, 1), (7, 7), (1, 9)])
def test_the_test_is_that_of_coins(more, less):
    """Written anew: both tails of a fair coin that is thrown once for each label on which the two differ."""
    found = paired(candidate("a", photos(0, 10 + more)), candidate("b", [*photos(0, 10), *photos(30, 30 + less)]))
    assert (found.more, found.less) == (more, less)
    throws, extreme = more + less, max(more, less)
    tail = sum(comb(throws, heads) for heads in range(extreme, throws + 1)) / 2**throws
    assert found.chance == pytest.approx(min(1.0, 2 * tail))
    assert found.significant == (found.chance < 0.05)


@pytest.mark.parametrize(
    ("supervised", "graph", "run", "chosen"),
    [
        (photos(0, 20), photos(0, 22), photos(0, 21), "DebiasPL"),  # nobody can tell
        (photos(0, 26), photos(0, 22), photos(0, 20), "supervised"),  # 6 to 0: 3 % by chance
        (photos(0, 25), photos(0, 22), photos(0, 20), "DebiasPL"),  # 5 to 0: 6 %
        (photos(0, 26), photos(0, 30), photos(0, 20), "graph"),  # both are better, and this one more so
        (photos(0, 20), photos(0, 20), photos(0, 30), "DebiasPL"),
    ],
)
def test_the_run_is_handed_out_unless_another_is_significantly_better(supervised, graph, run, chosen):
    three = [candidate("supervised", supervised, "s"), candidate("graph", graph, "g"), candidate("DebiasPL", run)]
    assert choose_by_evidence(three, checked=True).name == chosen
    assert choose_by_evidence(three, checked=False).name == "DebiasPL"


def test_results_of_an_earlier_version_tell_nothing():
    old = TrainedCandidate(
        "supervised", {"confusion": [[40, 0], [0, 0]], "test": 40, "check": {"kind": "cross-check"}}, "s"
    )
    assert choose_by_evidence([old, candidate("DebiasPL", photos(0, 20))], checked=True).name == "DebiasPL"


def test_a_run_names_the_folder_whose_model_is_used(tmp_path):
    assert chosen_folder(tmp_path) == tmp_path
    hand_out(tmp_path, "supervised")
    assert chosen_folder(tmp_path) == tmp_path / "supervised"
    hand_out(tmp_path, "")
    assert not (tmp_path / CHOSEN).exists()


@pytest.mark.parametrize(
    "text", ["{", "{}", "[1]", '{"folder": "../other"}', '{"folder": "/tmp"}', '{"folder": ""}', '{"folder": ".."}']
)
def test_a_damaged_choice_is_refused_and_never_leads_out_of_the_run(tmp_path, text):
    (tmp_path / CHOSEN).write_text(text)
    with pytest.raises(RunError, match="is damaged, expected"):
        chosen_folder(tmp_path)


def test_all_candidates_are_in_the_table_and_each_knows_which_labels_it_had_right(trained):
    ran, run = trained
    for name in ("supervised", "graph", "DebiasPL"):
        assert any(line.startswith(name) for line in ran.output.splitlines()), ran.output
    for folder in (run, run / "supervised", run / "graph"):
        results = json.loads((folder / "results.json").read_text())
        assert len(results["check"]["right"]) == sum(row[k] for k, row in enumerate(results["confusion"]))
        assert sum(results["check"]["predicted"]) == results["unlabeled"] + sum(results["labels"])
    assert "predict, next and export use this model: DebiasPL." in ran.output


def test_the_model_that_was_chosen_is_the_one_that_is_loaded(trained, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained[1], run)
    own, other = (load_model(folder).network.state_dict()["head.weight"] for folder in (run, run / "supervised"))
    assert not torch.equal(own, other)
    hand_out(run, "supervised")
    assert torch.equal(load_model(run).network.state_dict()["head.weight"], other)


def test_a_supervised_run_that_is_asked_for_does_not_look_at_the_other_photos(place):
    from debiaspl.encoders import load_encoder
    from debiaspl.photos.start import choose_with_start
    from debiaspl.photos.survey import survey

    photos, name = survey(place / "photos", place / "labels.csv"), str(place / "encoder")
    encoder = name, load_encoder(name)
    supervised = ["algorithm=supervised", "correction=none"]
    for settings, first in (([], "graph"), (supervised, "random"), ([*supervised, "first_classifier=graph"], "graph")):
        assert choose_with_start(photos, "cpu", encoder, settings, None)[0].first_classifier == first
