"""The model of a run as a folder for the Hugging Face hub."""

import re
from pathlib import Path
from typing import Any

from debiaspl._measures import wilson
from debiaspl._over_seeds import markdown
from debiaspl._printable import percent, printable
from debiaspl._version import __version__
from debiaspl.data import DataError
from debiaspl.data.tensor_file import read_tensor_file
from debiaspl.deploy.labeled import UNCHECKED
from debiaspl.deploy.saved import WEIGHTS, chosen_folder, weights_of
from debiaspl.encoders import NetworkFacts
from debiaspl.files import FileError, refuse_existing, write_bytes, write_json, write_text
from debiaspl.models.own import is_own
from debiaspl.training import Run, RunError

CONFIG, PREPROCESSING, CARD = "config.json", "preprocessor_config.json", "README.md"


def export_hub(run: Path, folder: Path, overwrite: bool = False) -> None:
    """Write the weights, what describes them, the preprocessing and a model card into ``folder``. No code is executed,
    and nothing is sent anywhere."""
    weights, results = weights_of(run), Run(chosen_folder(run)).results()
    try:
        facts = NetworkFacts.of(read_tensor_file(weights, need_digest=False)[1].get("debiaspl", ""), str(weights))
        if results is None or not facts.classes:
            raise RunError(f"{run} has no results.json or no classes, as the card needs. Expected a whole run folder.")
        card = model_card(run.resolve().name, facts, results)
    except DataError as error:
        raise RunError(str(error)) from error
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        raise RunError(f"the run in {weights.parent} is damaged: {error}. Restore it, or train again.") from error
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.samefile(one) for one in (run, weights.parent)):
        raise FileError(f"{folder} is the folder of the run itself. Expected another one for --hub.")
    for name in (WEIGHTS, CONFIG, PREPROCESSING, CARD):
        refuse_existing(folder / name, overwrite)
    (folder / WEIGHTS).unlink(missing_ok=True)  # an interrupted export leaves no new card beside old weights
    write_text(folder / CARD, card)
    write_json(folder / PREPROCESSING, preprocessing(facts))
    made = {"library_name": "debiaspl", "debiaspl_version": __version__, "id2label": dict(enumerate(facts.classes))}
    write_json(folder / CONFIG, made | {"network": dict(facts.network), "image_size": list(facts.size)})
    write_bytes(folder / WEIGHTS, weights.read_bytes())  # last: with it the folder is a model


def preprocessing(facts: NetworkFacts) -> dict[str, Any]:
    """What ``load_model`` does before the network, in the words of transformers."""
    height, width = facts.size
    return dict.fromkeys(("do_resize", "do_center_crop", "do_rescale", "do_normalize"), True) | {
        "size": {"shortest_edge": min(height, width)},
        "crop_size": {"height": height, "width": width},
        "rescale_factor": 1 / 255,
        "image_mean": [0.5] * facts.channels,
        "image_std": [0.5] * facts.channels,
    }


def model_card(name: str, facts: NetworkFacts, results: dict[str, Any]) -> str:
    """README.md of the model: what it tells apart, from how many labels, how sure that is, and its limits."""
    labels, count = [int(number) for number in results["labels"]], int(results["test"])
    recall, sure = ["not known"] * len(labels), "Its accuracy is not known: no label was left to measure it with."
    if count and results.get("check", {}).get("kind") not in UNCHECKED:
        right, recall = round(results["accuracy"] * count), [percent(share, 1) for share in results["recall"]]
        low, high = (percent(share, 1) for share in wilson(right, count))
        sure = f"{right:,} of {count:,} right: {percent(right / count, 1)} (95 % interval {low} to {high})"
        sure = f"{sure}; {_cell(str(results['evaluated']))}."
    rows = zip(map(_cell, facts.classes), map(str, labels), recall, strict=True)
    code = ", network=build" if is_own(str(facts.network.get("name"))) else ""
    return f"""---
library_name: debiaspl
pipeline_tag: image-classification
tags: [image-classification, semi-supervised, debiaspl]
---

# {_cell(name)}

An image classifier of {len(facts.classes)} classes, trained with debiaspl {__version__} from {sum(labels):,} labels and
{int(results.get("unlabeled", 0)):,} images without a label.

```python
from debiaspl import load_model

model = load_model("user/name"{code})  # or the folder
model.predict(["photo.jpg"])
```

## How sure it is

{sure}

{markdown([("class", "labels", "recognised"), *rows])}
## Limits

* It knows these classes only: an image of anything else gets one of them, often with a high probability.
* It was measured on images like those it was trained with. Other cameras, places or seasons can be harder.
"""


def _cell(text: str) -> str:
    """Text of a file in Markdown: names are untrusted."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable(text))
