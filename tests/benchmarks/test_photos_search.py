"""benchmarks/photos_search.py: FixMatch and DebiasPL are searched alike; and what the pages say of it."""

import json
from pathlib import Path
from statistics import mean

import numpy as np
import torch

from benchmarks.photos_search import SETTINGS, means, recipe_of, smoothed, taught
from debiaspl.report.intervals import mean_interval
from debiaspl.training import Choice, Recipe

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "results" / "photos" / "search-both.json"
BASE = Recipe("some", algorithm=Choice("fixmatch", {"threshold": 0.7, "joint": False}), first_classifier="graph")


def test_a_setting_differs_by_the_debiaser_alone():
    for settings in SETTINGS.values():
        plain, debiased = (recipe_of(BASE, strength, settings).to_json() for strength in (0.0, 0.5))
        assert plain.pop("correction") == {"name": "none", "settings": {}}
        assert debiased.pop("correction")["settings"]["strength"] == 0.5
        assert plain == debiased


def test_the_surer_half_of_each_class_counts_as_labeled():
    given = np.array([0, -1, -1, -1, -1, 1])
    spread = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9], [0.0, 1.0]])
    assert taught(given, spread).tolist() == [0, 0, -1, -1, 1, 1]


def test_smoothed_features_are_half_those_of_ten_neighbours():
    values = torch.randn(30, 3, 8, generator=torch.Generator().manual_seed(0))
    units = values[:, 0] / values[:, 0].norm(dim=-1, keepdim=True)
    near = sorted(range(1, 30), key=lambda other: -float(units[0] @ units[other]))[:10]
    expected = (values[0] + values[near, 0].mean(0)) / 2
    assert torch.allclose(smoothed(values)[0], expected, atol=1e-6)


def test_cells_count_alike_however_many_draws_they_have():
    cell = {"strength": 0.0, "setting": "base", "kind": "balanced", "labels": 5}
    runs = [{**cell, "data": "a", "macro": value, "accuracy": value} for value in (10.0, 20.0)]
    runs.append({**cell, "data": "b", "macro": 45.0, "accuracy": 45.0})
    assert means(runs) == {0.0: {"base": {"macro": 30.0, "accuracy": 30.0}}}


def searched() -> dict[float, dict[str, dict[tuple, dict]]]:
    """Runs by strength, setting and the folder they saw."""
    found: dict[float, dict[str, dict[tuple, dict]]] = {}
    for run in json.loads(FILE.read_text())["runs"]:
        folder = tuple(run[key] for key in ("data", "kind", "labels", "draw"))
        found.setdefault(run["strength"], {}).setdefault(run["setting"], {})[folder] = run
    return found


def gain(strength: float, setting: str, than: str, measure: str = "macro") -> tuple[float, float, float]:
    ours, theirs = (searched()[strength][name] for name in (setting, than))
    values = [run[measure] - theirs[folder][measure] for folder, run in ours.items()]
    return mean(values), *mean_interval(values)


def test_both_were_tried_with_the_same_settings_on_the_same_folders():
    found = searched()
    assert set(found) == {0.0, 0.5}
    tried = {strength: {name: set(runs) for name, runs in settings.items()} for strength, settings in found.items()}
    assert tried[0.0] == tried[0.5]
    assert "threshold 0.7" in tried[0.5], "strength 0.5 and threshold 0.7 together, which is what train takes"
    assert {folder[3] for folder in tried[0.0]["base"]} == {100}


def points(found: tuple[float, float, float]) -> str:
    return f"{found[0]:+.1f} ({found[1]:+.1f} to {found[2]:+.1f})".replace("-0.0 (", "0.0 (").replace("+0.0 (", "0.0 (")


def best(strength: float) -> str:
    settings = searched()[strength]
    return max(settings, key=lambda name: mean(run["macro"] for run in settings[name].values()))


def test_what_is_said_of_the_search_holds():
    page = " ".join((ROOT / "docs" / "own-photos.md").read_text().split())
    assert f"tried {len(searched()[0.0])} settings for FixMatch and DebiasPL alike" in page
    assert f"on {len(searched()[0.0]['base'])} folders of draw 100" in page
    assert (best(0.0), best(0.5)) == ("base + 0.5 graph", "base + 0.25 graph")
    assert gain(0.0, best(0.0), "threshold 0.7")[1] < 0, (
        "no setting of FixMatch is significantly better by macro accuracy"
    )
    assert gain(0.5, best(0.5), "threshold 0.7")[1] < 0
    assert not [name for name in searched()[0.0] if gain(0.0, name, "threshold 0.7")[1] > 0]
    for strength in (0.0, 0.5):
        assert points(gain(strength, best(strength), "threshold 0.7")) in page
        for measure in ("macro", "accuracy"):
            assert points(gain(strength, "base", "threshold 0.7", measure)) in page


def test_what_is_said_of_fixmatch_with_its_own_threshold_holds():
    page = " ".join((ROOT / "docs" / "own-photos.md").read_text().split())
    keys = "data", "kind", "labels", "draw"
    file = json.loads((ROOT / "results" / "photos" / "fixmatch.json").read_text())
    runs = json.loads((ROOT / "results" / "photos" / "cells.json").read_text())["runs"]
    for measure in ("macro", "accuracy"):
        ours = {tuple(run[key] for key in keys): run[measure] for run in file["runs"]}
        shown = {tuple(run[key] for key in keys): run[measure] for run in runs if run["method"] == "FixMatch"}
        assert len(ours) == 18 * len(file["draws"])
        by_draw = [mean(ours[key] - shown[key] for key in ours if key[3] == draw) for draw in file["draws"]]
        low, high = mean_interval(by_draw)
        assert low < 0 < high
        assert points((mean(by_draw), low, high)) in page
        if measure == "macro":
            own, other = mean(ours.values()), mean(shown[key] for key in ours)
            assert f"it has {own:.1f} by macro accuracy with 0.8 and {other:.1f} with 0.7" in page
