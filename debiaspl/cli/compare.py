"""``debiaspl compare`` and ``debiaspl demo``: methods side by side, over the same seeds."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from debiaspl._printable import counted
from debiaspl.cli import options
from debiaspl.cli.options import argument, option
from debiaspl.cli.terminal import note_new_run, print_table, progress_bar, resume_command, say
from debiaspl.cli.usage import checked_method

DEMO_CAPTION = (
    "Mean ± standard deviation over seeds, on 500 balanced test images. Worst class: recall of the one recognised "
    "least. Off true shares: pseudo-labels of the second half of training that would have to change class to match "
    "the shares of the images (total variation distance). All are means."
)
VARIES = "Other processors round differently: one seed can change by ten points, the mean by one or two."
CAPTION = (
    "Means over seeds, on the test set, and paired differences to the first method. Worst class: recall of the one "
    "recognised least. Off: pseudo-labels that would have to change class to match those shares."
)


def demo_command(
    out: Annotated[Path, option("Folder for the runs.")] = Path("runs/demo"),
    seeds: options.Seeds = 4,
    long_tail: Annotated[
        bool, options.flag("--long-tail", "Imbalanced classes instead: 20 to 1, 10 % labeled.")
    ] = False,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Compare supervised learning, FixMatch and DebiasPL on handwritten digits, one label a class."""
    options.refuse_both(resume, overwrite)
    from debiaspl.recipes.demo import demo
    from debiaspl.report.runs import runs_in, write_report

    setting = "classes of 20 to 1, 10 % of each labeled" if long_tail else "balanced classes, one label each"
    say(f"Handwritten digits, {setting}; {counted(seeds, 'seed')}.")
    note_new_run(resume, out, ".demo")
    with progress_bar("steps", "training") as watch:
        comparison = demo(out, range(seeds), long_tail, resume, overwrite, None, watch, resume_command())
    print_table(*comparison.short())
    say(" ".join((DEMO_CAPTION, *comparison.notes())))
    say(f"{comparison.finding('debiaspl')} {VARIES}")
    say(f"Runs, table and results.json are in {out}")
    say(f"The report is {write_report(runs_in(out), out / 'report.html')}")


def compare_command(
    photos: Annotated[
        Path | None,
        argument("PHOTOS", "A folder of photos with labels; see: debiaspl train.", "use --recipe or --features"),
    ] = None,
    labels: options.LabelTable = None,
    folders: options.Folders = None,
    features: options.Features = None,
    encoder: options.Encoder = None,
    methods: Annotated[
        str | None,
        option(
            "Names separated by commas: fixmatch,debiaspl,mine.py:Mine. The first is the baseline.", "all algorithms"
        ),
    ] = None,
    seeds: options.Seeds = 3,
    recipe: Annotated[
        str | None, option("The settings that all runs share; see: debiaspl list recipes.", "digits-10")
    ] = None,
    length: options.Length = None,
    settings: options.Settings = None,
    out: Annotated[Path | None, option("Folder for the runs.", "runs/compare-DATA")] = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    jobs: options.Jobs = None,
    device: options.Device = None,
) -> None:
    """Train several methods on one image set, and print them as a table."""
    options.refuse_both(resume, overwrite)
    from debiaspl.algorithms import ALGORITHMS
    from debiaspl.photos.api import encoder_or_none
    from debiaspl.photos.choose import base_recipe as recipe_of_photos
    from debiaspl.photos.survey import survey
    from debiaspl.recipes.compare import base_recipe, compare, plan
    from debiaspl.training.process import find_device

    chosen = list(ALGORITHMS) if methods is None else [str(checked_method(one.strip())) for one in methods.split(",")]
    machine = find_device(device).type
    if photos is None and features is None:
        if any(given is not None for given in (labels, folders, encoder)):
            raise ValueError("--labels, --folders and --encoder are for a folder of photos: debiaspl compare PHOTOS.")
        base = base_recipe(recipe, length, settings or [])
    else:
        if recipe or length:
            raise ValueError(f"{photos} is given, and --recipe or --length too. Expected only one of them.")
        photos, features = options.photos_or_features(photos, features)
        found = survey(photos, labels, folders=folders, features=features, allow_names=True)
        base = recipe_of_photos(found, encoder_or_none(found, "cpu", encoder, settings or []), machine)
    planned = plan(base, chosen, range(seeds), settings or [])
    planned = replace(planned, device=_for_runs(planned, machine, device))
    folder = out or Path("runs") / f"compare-{Path(base.name if photos or recipe else base.data).name}"
    counts = len(planned.methods), len(planned.seeds)
    product = f"{counted(counts[0], 'method')} x {counted(counts[1], 'seed')}, {counted(counts[0] * counts[1], 'run')}"
    say(f"{planned.base.data}, recipe {planned.base.name}: {product}.")
    note_new_run(resume, folder, ".compare")
    with progress_bar("steps", "training") as watch:
        table = compare(planned, folder, resume, overwrite, jobs, watch, resume_command(), features)
    print_table(*table.short())  # what fits a terminal; table.md has all columns
    for note in [CAPTION, *table.notes(), *planned.notes()]:
        say(note)
    say(f"Runs, table.md and results.json are in {folder}")


def _for_runs(planned: Any, machine: str, asked: str | None) -> str:
    """The device of all runs; ``asked`` is what the user typed, if anything."""
    from debiaspl.features.run import is_frozen

    if machine == "cpu" or not any(map(is_frozen, planned.methods.values())):
        return machine
    if asked is not None:
        raise ValueError(f"--device is {asked}, and frozen encoders are compared on the CPU only. Use --device cpu.")
    return "cpu"
