"""Recipes that are one for a while: trained once so far, then each by itself. One JSON file a variant, as gain.py has.

    python benchmarks/branches.py --out results/gain/cifar10-40 --variant cifar10-40-minutes \
        --variant cifar10-40-minutes-fixmatch --variant "cifar10-40-minutes strength=1"

A variant is a recipe and what it changes there: its correction, and nothing else. Before pseudo-labels are learned from
(labels_from), what is learned depends on no correction, so that all of these are the same run until then. The first
steps of each variant, taken by itself, must give the bits of the first one's. A fold then ends where ``debiaspl train``
ends, for less. Its seconds are those of the start-up, of the common steps and of its own.

Folds that are done are not done again when the command is repeated, and with --kept neither are common steps.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from benchmarks.fold import Fold
from benchmarks.gain import command
from debiaspl.files import write_text
from debiaspl.recipes import recipe as find
from debiaspl.training import Recipe


class Variant:
    """A recipe with changes, by the text that names both."""

    def __init__(self, text: str) -> None:
        self.recipe, *self.settings = text.split()
        self.name = "-".join((self.recipe, *self.settings))

    def of(self, fold: int, settings: list[str]) -> Recipe:
        return find(self.recipe).with_settings([*settings, *self.settings, f"seed={fold}"])


def part(options: argparse.Namespace, variant: Variant, fold: int) -> Path:
    """Where one fold of a variant waits for the others."""
    return Path(options.out / f"{'-'.join((variant.name, *options.settings))}.fold{fold}.part")


def done(options: argparse.Namespace, variant: Variant) -> bool:
    """Whether its file holds these very folds of this very recipe."""
    path = options.out / f"{variant.name}.json"
    if not path.exists():
        return False
    found = json.loads(path.read_text())
    same = found["recipe"] == variant.of(options.first, options.settings).to_json()
    return same and [fold["fold"] for fold in found["folds"]] == list(folds(options))


def folds(options: argparse.Namespace) -> range:
    return range(options.first, options.first + options.folds)


def one_fold(options: argparse.Namespace) -> None:
    begun = [variant for variant in options.variants if not done(options, variant)]
    missing = [variant for variant in begun if not part(options, variant, options.fold).exists()]
    if not missing:
        return
    recipe = options.variants[0].of(options.fold, options.settings)
    fold = Fold(recipe, options.began, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    share = recipe.algorithm.settings["labels_from"]
    length = int(share * recipe.steps)
    # Up to a line of the log: what a line says of pseudo-labels is of one correction.
    fold.common(length - length % recipe.log_every, options.kept and options.kept / f"{recipe.name}-{options.fold}")
    for variant in missing:
        measured = fold.variant(variant.of(options.fold, options.settings))
        write_text(part(options, variant, options.fold), json.dumps(measured))
        shown = f"{100 * measured['accuracy']:.2f} % in {measured['seconds']:.0f} s"
        print(f"{variant.name} fold {options.fold}: {shown}", flush=True)


def run(options: argparse.Namespace, fold: int) -> None:
    program = [sys.executable, *sys.argv, "--fold", str(fold), "--began", str(time.time())]
    if subprocess.run(program, check=False).returncode:
        raise SystemExit(f"fold {fold} has failed; what is done stays in {options.out}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", dest="variants", action="append", type=Variant, required=True)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="for all")
    parser.add_argument("--folds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--together", type=int, default=1, help="folds that share the device")
    parser.add_argument("--sharing", type=int, help="runs that share the device, where others do too")
    parser.add_argument("--commit", default=None, help="where the code comes from, if this is no checkout")
    parser.add_argument("--kept", type=Path, help="a folder for the common steps")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fold", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.fold is not None:
        return one_fold(options)

    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    with ThreadPoolExecutor(options.together) as pool:
        list(pool.map(lambda fold: run(options, fold), folds(options)))
    for variant in options.variants:
        if done(options, variant):
            continue
        parts = [part(options, variant, fold) for fold in folds(options)]
        measured = {
            "recipe": variant.of(options.first, options.settings).to_json(),
            "command": " ".join(command(variant.recipe, options.first, [*options.settings, *variant.settings])),
            "common_with": options.variants[0].name,
            "commit": options.commit or commit or "unknown",
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine(),
            "together": options.sharing or options.together,
            "versions": {"torch": torch.__version__, "python": platform.python_version()},
            "folds": [json.loads(path.read_text()) for path in parts],
        }
        write_text(options.out / f"{variant.name}.json", json.dumps(measured) + "\n")
        for path in parts:
            path.unlink()


if __name__ == "__main__":
    main()
