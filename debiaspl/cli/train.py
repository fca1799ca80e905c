"""``debiaspl train``: a folder of photos, or a recipe."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl._torchrun import rank
from debiaspl.cli.options import (
    Device,
    Eager,
    Encoder,
    FileColumn,
    Folders,
    FollowLinks,
    LabelColumn,
    LabelTable,
    Overwrite,
    Resume,
    Root,
    Settings,
    Timeout,
    Workers,
    one_table,
    refuse_both,
)
from debiaspl.cli.terminal import filled_table, note_new_run, plain_errors, print_table, resume_command, say

NETWORKS = {"small": "A small network", "resnet9": "A ResNet-9"}
"""Networks as they are printed."""
VIEWS = (
    " With over 2,000 photos no augmented views are computed. To compute them, five times slower and often 1 to 2 "
    "points better: --set strong=fixmatch --set flip=true."
)


def train_command(
    photos: Annotated[
        Path | None,
        typer.Argument(
            metavar="PHOTOS",
            help="A folder of photos: class folders and unlabeled/, or any photos with labels.csv.",
            show_default="use --recipe",
        ),
    ] = None,
    labels: LabelTable = None,
    file_column: FileColumn = None,
    label_column: LabelColumn = None,
    encoder: Encoder = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Train this recipe instead of photos; see: debiaspl list recipes.", show_default="use PHOTOS"
        ),
    ] = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run.", show_default="runs/PHOTOS or runs/RECIPE")
    ] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = None,
    workers: Workers = 2,
    root: Root = None,
    eager: Eager = False,
    timeout: Timeout = None,
    allow_alike: Annotated[
        bool, typer.Option("--allow-alike", help="Accept class names that differ only in capitals or spaces.")
    ] = False,
    allow_names: Annotated[
        bool, typer.Option("--allow-names", help="Accept class names such as 'rest' or 'owl,heron'.")
    ] = False,
    folders: Folders = None,
    follow_links: FollowLinks = False,
) -> None:
    """Train on a folder of photos with a few labels, or train a recipe.

    Several processes can train a recipe together: torchrun --nproc-per-node=2 -m debiaspl train ...
    """
    with plain_errors():
        refuse_both(resume, overwrite)
        if photos is not None and recipe is None:
            refuse_for_photos(photos, root, timeout)
            table = one_table(labels), file_column, label_column
            from debiaspl.photos.names import Allowed

            names = Allowed(allow_alike, allow_names, folders)
            again = resume, overwrite
            _train_photos(photos, table, encoder, settings or [], out, again, device, workers, eager, names)
            return
        for_photos = (labels or None, file_column, label_column, encoder, allow_alike or None, allow_names or None)
        if recipe is None or photos is not None or any(option is not None for option in (*for_photos, folders)):
            both = f"{photos} and --recipe {recipe} are both given; " if recipe and photos else ""
            raise ValueError(
                f"{both}expected a folder of photos (debiaspl train photos/ --labels labels.csv), or --recipe NAME. "
                "--labels, --file-column, --label-column, --encoder, --allow-alike, --allow-names and --folders are "
                "for photos only."
            )
        from debiaspl.recipes import recipe as find
        from debiaspl.training import Run
        from debiaspl.training.group import TIMEOUT
        from debiaspl.training.loop import RunOptions, train_as
        from debiaspl.training.settings import parse_settings

        chosen = parse_settings(find(recipe), settings or [], load_files=True)
        folder = out or Path("runs") / chosen.name
        ended = resume and Run(folder).results_path.exists()
        note_new_run(resume, folder)
        limit = TIMEOUT if timeout is None else timeout
        options = RunOptions(resume, device, workers, root, eager, limit, resume_command())
        with Run(folder).replacing(chosen, overwrite):
            results = train_as(options, chosen, folder)
        if rank():
            return  # the first one speaks for all
        if ended:
            say(f"The run in {folder} has ended already; nothing was trained.")
        if "accuracy" in results:
            say(f"accuracy {100 * results['accuracy']:.1f} % on {results['test']:,} test images, {chosen.name}")
            say(f"worst class {100 * results['worst_recall']:.0f} %; the run is in {folder}")
        else:
            say(f"features of {results['unlabeled']:,} images without labels; the run is in {folder}")
        say_skipped(results)
        say(f"The report is {report_of([folder], folder)}")


def refuse_for_photos(photos: Path, root: Path | None, timeout: float | None) -> None:
    """Raise where an option that is for recipes only is given with photos."""
    if rank() is not None:
        raise ValueError("training on photos runs in one process. Several processes can train a --recipe.")
    if root is not None:
        raise ValueError(
            f"--root {root} is a folder of known image sets, for --recipe; the photos are in {photos}. Leave --root "
            "out."
        )
    if timeout is not None:
        raise ValueError(
            f"--timeout {timeout:g} is for several processes, started with torchrun, which train a --recipe. Training "
            "on photos runs in one process. Leave --timeout out."
        )


def _train_photos(
    folder: Path,
    table: tuple[Path | None, str | None, str | None],
    encoder: str | None,
    settings: list[str],
    out: Path | None,
    again: tuple[bool, bool],
    device: str | None,
    workers: int,
    eager: bool,
    names: Any,
) -> None:
    """Choose a recipe and print it, train, and print what was measured. ``table`` is where the labels are, if not in
    the folder, and the names of its two columns; ``again`` is whether to resume or to overwrite an earlier run."""
    from dataclasses import replace

    from debiaspl.data.table_form import Columns
    from debiaspl.photos.api import report_of_photos, train_and_mark
    from debiaspl.photos.check import check_for
    from debiaspl.photos.describe import HEADER, caption, handed_out, rows, verdict
    from debiaspl.photos.run import with_check
    from debiaspl.photos.start import choose_with_start
    from debiaspl.photos.survey import survey
    from debiaspl.training import Run
    from debiaspl.training.device import find_device

    resume, overwrite = again
    photos = survey(folder, table[0], Columns(*table[1:]), names.folders == "use")
    names.check(photos)
    machine = find_device(device).type
    named = None if encoder is None else (encoder, load_named(photos, machine, encoder, settings))
    recipe, start = choose_with_start(photos, machine, named, settings, out, resume)
    check = check_for(photos, seed=recipe.seed)
    place = out or Path("runs") / recipe.name
    checked = with_check(recipe, check)
    # A start of its own lies below the run, and is trained again with it.
    with Run(place).replacing(checked if start is None else replace(checked, start=""), overwrite):
        begun = Run.at(place, checked, resume).config_path.exists()
        say(photos.headline() + ("" if photos.unlabeled else " Every image has a label."))
        say(photos.each_class())
        note_new_run(resume, place)
        plan = f"Resuming {place}."
        if not begun:
            plan = _plan(recipe, photos, check, machine, named and named[1], eager, start, place)
        say(plan)
        outcome = train_and_mark(recipe, check, place, resume, machine, workers, resume_command(), eager, start)
    print_table(filled_table(HEADER, rows(outcome), box=None, pad_edge=False, padding=(0, 2, 0, 0)))
    say(caption(outcome))
    say(verdict(outcome, photos.unlabeled))
    say(handed_out(outcome, place))
    say_skipped(outcome.semi)
    say(f"The run is in {place}; the report is {report_of_photos(outcome, place)}")


def load_named(photos: Any, machine: str, name: str, settings: Sequence[str] = ()) -> Any:
    """The encoder of this name, at the image size for these photos."""
    from debiaspl.photos.api import encoder_for

    return encoder_for(photos, machine, name, settings)


def _plan(
    recipe: Any,
    photos: Any,
    check: Any,
    machine: str,
    encoder: Any,
    eager: bool,
    start: Any = None,
    place: Path | None = None,
) -> str:
    """A sentence on what will be trained, how it is checked and how long it takes."""
    from dataclasses import replace

    from debiaspl.encoders import lite0_is_installed
    from debiaspl.photos.duration import cores, estimate, estimate_start, in_words, mark_of_features
    from debiaspl.photos.run import count_runs
    from debiaspl.recipes.frozen import VIEWED
    from debiaspl.training.frozen import BY_HIDING, is_frozen

    runs = count_runs(recipe, check)
    seconds, features = 0.0, ""
    if start is not None:
        seconds = estimate_start(start, machine, eager)
        features = f"1 of 2: learn features without labels, {start.steps:,} steps; to skip this: --set start=. 2 of 2: "
        recipe = replace(recipe, start="")  # it does not exist yet, and does not change the time of a step
    begins = ""
    if recipe.first_classifier == "text":
        begins = (
            " The classifier starts from the class names, which the encoder reads as English; if they are not: "
            "--set first_classifier=random."
        )
    # It may need features that do not exist yet, and does not change the time of a step.
    recipe = replace(recipe, first_classifier="random")
    kept = place is not None and is_frozen(recipe) and mark_of_features(recipe, machine, place).exists()
    took = in_words(seconds + estimate(recipe, photos, check, machine, encoder, eager, kept))
    took += ", with the saved features," if kept else ""
    network, hint = NETWORKS.get(recipe.network.name, recipe.network.name), ""
    if is_frozen(recipe) and recipe.strong.name == BY_HIDING and len(photos.labels) > VIEWED:
        hint = VIEWS
    if encoder is not None:
        name = f"{encoder.name}, {'frozen' if recipe.network.settings.get('frozen') else 'fine-tuned'}"
        network = name[0].upper() + name[1:]
    elif machine == "cpu" and lite0_is_installed():
        hint = " A pretrained network is usually far better: --encoder efficientnet-lite0."
    return (
        f"{features}{network}, at {size(recipe, encoder)}, {recipe.steps:,} steps. "
        f"{check.words()} "
        f"About {took} on {cores(machine)}{f', in {runs} runs' if runs > 1 else ''}.{hint}{begins}"
    )


def size(recipe: Any, encoder: Any) -> str:
    """The image size, in words."""
    own, side = recipe.image_size, recipe.image_size if encoder is None else encoder.image_size
    smaller = f" (photos of {own} are enlarged; faster and less accurate: --set image_size={own})"
    return f"{side} x {side} pixels" + (smaller if own < side and encoder.any_size else "")


def say_skipped(results: dict[str, Any]) -> None:
    if "skipped" in results:
        say(f"{len(results['skipped'])} files could not be read; they are listed in results.json", err=True)


def report_of(runs: list[Path], folder: Path) -> Path:
    from debiaspl.recipes import RECIPES
    from debiaspl.report.runs import write_report

    return write_report(runs, folder / "report.html", RECIPES)
