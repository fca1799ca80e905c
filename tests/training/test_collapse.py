"""Real runs on digits: those that collapse are told of, everywhere, and healthy ones are not."""

import shutil
from pathlib import Path

import pytest

from debiaspl.recipes import RECIPES
from debiaspl.report.runs import read_run, runs_values
from debiaspl.training import train
from debiaspl.training.step import Step
from tests.training.tiny import TINY, changed, log, outcome

SIZE = ("unlabeled_batch=128", "labeled_batch=4", "network.width=8", "per_class=10")
BASE = changed(TINY, *SIZE, "average_decay=0.95", "average_statistics=true", "checkpoint_every=100", "correction=none")
SWAV = changed(BASE, "algorithm=swav", "steps=400", "learning_rate=0.03", "prototypes=64", "code_temperature=0.02")
SIMCLR = changed(BASE, "algorithm=simclr", "steps=200", "learning_rate=0.1")
MOCO = changed(BASE, "algorithm=moco", "steps=400", "learning_rate=0.03", "memory=1024", "temperature=0.1")
# Labels count for nothing beside a contrast of that weight: it is as good as self-supervised.
UNLABELED = ("algorithm=contrastmatch", "labels_from=0.99", "contrast_weight=10000", "learning_rate=0.00003")
CONTRAST = changed(BASE, *UNLABELED, "steps=200", "temperature=0.05", "health_every=10")


def copy_at(monkeypatch: pytest.MonkeyPatch, step: int, folder: Path, copy: Path) -> None:
    """Copy the run's folder before that step: what would be left of it, were it killed there."""
    original = Step.__call__

    def copying(self: Step, number: int) -> None:
        if number == step:
            shutil.copytree(folder, copy)
        original(self, number)

    monkeypatch.setattr(Step, "__call__", copying)


@pytest.mark.slow(seconds=60)
def test_a_slow_collapse_is_told_in_the_log_the_results_the_terminal_and_the_report(tmp_path, capsys, monkeypatch):
    """Codes that are nearly alike: no feature is learned, and directions are lost. As the lower temperature, it ends
    far above random weights."""
    copy_at(monkeypatch, 350, tmp_path / "bad", tmp_path / "killed")
    bad = train(changed(SWAV, "code_temperature=0.05"), tmp_path / "bad")
    monkeypatch.undo()
    told = capsys.readouterr().err
    (warning,) = bad["warnings"]
    assert warning["kind"] == "collapsing"
    assert warning["step"] < 300  # early enough to stop it
    assert "code_temperature" in warning["todo"]
    lines = [line for line in log(tmp_path / "bad") if "warning" in line]
    assert [(line["step"], line["warning"]) for line in lines] == [
        (warning["step"], {name: warning[name] for name in ("kind", "fact", "todo")})
    ]
    assert told == f"warning: tiny, step {warning['step']:,}: {warning['fact']} {warning['todo']}\n"  # and said once
    page = runs_values([read_run(tmp_path / "bad")], RECIPES)
    assert [page["findings"][0][name] for name in ("part", "fact")] == ["health", warning["fact"]]
    assert page["runs"][0]["curves"]["health"]["step"] == list(range(0, 401, 20))

    # As a kill leaves it: the warning is in the log, and in the checkpoint that it goes on from.
    train(changed(SWAV, "code_temperature=0.05"), tmp_path / "killed", resume=True)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "bad")

    good = train(SWAV, tmp_path / "good")
    assert "warnings" not in good
    assert good["accuracy"] > bad["accuracy"] + 0.15


@pytest.mark.slow(seconds=20)
def test_a_whole_collapse_is_told(tmp_path, capsys):
    """A labeled image a step at a high learning rate: in the end all images are alike."""
    wild = ("labeled_batch=1", "contrast_weight=1", "learning_rate=0.2", "temperature=0.2", "relations=1")
    bad = train(changed(CONTRAST, *wild, "relation_temperature=0.02"), tmp_path / "bad")
    assert bad["warnings"][-1]["kind"] == "collapsed"
    assert len(bad["warnings"]) == capsys.readouterr().err.count("warning: ") <= 2
