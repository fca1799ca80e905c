"""Photos with a frozen encoder: each is encoded once, a table of features is fitted, and one run folder is written."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import GivenLabels
from debiaspl.encoders import Encoder
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.crosscheck import Candidate, choose, compared, crosscheck
from debiaspl.features.fit import Fitted, fit_recipe
from debiaspl.features.run import EncodedImages, class_name_weights, encode_images, refuse_for_frozen
from debiaspl.features.saved import save_fit
from debiaspl.photos.check import Check, Outcome, cross_check, methods_to_compare
from debiaspl.training import Recipe, Run
from debiaspl.training.evaluate import Evaluation
from debiaspl.training.results import Ending, timing


def train_frozen(recipe: Recipe, encoder: Encoder, out: Path, resume: bool, resume_command: str) -> Outcome:
    """Fit the classifier of ``encoder``, and check it beside the models that it is compared with. A run that was
    stopped finds the photos that it has encoded, and a finished one is not repeated."""
    run, began = Run.at(out, recipe, resume), time.monotonic()
    if (ended := run.results()) is not None:
        return outcome_of(ended)
    images = GivenLabels(**recipe.protocol.settings).read(recipe.data, recipe.image_size, stream=True)
    refuse_for_frozen(recipe, images)
    with run.begin(recipe):
        encoded = encode_images(images, encoder, out.resolve().parent / FEATURES, recipe.name, resume_command)
        check = cross_check(encoded.images.counts())
        candidates, chosen, fitted, found = _fitted(recipe, encoded, check)
        ending = _ending(candidates, chosen, fitted, found, encoded, check)
        seconds = {"timing": timing(time.monotonic() - began, torch.device("cpu"))}
        results = save_fit(run, recipe, fitted, encoder, encoded.images, replace(ending, more=ending.more | seconds))
    return Outcome(tuple(candidates), check, chosen, results)


def _fitted(
    recipe: Recipe, encoded: EncodedImages, check: Check
) -> tuple[list[Candidate], Candidate, Fitted, Evaluation]:
    """The candidates, the one that is used, its fit to all labels, and its predictions of every photo."""
    images, table = encoded.images, encoded.table
    recipes = methods_to_compare(recipe, frozen=True)
    begin = class_name_weights(recipe, encoded, images.classes)
    everything = table, images.labels, images.classes, images.ids

    def fit(name: str) -> tuple[Fitted, Tensor]:
        own = begin if recipes[name].first_classifier == "text" else None
        fitted = fit_recipe(recipes[name], *everything, begin=own)
        return fitted, fitted.row_probabilities(table)

    if check.folds:
        candidates = crosscheck(recipes, *everything, check.folds, begin)
        chosen = choose(candidates)
        fitted, probabilities = fit(chosen.name)
    else:
        fits = {name: fit(name) for name in recipes}
        known = (images.labels >= 0).nonzero().flatten()
        candidates = [
            compared(name, own.argmax(-1), images.labels, known, images.num_classes, images.ids)
            for name, (_, own) in fits.items()
        ]
        chosen = candidates[-1]
        fitted, probabilities = fits[chosen.name]
    confidence, label = probabilities.max(-1)
    # A prediction for a photo that was learned from is not a measurement, so no label is in the table.
    return candidates, chosen, fitted, Evaluation(images.without_labels(), label, confidence)


def _ending(
    candidates: list[Candidate],
    chosen: Candidate,
    fitted: Fitted,
    found: Evaluation,
    encoded: EncodedImages,
    check: Check,
) -> Ending:
    images = encoded.images
    how = f"cross-checked: each label was predicted by one of {check.folds} models that did not learn from it"
    if not check.folds:
        how = "the labels it was trained with, as there are no others: this says nothing about other photos"
    hidden = replace(found.images, truth=torch.full_like(images.labels, -1))
    more: dict[str, Any] = {
        "check": {
            "kind": "cross-check" if check.folds else "none",
            "folds": check.folds,
            "labels": check.labels,
            "predicted": torch.bincount(found.label, minlength=images.num_classes).tolist(),
            "right": sorted(chosen.right_files),
            "mistakes": [list(one) for one in chosen.mistakes],
            "candidates": [
                {
                    "name": one.name,
                    "confusion": one.confusion,
                    "chosen": one is chosen,
                    "right": sorted(one.right_files),
                }
                for one in candidates
            ],
        },
        "learned_from": [images.ids[row] for row in (images.labels >= 0).nonzero().flatten().tolist()],
    }
    if fitted.prior is not None:
        more["prior"] = fitted.prior.tolist()
    text = replace(found, images=hidden).to_csv()
    return Ending(chosen.confusion, how, text, frozenset(encoded.skipped), more)


def outcome_of(results: dict[str, Any]) -> Outcome:
    """The outcome of a run that has ended, from its results."""
    told = results["check"]
    candidates = tuple(Candidate(one["name"], one["confusion"], frozenset(one["right"])) for one in told["candidates"])
    chosen = next(one for one, said in zip(candidates, told["candidates"], strict=True) if said["chosen"])
    return Outcome(candidates, Check(told["folds"], True, told["labels"]), chosen, results)
