"""benchmarks/photos_search.py: FixMatch and DebiasPL are searched alike; and what the pages say of it."""

from pathlib import Path

import numpy as np
import torch

from benchmarks.photos_search import SETTINGS, means, recipe_of, smoothed, taught
from debiaspl.training import Choice, Recipe

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "results" / "photos" / "search-alike.json"
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
