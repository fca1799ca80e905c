"""What each part of the correction is worth: digits, balanced and long-tailed, over seeds.

    python benchmarks/ablation.py --out results/ablation

The paper's ablation has neither, debiased labels, and both; here are also the margin alone, larger strengths, and the
margin on labeled images that the recipe for minutes adds. Writes RECIPE.json: accuracy and the worst class's recall
for every seed, by the averaged weights after the last step, on balanced test images.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

from benchmarks.origin import origin, write
from benchmarks.stability import prepared
from debiaspl.recipes import recipe as find
from debiaspl.training.evaluate import evaluate

RECIPES = ("digits-10", "digits-lt20-10pct")
VARIANTS = {
    "neither (FixMatch)": ["correction=none"],
    "labels": ["margin_strength=0"],
    "margin": ["strength=0", "margin_strength=0.5"],
    "both (DebiasPL)": [],
    "both, strength 1": ["strength=1"],
    "both, strength 2": ["strength=2"],
    "margin on labeled images": ["strength=0", "labeled_strength=1"],
    "both, and that margin": ["labeled_strength=1"],
}


def run(name: str, settings: list[str], seed: int) -> dict[str, float]:
    recipe, task, step = prepared(name, settings, seed)
    for number in range(recipe.steps):
        step(number)
    found = evaluate(step.finished(), task.test)
    return {"accuracy": found.accuracy, "worst": min(share for share in found.confusion.recall if share is not None)}


def measured(name: str, seeds: int) -> list[dict[str, Any]]:
    rows = []
    for variant, settings in VARIANTS.items():
        runs = [run(name, settings, seed) for seed in range(seeds)]
        means = {key: statistics.fmean(one[key] for one in runs) for key in ("accuracy", "worst")}
        rows.append({"variant": variant, "settings": settings, **means, "runs": runs})
        print(name, variant, {key: round(100 * value, 1) for key, value in means.items()}, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for name in options.recipes.split(","):
        written = {
            "recipe": find(name).to_json(),
            "variants": measured(name, options.seeds),
            "origin": origin(f"python -m benchmarks.ablation --recipes {name} --seeds {options.seeds}"),
        }
        write(options.out / f"{name}.json", written)


if __name__ == "__main__":
    main()
