"""Debiasing towards a target: digits whose unlabeled images are distributed as the labels, equally or the other way.

    python -m benchmarks.target --out results/target/digits.json
    python -m benchmarks.target --figure docs/debiasing.svg      # from that file

61 labels and 395 or 1,000 unlabeled images (gamma 10), 600 steps; and one label a class with balanced images. *Classes*
is the accuracy on balanced test images, *photos* that on the unlabeled images, which occur as often as they do: there
the logarithm of the target is added to f, as labels are made. A cell that is in the file is not run again.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from benchmarks.origin import ROOT, origin, write
from benchmarks.results_figure import rule, text
from debiaspl._over_seeds import markdown
from debiaspl.debias import Debiaser
from debiaspl.recipes import recipe as find
from debiaspl.training.evaluate import predict_all
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import fit
from debiaspl.training.tasks import task_of

RESULTS = ROOT / "results" / "target" / "digits.json"
TAIL = ("protocol=two-tails", "labeled_max=16", "unlabeled_max=100", "gamma=10")
SHAPES = {
    "reversed": (*TAIL, "unlabeled=reversed"),
    "uniform": (*TAIL, "unlabeled=uniform"),
    "consistent": (*TAIL, "unlabeled=consistent"),
    "balanced, one label a class": ("protocol=few-labels", "per_class=1"),
}
VARIANTS = {
    "FixMatch": ("correction=none",),
    "uniform, strength 0.5": ("strength=0.5",),
    "uniform, strength 1": ("strength=1",),
    "labels": ("target=labels",),
    "estimated": ("target=estimated",),
    "true shares": ("target=TRUE",),
}

SHOWN = {"FixMatch": "#0072b2", "uniform, strength 0.5": "#d55e00", "estimated": "#009e73"}
TRUE = "#c9ced4"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 430, 290, 36, 30, 48


def shares(labels: Tensor) -> Tensor:
    counts = torch.bincount(labels, minlength=10).double()
    return counts / counts.sum()


def run(shape: str, variant: str, seed: int) -> dict[str, Any]:
    recipe = parse_settings(find("digits-10"), [*SHAPES[shape], f"seed={seed}"])
    task = task_of(recipe)
    test, unlabeled = task.test, task.unlabeled
    true = shares(unlabeled.truth)
    written = ",".join(f"{share:.6f}" for share in true.tolist())
    recipe = parse_settings(recipe, [item.replace("TRUE", written) for item in VARIANTS[variant]])
    step = fit(recipe, task, torch.device("cpu"))
    network, correction = step.finished(), step.algorithm.correction
    debiaser = correction if isinstance(correction, Debiaser) else None
    # An equal share for each class changes nothing.
    target = torch.full((10,), 0.1) if debiaser is None else debiaser.target
    own = (predict_all(network, unlabeled).clamp_min(1e-30).log() + target.log()).argmax(-1)
    right = predict_all(network, test).argmax(-1) == test.truth
    recall = [float(right[test.truth == number].double().mean()) for number in range(10)]
    rounded = {
        "true": true,
        "predicted": shares(own),
        "target": target,
        "prior": getattr(correction, "prior", torch.zeros(0)),
    }
    return {
        "classes": float(right.double().mean()),
        "worst": min(recall),
        "photos": float((own == unlabeled.truth).double().mean()),
        "off": float((target - true).abs().sum() / 2),
        **{name: [round(value, 4) for value in values.tolist()] for name, values in rounded.items()},
    }


def measure(out: Path, seeds: int) -> None:
    written = json.loads(out.read_text()) if out.exists() else {"runs": {}}
    for shape in SHAPES:
        for seed in range(seeds):
            for variant in VARIANTS:
                row = written["runs"].setdefault(shape, {}).setdefault(variant, {})
                if str(seed) in row:
                    continue
                row[str(seed)] = run(shape, variant, seed)
                written["origin"] = origin(f"python -m benchmarks.target --seeds {seeds}")
                write(out, written)


def table(path: Path = RESULTS) -> str:
    """classes / photos in %, means over seeds."""
    runs, lines = json.loads(path.read_text())["runs"], [["target", *SHAPES]]
    for variant in VARIANTS:
        cells = []
        for shape in SHAPES:
            rows = list(runs.get(shape, {}).get(variant, {}).values())
            means = [100 * fmean(row[name] for row in rows) for name in ("classes", "photos")] if rows else []
            cells.append(" / ".join(f"{mean:.1f}" for mean in means) or "-")
        lines.append([variant, *cells])
    return markdown(lines)


def figure(path: Path = RESULTS, panels: Sequence[str] = ("consistent", "reversed")) -> str:
    """How often each class occurs, and how often it is predicted, means over seeds."""
    runs = json.loads(path.read_text())["runs"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT}" viewBox="0 0 '
        f'{WIDTH * len(panels)} {HEIGHT}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, shape in enumerate(panels):
        parts += [f'<g transform="translate({WIDTH * place} 0)">', *_panel(shape, runs[shape]), "</g>"]
    for place, (name, colour) in enumerate({"true shares": TRUE, **SHOWN}.items()):
        parts.append(f'<rect x="{LEFT + 150 * place}" y="{HEIGHT - 16}" width="10" height="10" fill="{colour}"/>')
        parts.append(text(LEFT + 15 + 150 * place, HEIGHT - 7, name, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(shape: str, rows: dict[str, Any]) -> list[str]:
    def mean(variant: str, name: str) -> list[float]:
        return [fmean(column) for column in zip(*(row[name] for row in rows[variant].values()), strict=True)]

    true, step = mean("FixMatch", "true"), (WIDTH - LEFT - 10) / 10
    predicted = {variant: mean(variant, "predicted") for variant in SHOWN}
    top = max(max(values) for values in (true, *predicted.values()))

    def y(share: float) -> float:
        return TOP + (1 - share / top) * (HEIGHT - TOP - BOTTOM)

    parts = [text(LEFT, 16, f"unlabeled images {shape}", "start", ' font-weight="bold"')]
    for tick in range(0, int(100 * top) + 1, 10):
        parts += [rule(LEFT, WIDTH - 10, y(tick / 100), 'stroke="#d3d9df"')]
        parts += [text(LEFT - 6, y(tick / 100) + 4, str(tick), "end")]
    for number, share in enumerate(true):
        left = LEFT + step * number
        height = y(0) - y(share)
        parts.append(
            f'<rect x="{left + 2:.1f}" y="{y(share):.1f}" width="{step - 4:.1f}" height="{height:.1f}" fill="{TRUE}"/>'
        )
        parts.append(text(left + step / 2, HEIGHT - BOTTOM + 16, str(number), "middle"))
        for place, (variant, colour) in enumerate(SHOWN.items()):
            at = left + step * (place + 1) / (len(SHOWN) + 1)
            parts.append(f'<circle cx="{at:.1f}" cy="{y(predicted[variant][number]):.1f}" r="3.5" fill="{colour}"/>')
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--figure", type=Path, help="only draw the figure, from the file of --out")
    options = parser.parse_args()
    if options.figure is None:
        measure(options.out, options.seeds)
    if options.figure is not None:
        options.figure.write_text(figure(options.out))
    print(table(options.out))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
