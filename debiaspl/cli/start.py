"""``debiaspl train PHOTOS --method moco``: features of a folder of photos, learned without labels."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debiaspl.cli.terminal import note_new_run, say
from debiaspl.cli.train import report_of, say_skipped

if TYPE_CHECKING:
    from debiaspl.data.table_form import Columns
    from debiaspl.training.loop import RunOptions


def train_start(
    folder: Path,
    table: Path | None,
    columns: "Columns",
    no_labels: bool,
    method: str,
    settings: list[str],
    out: Path | None,
    options: "RunOptions",
    overwrite: bool,
) -> None:
    """Choose a recipe and print it, train, and print how to train from it. Labels only measure the features."""
    from debiaspl.photos.start import choose_start, start_name
    from debiaspl.photos.start import train_start as train
    from debiaspl.photos.survey import survey_for_start
    from debiaspl.training import Run
    from debiaspl.training.device import find_device
    from debiaspl.training.method import with_method
    from debiaspl.training.settings import parse_settings

    place = out or Path("runs") / start_name(folder)
    if options.resume and Run(place).config_path.exists():
        # Labels may have been added since it was started.
        no_labels = no_labels or Run(place).recipe().protocol.name == "no-labels"
    photos = survey_for_start(folder, table, columns, no_labels)
    chosen = choose_start(photos, find_device(options.device).type)
    if method != chosen.algorithm.name:
        chosen = with_method(chosen, method)
    recipe = parse_settings(chosen, settings, load_files=True)
    with Run(place).replacing(recipe, overwrite):
        begun = Run.at(place, recipe, options.resume).config_path.exists()
        say(photos.headline())
        if photos.classes:
            source = " those of the folders, unless you add --folders ignore," if photos.in_folders else ""
            say(f"No label is learned from: labels,{source} only measure the features at the end.")
        note_new_run(options.resume, place)
        from debiaspl.photos.api import NETWORKS

        network = NETWORKS.get(recipe.network.name, recipe.network.name)
        size = f"{recipe.image_size} x {recipe.image_size} pixels"
        steps = f"{recipe.steps:,} steps of {recipe.unlabeled_batch} images"
        say(f"Resuming {place}." if begun else f"{network}, at {size}, {recipe.algorithm.name}, {steps}.")
        results = train(photos, recipe, place, options)
    for line in _measured(results):
        say(line)
    say_skipped(results)
    say(f"The start is in {place}; the report is {report_of([place], place)}")
    typed = [("--labels", table), ("--device", options.device)]
    typed += [("--column", f"{role}={name}") for role, name in vars(columns).items() if name]
    more = [part for option, value in typed if value is not None for part in (option, str(value))]
    say("Next, train from it:")
    if not photos.classes:
        say(f"  {shlex.join(['debiaspl', 'label', str(folder), '--classes', 'NAME,OTHER NAME'])}")
    say(f"  {shlex.join(['debiaspl', 'train', str(folder), *more, '--set', f'start={place}'])}")


def _measured(results: dict[str, Any]) -> list[str]:
    """The quality of the features, where there are labels."""
    if "accuracy" not in results:
        return []
    if results.get("check", {}).get("kind") == "none":
        return ["No class has two labels, so the features cannot be measured."]
    accuracy = f"{100 * results['accuracy']:.1f} % of {results['test']:,} held-out labels"
    labels = f"{sum(results['labels']):,} labels"
    return [f"A nearest-class-mean classifier, of {labels}, is right for {accuracy}: this measures the features only."]
