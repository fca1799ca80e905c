"""Writes a fit as a run folder: a model for images, with the encoder that made its features."""

import json
from typing import Any

from debiaspl.data import ImageSet
from debiaspl.encoders import Encoder, EncoderNetwork
from debiaspl.features.fit import Fitted
from debiaspl.training import Recipe
from debiaspl.training.evaluate import Ending, about, basic_results
from debiaspl.training.run import Run


def save_fit(
    run: Run, recipe: Recipe, fitted: Fitted, encoder: Encoder, images: ImageSet, ending: Ending
) -> dict[str, Any]:
    """Write the model, ``predictions.csv`` and ``results.json``, and return the results. The run has begun.

    ``recipe`` has the network, of which ``encoder`` is the one that was used, with its weights; ``images`` are all that
    were encoded, with the training labels.
    """
    network = EncoderNetwork.of(encoder, images.num_classes, recipe.network.settings["source"])
    network.scaling, network.head = fitted.network.scaling, fitted.network.head
    unlabeled = int((images.labels < 0).sum())
    results = basic_results(recipe, "frozen encoder", ending, images.counts(), unlabeled) | fitted.facts | ending.more
    if ending.skipped:
        results["skipped"] = sorted(ending.skipped)
    facts = about(recipe, images)
    if (shares := results.get("shares")) is not None:
        known = {name: shares[name] for name in ("estimate", "error", "weight", "counts", "optimise")}
        known["temperature"] = fitted.temperature
        facts = {name: json.dumps({**json.loads(text), "shares": known}) for name, text in facts.items()}
    run.finish(network.state_dict(), facts, ending.predictions, results)
    return results
