"""Folders of photos drawn from known sets, for benchmarks of which photos to label: balanced, or with a long tail."""

import argparse
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.photos import folder, looked_at, origin_of, rated
from debiaspl.encoders import features_of
from debiaspl.features import FeatureTable, TableTask, fit_recipe
from debiaspl.features.fit import LINEAR, enough_steps
from debiaspl.training.method import with_method


def sketched(pixels: torch.Tensor) -> np.ndarray:
    """Mean and contrast of the colours and the amount of detail of each photo, at 8 x 8 pixels."""
    small = torch.cat([F.interpolate(part.float() / 255, size=(8, 8), mode="area") for part in pixels.split(256)])
    grey = small.mean(1)
    detail = (grey.diff(dim=1).abs().mean((1, 2)) + grey.diff(dim=2).abs().mean((1, 2)))[:, None]
    contrast = torch.cat([small.std((2, 3)), detail], 1).add(0.01).log()
    return torch.cat([small.mean((2, 3)), contrast], 1).numpy()


class Drawn:
    """A folder of photos: their features and classes. With ``optimise`` a model has a second classifier for uneven
    shares, as in ``debiaspl train``; without, only the choice of the labels counts."""

    def __init__(self, path: Path, tail: bool, draw: int, optimise: str = "") -> None:
        torch.set_num_threads(1)
        truth, features, sketches = torch.load(path, weights_only=False)
        self.rows = folder(truth, tail, draw)
        self.truth, self.features, self.sketches = truth[self.rows], features[self.rows], sketches[self.rows]
        self.classes, self.seed, self._optimise = int(truth.max()) + 1, draw, optimise
        self.table = FeatureTable(self.features, device=torch.device("cpu"))

    def given(self, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """The labels of these photos, -1 for all others."""
        given = np.full(len(self.truth), -1)
        given[chosen] = self.truth[chosen]
        return given

    def probabilities(self, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """What a model of the labels of these photos says of all photos; 0 for classes that have none."""
        known, given = np.unique(self.truth[chosen]), self.given(chosen)
        labels = torch.from_numpy(np.where(given >= 0, np.searchsorted(known, given), -1))
        found = np.zeros((len(given), self.classes), np.float32)
        if len(known) == 1:
            found[:, known] = 1
        else:
            recipe = with_method(LINEAR.changed(first_classifier="graph", seed=self.seed), "debiaspl")
            recipe = recipe.changed(steps=enough_steps(len(given)), optimise=self._optimise)
            names = tuple(map(str, known))
            fitted = fit_recipe(recipe, self.table, TableTask(labels, names))
            found[:, known] = fitted.probabilities(self.features).numpy()
        return found

    def rated(self, chosen: Sequence[int] | np.ndarray, probabilities: np.ndarray | None = None) -> dict[str, float]:
        found = self.probabilities(chosen) if probabilities is None else probabilities
        return rated(found.argmax(1), self.truth, self.given(chosen))


def encoded(sets: Sequence[str], work: Path) -> dict[str, Path]:
    """By name: a file of the classes, features and sketches of a set, NAME=FOLDER."""
    work.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, _, place in (text.partition("=") for text in sets):
        paths[name] = work / f"{name}-first.pt"
        if not paths[name].exists():
            _, encoder, images = looked_at(Path(place))
            features = features_of(images, encoder, work / "features").values
            torch.save((images.labels.numpy(), features, sketched(images.images)), paths[name])
    return paths


def record(out: Path, tasks: Iterable[tuple[Any, ...]], jobs: int = 1) -> list[dict[str, Any]]:
    """Call each of these functions with its arguments and add the results to a file, after each of them."""
    before = json.loads(out.read_text()) if out.exists() else {"runs": [], "commit": ""}
    runs, commits = before["runs"], dict.fromkeys([*before["commit"].split(), origin_of(())["commit"]])
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for done in [pool.submit(*task) for task in tasks]:
            runs += done.result()
            about = origin_of(sorted({run["draw"] for run in runs}))
            out.write_text(json.dumps({**about, "commit": " ".join(commits), "runs": runs}) + "\n")
            print(len(runs), flush=True)
    return runs


def parsed(text: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--work", type=Path, required=True, help="folder for the features")
    parser.add_argument("--draws", default="0:10", help="from:to")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    return parser
