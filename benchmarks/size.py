"""The side that an encoder computes small photos with: accuracy with five labels a class, and seconds a photo.

OMP_NUM_THREADS=1 python -m benchmarks.size EuroSAT/2750 flowers20:64 flowers20:32 --out results/photos/size.json

Each set is a folder of class folders; ``:64`` shrinks its photos to that side first, as if they had no more to show.
Draws 100 to 104 give labels to five photos of each class, and accuracy is the mean over classes on all others.
"""

import argparse
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from benchmarks.origin import origin, write
from debiaspl._processes import keep_freed_memory
from debiaspl.data import FewLabels
from debiaspl.encoders import Encoder, load_encoder
from debiaspl.graph import Graph
from debiaspl.models import scale

DRAWS, LABELS = range(100, 105), 5


def read(folder: Path, side: int, most: int) -> tuple[Tensor, Tensor]:
    """uint8 photos, (N, 3, side, side), evenly taken from each class, and their classes."""
    pictures, labels = [], []
    for label, place in enumerate(sorted(path for path in folder.iterdir() if path.is_dir())):
        files = sorted(place.iterdir())
        for path in files[:: max(len(files) // most, 1)][:most]:
            shown = Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BOX)
            pictures.append(torch.from_numpy(np.array(shown)).permute(2, 0, 1))
            labels.append(label)
    return torch.stack(pictures), torch.tensor(labels)


@torch.inference_mode()
def features_of(encoder: Encoder, pictures: Tensor) -> tuple[Tensor, float]:
    """One vector each, and seconds of the processor a photo."""
    began = time.process_time()
    found = [
        encoder.embed(scale(part).contiguous(memory_format=torch.channels_last)) for part in torch.split(pictures, 16)
    ]
    return torch.cat(found), (time.process_time() - began) / len(pictures)


def macro(label: Tensor, truth: Tensor, unlabeled: Tensor) -> float:
    right = (label == truth)[unlabeled].double()
    return 100 * mean(float(right[truth[unlabeled] == name].mean()) for name in truth.unique())


def accuracies(features: Tensor, truth: Tensor) -> dict[str, list[float]]:
    graph, classes = Graph.of(features), int(truth.max()) + 1
    found: dict[str, list[float]] = {"class means": [], "logistic regression": [], "graph": []}
    for seed in DRAWS:
        known = FewLabels(LABELS).split(truth, seed).labeled
        given = torch.full_like(truth, -1)
        given[known] = truth[known]
        means = F.normalize(torch.stack([graph.units[given == name].mean(0) for name in range(classes)]), dim=-1)
        fitted = LogisticRegression(C=100, max_iter=1000).fit(graph.units[known].numpy(), truth[known].numpy())
        labels = {
            "class means": (graph.units @ means.T).argmax(-1),
            "logistic regression": torch.from_numpy(fitted.predict(graph.units.numpy())),
            "graph": graph.spread(given, classes).argmax(-1),
        }
        for name, label in labels.items():
            found[name].append(round(macro(label, truth, given < 0), 2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="folders of class folders; FOLDER:SIDE shrinks the photos first")
    parser.add_argument("--sides", type=int, nargs="+", default=[64, 96, 128, 160, 224])
    parser.add_argument("--most", type=int, default=100, help="photos of a class")
    parser.add_argument("--encoder", default="efficientnet-lite0")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    made: dict[str, Any] = {
        **origin("OMP_NUM_THREADS=1 python -m benchmarks.size EuroSAT/2750 flowers20:64 flowers20:32 --out size.json"),
        "encoder": options.encoder,
        "labels_per_class": LABELS,
        "draws": list(DRAWS),
        "photos_per_class": options.most,
        "sets": [],
    }
    keep_freed_memory()  # as the commands do
    encoder = load_encoder(options.encoder)
    for named in options.sets:
        folder, _, shrunk = named.partition(":")
        own = int(shrunk) if shrunk else min(Image.open(next(Path(folder).rglob("*.jpg"))).size)
        pictures, truth = read(Path(folder), own, options.most)
        kept = {"set": Path(folder).parent.name if folder.endswith("2750") else Path(folder).name, "own_side": own}
        made["sets"].append({**kept, "photos": len(truth), "classes": int(truth.max()) + 1, "at": []})
        for side in options.sides:
            encoder.image_size = side
            features, seconds = features_of(encoder, pictures)
            runs = accuracies(features, truth)
            made["sets"][-1]["at"].append({"side": side, "seconds_a_photo": round(seconds, 4), "accuracy": runs})
            told = ", ".join(f"{name} {mean(values):.1f}" for name, values in runs.items())
            print(f"{named} at {side}: {told}; {1000 * seconds:.0f} ms a photo", flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            write(options.out, made)


if __name__ == "__main__":
    main()
