"""benchmarks/long_tail.py: plans, and the order in which their runs are made."""

import json
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import long_tail
from benchmarks.long_tail import ByCounts, read_plan
from debiaspl.debias import Debiaser

PLANNED = Path(__file__).parent.parent.parent / "results" / "long-tail" / "target-plan.txt"
PLAN = """
# A comment.
start: digits-lt20-10pct --method moco steps=3
search-a from start: digits-lt20-10pct steps=3 strength=0.5
search-b from start: digits-lt20-10pct steps=3 strength=1
fold from start: digits-lt20-10pct {best:search-} seed=7
"""


def carry_out(monkeypatch, folder, plan=PLAN, *options):
    (folder / "plan.txt").write_text(plan)
    where = ["--runs", str(folder / "runs"), "--lines", str(folder / "lines.jsonl")]
    monkeypatch.setattr(sys, "argv", ["long_tail", str(folder / "plan.txt"), *where, *options])
    long_tail.main()
    return [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_plan_is_made_once_and_a_fold_has_the_best_settings(monkeypatch, tmp_path):
    searched = carry_out(monkeypatch, tmp_path, PLAN, "--only", "search-a")
    assert [line["name"] for line in searched] == ["start", "search-a"]
    lines = {line["name"]: line for line in carry_out(monkeypatch, tmp_path, PLAN, "--commit", "abc")}
    assert list(lines) == ["start", "search-a", "search-b", "fold"]  # start and search-a were not repeated
    best = max((lines["search-a"], lines["search-b"]), key=lambda line: line["accuracy"])
    strength = "strength=0.5" if best["name"] == "search-a" else "strength=1"
    assert strength in lines["fold"]["command"]
    assert lines["fold"]["seed"] == 7
    assert "start=" in lines["fold"]["command"]
    assert lines["fold"]["commit"] == "abc"
    confusion = lines["fold"]["confusion"]
    assert sum(confusion[3]) == 50
    assert lines["fold"]["recall"][3] == confusion[3][3] / 50


@pytest.mark.slow
def test_a_lost_start_is_trained_again_and_a_failed_run_does_not_stop_others(monkeypatch, tmp_path):
    plan = PLAN.replace("strength=0.5", "strength=-1")
    monkeypatch.setattr(long_tail, "PAUSE", 0.01)
    carry_out(monkeypatch, tmp_path, plan, "--only", "search-b")
    (tmp_path / "runs" / "start").rename(tmp_path / "lost")
    names = [line["name"] for line in carry_out(monkeypatch, tmp_path, plan)]
    assert names == ["start", "search-b", "start", "fold"]


@pytest.mark.parametrize("line", ["a from b: digits-10", "a digits-10", "a: digits-10 {best:search-}"])
def test_a_wrong_line_is_named(line):
    with pytest.raises(SystemExit, match="line 1"):
        read_plan(line)


def test_the_plan_of_the_long_tails_has_recipes():
    jobs = read_plan(PLANNED.read_text())
    recipes = {name: job.recipe(Path("runs")) for name, job in jobs.items() if job.compared is None}
    tails = [recipe for recipe in recipes.values() if recipe.protocol.name == "long-tail"]
    assert tails
    assert all(recipe.protocol.settings["labeled_also_unlabeled"] for recipe in tails)
    begun = [job for job in jobs.values() if job.start]
    assert all(jobs[job.start].cell == job.cell for job in begun)
    assert all(recipes[job.start].seed == recipes[job.name].seed for job in begun if not job.compared)


def test_by_counts_differs_from_the_debiaser_in_the_labeled_loss_alone():
    logits, plain = torch.randn(6, 3), Debiaser(3, 0.5)
    counted = ByCounts(3, [8, 4, 2], 0.5, labeled_strength=2.0)
    assert torch.equal(counted(logits), plain(logits))
    assert torch.equal(counted.margin(logits), plain.margin(logits))
    shares = torch.tensor([8.0, 4.0, 2.0]) / 14
    assert torch.allclose(counted.labeled_margin(logits), logits + 2 * shares.log(), atol=1e-6)
