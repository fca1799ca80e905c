"""Photos with a frozen encoder: each is encoded once, a table of features is fitted, and one run folder is written."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._confusion import Cells
from debiaspl.data import GivenLabels, ImageSet
from debiaspl.data.label_table import asked_for
from debiaspl.encoders import Encoder
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.blend import PHOTOS
from debiaspl.features.crosscheck import Candidate, choose, compared, crosscheck
from debiaspl.features.fit import Fitted, fit_recipe
from debiaspl.features.run import EncodedImages, class_name_weights, encode_images, refuse_for_frozen, unmeasured
from debiaspl.features.saved import save_fit
from debiaspl.features.shares import count_shares
from debiaspl.features.suspects import twins
from debiaspl.photos.check import TRAINED_WITH, Check, Outcome, cross_check, methods_to_compare
from debiaspl.training import Recipe, Run
from debiaspl.training.classifier import NAMED
from debiaspl.training.evaluate import Ending, timing


def train_frozen(
    recipe: Recipe, encoder: Encoder, out: Path, resume: bool, resume_command: str, features: Path | None = None
) -> Outcome:
    """Fit the classifier of ``encoder``, and check it beside the models that it is compared with. A run that was
    stopped finds the photos that it has encoded, and a finished one is not repeated."""
    run, began = Run.at(out, recipe, resume), time.monotonic()
    if (ended := run.results()) is not None:
        return outcome_of(ended)
    images = GivenLabels(**recipe.protocol.settings).read(recipe.data, recipe.image_size, stream=True)
    refuse_for_frozen(recipe, images)
    with run.begin(recipe):
        encoded = encode_images(
            images, encoder, features or out.resolve().parent / FEATURES, recipe.name, resume_command
        )
        check = cross_check(encoded.images.counts())
        candidates, chosen, fitted = _fitted(recipe, encoded, check)
        ending = _ending(candidates, chosen, fitted, encoded, check)
        seconds = {"timing": timing(time.monotonic() - began, torch.device("cpu"))}
        results = save_fit(run, recipe, fitted, encoder, encoded.images, replace(ending, more=ending.more | seconds))
    return Outcome(tuple(candidates), check, chosen, results)


def _fitted(recipe: Recipe, encoded: EncodedImages, check: Check) -> tuple[list[Candidate], Candidate, Fitted]:
    """The candidates, the one that is used, and its fit to all labels."""
    images, table = encoded.images, encoded.table
    recipes = methods_to_compare(recipe, frozen=True)
    begin = class_name_weights(recipe, encoded, images.classes)
    everything = table, images.labels, images.classes, images.ids
    asked = _asked(recipe, images)

    def fit(name: str) -> Fitted:
        own = begin(images.labels) if begin and recipes[name].first_classifier in NAMED else None
        return fit_recipe(recipes[name], *everything, begin=own, asked=asked)

    if check.folds:
        candidates = crosscheck(recipes, *everything, check.folds, begin, None, asked)
        chosen = choose(candidates)
        fitted = fit(chosen.name)
        if chosen.calibrated is not None and fitted.shares is not None and fitted.shares.weight:
            fitted = replace(fitted, temperature=chosen.calibrated.temperature)
        return candidates, chosen, fitted
    fits = {name: fit(name) for name in recipes}
    known = (images.labels >= 0).nonzero().flatten()
    predicted = {name: fitted.predict(table.features)[1] for name, fitted in fits.items()}
    candidates = [
        compared(name, label, images.labels, known, images.num_classes, images.ids) for name, label in predicted.items()
    ]
    return candidates, candidates[-1], fits[candidates[-1].name]


def _asked(recipe: Recipe, images: ImageSet) -> list[str]:
    """How each photo was chosen to be labeled, as far as the table of labels says."""
    protocol = GivenLabels(**recipe.protocol.settings)
    table = Path(protocol.table) if protocol.table else Path(recipe.data) / "labels.csv"
    found = asked_for(table, protocol.columns) if table.is_file() else {}
    return [found.get(name, "") for name in images.ids] if found else []


def _ending(
    candidates: list[Candidate], chosen: Candidate, fitted: Fitted, encoded: EncodedImages, check: Check
) -> Ending:
    images, found = encoded.images, unmeasured(encoded.images, fitted, encoded.table)
    known = (images.labels >= 0).nonzero().flatten()
    copies = twins(encoded.table.rows, known, images.labels[known])
    kind, how = "none", TRAINED_WITH
    if check.folds:
        kind = "cross-check"
        how = f"cross-checked: each label was predicted by one of {check.folds} models that did not learn from it"
    more: dict[str, Any] = {
        "check": {
            "kind": kind,
            "folds": check.folds,
            "labels": check.labels,
            "predicted": torch.bincount(found.label, minlength=images.num_classes).tolist(),
            "right": sorted(chosen.right_files),
            "mistakes": [list(one) for one in chosen.mistakes],
            "copies": [[images.ids[one.row], int(images.labels[one.row]), one.other] for one in copies],
            "candidates": [
                {
                    "name": one.name,
                    "confusion": one.confusion.to_json(),
                    "chosen": one is chosen,
                    "right": sorted(one.right_files),
                }
                for one in candidates
            ],
        },
        "learned_from": [images.ids[row] for row in known.tolist()],
    }
    if fitted.prior is not None:
        more["prior"] = fitted.prior.tolist()
    if fitted.shares is not None:
        more["shares"] = _shares(fitted, images.labels, found.label)
    if fitted.temperature != 1 and chosen.calibrated is not None:
        more["calibration"] = chosen.calibrated.to_json()
    return Ending(chosen.confusion, how, found.to_csv(), frozenset(encoded.skipped), more)


def _shares(fitted: Fitted, labels: Tensor, predicted: Tensor) -> dict[str, Any]:
    """The estimated class shares of the unlabeled photos, beside those of the labels and the predictions of all
    photos, which other folders are compared with."""
    shares, size = fitted.shares, fitted.network.head.out_features
    assert shares is not None
    low, high = shares.interval()
    parts = {"estimate": shares.estimate, "error": shares.error, "low": low, "high": high}
    return {
        "optimise": fitted.recipe.optimise,
        "weight": shares.weight,
        **{name: part.tolist() for name, part in parts.items()},
        "labels": count_shares(labels[labels >= 0], size).tolist(),
        "counts": torch.bincount(predicted, minlength=size).tolist(),
    }


def outcome_of(results: dict[str, Any]) -> Outcome:
    """The outcome of a run that has ended, from its results."""
    told = results["check"]
    size = len(results["recall"])
    candidates = tuple(
        Candidate(
            one["name"],
            Cells.from_json(one["confusion"], size),
            frozenset(one["right"]),
            optimise=results["recipe"].get("optimise") or PHOTOS,
        )
        for one in told["candidates"]
    )
    chosen = next(one for one, said in zip(candidates, told["candidates"], strict=True) if said["chosen"])
    return Outcome(candidates, Check(told["folds"], True, told["labels"]), chosen, results)
