"""Photos with a frozen encoder: each is encoded once, a table of features is fitted, and one run folder is written."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from debiaspl._measures import Cells
from debiaspl.data import GivenLabels
from debiaspl.data.label_table import read_label_table
from debiaspl.deploy import SavedModel
from debiaspl.deploy.shares import SavedShares
from debiaspl.encoders import Encoder
from debiaspl.features.crosscheck import Candidate, choose, compared, crosscheck
from debiaspl.features.estimate import twins
from debiaspl.features.fit import Fitted, TableTask, fit_recipe
from debiaspl.features.run import (
    EncodedImages,
    class_name_weights,
    encode_images,
    refuse_for_frozen,
    save_fit,
    unmeasured,
)
from debiaspl.features.shares import PHOTOS, count_shares
from debiaspl.photos.check import Check, Outcome, cross_check, methods_to_compare
from debiaspl.training import Recipe, Run
from debiaspl.training.evaluate import Ending, timing


def train_frozen(
    recipe: Recipe, encoder: Encoder, out: Path, resume: bool, resume_command: str, features: Path
) -> Outcome:
    """Fit the classifier of ``encoder``, and check it beside the models that it is compared with. A run that was
    stopped finds the photos that it has encoded, and a finished one is not repeated."""
    run, began = Run.at(out, recipe, resume), time.monotonic()
    if (ended := run.results()) is not None:
        return _outcome(ended)
    protocol = GivenLabels(**recipe.protocol.settings)
    images = protocol.read(recipe.data, recipe.image_size, stream=True)
    refuse_for_frozen(recipe, images)
    with run.begin(recipe):
        encoded = encode_images(images, encoder, features, recipe.name, resume_command)
        images, check = encoded.images, cross_check(encoded.images.counts())
        table = Path(protocol.table) if protocol.table else Path(recipe.data) / "labels.csv"
        rows = read_label_table(table, protocol.columns) if table.is_file() else ()
        how = {row.name: row.asked for row in rows if row.asked}
        candidates, chosen, fitted = _fitted(recipe, encoded, check, [how.get(name, "") for name in images.ids if how])
        ending = _ending(candidates, chosen, fitted, encoded, check)
        ending.more["timing"] = timing(time.monotonic() - began, torch.device("cpu"))
        results = save_fit(run, recipe, encoded, fitted, ending)
    network, (high, wide) = encoded.model(fitted).to(next(encoder.parameters()).device), images.images.shape[2:]
    shares = results.get("shares")
    saved = shares and SavedShares.of({**shares, "temperature": fitted.temperature}, images.num_classes)
    return replace(_outcome(results), model=SavedModel(network, images.classes, images.channels, (high, wide), saved))


def _fitted(
    recipe: Recipe, encoded: EncodedImages, check: Check, asked: list[str]
) -> tuple[list[Candidate], Candidate, Fitted]:
    """The candidates, the one that is used, and its fit to all labels. ``asked``: how each photo was chosen to be
    labeled, as far as the table of labels says."""
    images, table = encoded.images, encoded.table
    recipes, begin = methods_to_compare(recipe, frozen=True), class_name_weights(recipe, encoded)
    task = TableTask(images.labels, images.classes, images.ids, asked=asked, begin=begin)
    if check.folds:
        candidates = crosscheck(recipes, table, task, check.folds)
        chosen = choose(candidates)
        fitted = fit_recipe(recipes[chosen.name], table, task)
        if chosen.calibrated is not None and fitted.shares is not None and fitted.shares.weight:
            fitted = replace(fitted, temperature=chosen.calibrated.temperature)
        return candidates, chosen, fitted
    known, candidates = (images.labels >= 0).nonzero().flatten(), []
    for name, one in recipes.items():  # the last is the recipe itself
        fitted = fit_recipe(one, table, task)
        said = fitted.predict(table.features)[1]
        candidates.append(compared(name, said, images.labels, known, images.num_classes, images.ids))
    return candidates, candidates[-1], fitted


def _ending(
    candidates: list[Candidate], chosen: Candidate, fitted: Fitted, encoded: EncodedImages, check: Check
) -> Ending:
    images, table, found = encoded.images, encoded.table, unmeasured(encoded, fitted)
    known = (images.labels >= 0).nonzero().flatten()
    predicted = torch.bincount(found.label, minlength=images.num_classes)
    in_graph = torch.searchsorted(table.chosen, known)
    copies = [(int(table.chosen[one.row]), one.other) for one in twins(table.rows, in_graph, images.labels[known])]
    more: dict[str, Any] = {
        "check": {
            **check.facts(),
            "predicted": predicted.tolist(),
            "right": sorted(chosen.right_files),
            "mistakes": [list(one) for one in chosen.mistakes],
            "copies": [[images.ids[row], int(images.labels[row]), other] for row, other in copies],
            "candidates": [one.to_json(one is chosen) | {"right": sorted(one.right_files)} for one in candidates],
        },
        "learned_from": [images.ids[row] for row in known.tolist()],
    }
    if fitted.prior is not None:
        more["prior"] = fitted.prior.tolist()
    if (shares := fitted.shares) is not None:
        low, high = shares.interval()
        parts = {"estimate": shares.estimate, "error": shares.error, "low": low, "high": high}
        parts |= {"labels": count_shares(images.labels[known], images.num_classes), "counts": predicted}
        numbers = {name: part.tolist() for name, part in parts.items()}
        more["shares"] = {"optimise": fitted.recipe.optimise, "weight": shares.weight, **numbers}
    if fitted.temperature != 1 and chosen.calibrated is not None:
        more["calibration"] = asdict(chosen.calibrated)
    return Ending(chosen.confusion, check.how, found.to_csv(), more=more)


def _outcome(results: dict[str, Any]) -> Outcome:
    """What was measured, from the results of a run."""
    optimise, size = results["recipe"].get("optimise") or PHOTOS, len(results["recall"])
    checked = results["check"]["candidates"]
    candidates = tuple(
        Candidate(one["name"], Cells.from_json(one["confusion"], size), frozenset(one["right"]), optimise=optimise)
        for one in checked
    )
    chosen = next(one for one, known in zip(candidates, checked, strict=True) if known["chosen"])
    return Outcome(candidates, Check.of(results), chosen, results)
