"""``debiaspl train``: a folder of photos, or a recipe."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl._torchrun import rank
from debiaspl.cli.options import (
    MACHINE,
    Device,
    Encoder,
    Folders,
    LabelTable,
    Length,
    Method,
    Overwrite,
    Resume,
    Settings,
    TableColumns,
    columns_of,
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
    encoder: Encoder = None,
    method: Method = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Train this recipe instead of photos; see: debiaspl list recipes.", show_default="use PHOTOS"
        ),
    ] = None,
    length: Length = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run.", show_default="runs/PHOTOS or runs/RECIPE")
    ] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    column: TableColumns = None,
    folders: Folders = None,
    allow_names: Annotated[
        bool, typer.Option("--allow-names", help="Accept class names such as 'rest', or 'owl' beside 'Owl'.")
    ] = False,
    device: Device = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read the files.", rich_help_panel=MACHINE)] = 2,
    eager: Annotated[
        bool,
        typer.Option("--eager", help="On a GPU: do not record the step as a graph; slower.", rich_help_panel=MACHINE),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="With torchrun: seconds until a process that hangs ends the run.",
            show_default="600 seconds",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard files beside the log.", rich_help_panel=MACHINE)
    ] = False,
) -> None:
    """Train on a folder of photos with a few labels, or train a recipe.

    Several processes can train a recipe together: torchrun --nproc-per-node=2 -m debiaspl train ...
    """
    with plain_errors():
        refuse_both(resume, overwrite)
        from debiaspl.training.group import TIMEOUT
        from debiaspl.training.loop import RunOptions

        limit = TIMEOUT if timeout is None else timeout
        options = RunOptions(resume, device, workers, None, eager, limit, resume_command(), tensorboard=tensorboard)
        if recipe is not None:
            given: dict[str, Any] = {"PHOTOS": photos, "--labels": labels, "--encoder": encoder, "--folders": folders}
            given |= {"--column": column, "--allow-names": allow_names}
            useless = [name for name, value in given.items() if value not in (None, False, [])]
            if useless:
                raise ValueError(f"--recipe {recipe} has its own data: leave out {' and '.join(useless)}.")
            _train_recipe((recipe, length, method), settings or [], out, options, overwrite)
            return
        if length is not None:
            raise ValueError("--length is that of a recipe: --recipe NAME --length LENGTH.")
        if photos is None:
            raise ValueError("expected a folder of photos (debiaspl train photos/ --labels labels.csv), or --recipe.")
        if rank() is not None:
            raise ValueError("training on photos runs in one process. Several processes can train a --recipe.")
        from debiaspl.algorithms import STARTS
        from debiaspl.cli.start import train_start
        from debiaspl.data.table_form import Columns

        columns = Columns(**columns_of(column))
        if method in STARTS:
            no_labels = folders == "ignore"
            train_start(photos, one_table(labels), columns, no_labels, method, settings or [], out, options, overwrite)
            return
        from debiaspl.photos.names import Allowed

        names = Allowed(allow_names, allow_names, folders)
        _train_photos(
            photos, (one_table(labels), columns), encoder, method, settings or [], out, options, overwrite, names
        )


def _train_recipe(
    which: tuple[str, str | None, str | None], settings: list[str], out: Path | None, options: Any, overwrite: bool
) -> None:
    from debiaspl.recipes import recipe as find
    from debiaspl.training import Run
    from debiaspl.training.loop import train_as
    from debiaspl.training.settings import parse_settings

    chosen = parse_settings(find(*which, load_files=True), settings, load_files=True)
    folder = out or Path("runs") / chosen.name
    ended = options.resume and Run(folder).results_path.exists()
    note_new_run(options.resume, folder)
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


def _train_photos(
    folder: Path,
    table: tuple[Path | None, Any],
    encoder: str | None,
    method: str | None,
    settings: list[str],
    out: Path | None,
    options: Any,
    overwrite: bool,
    names: Any,
) -> None:
    """Choose a recipe and print it, train, and print what was measured. ``table`` is where the labels are, if not in
    the folder, and the names of its columns."""
    from dataclasses import replace

    from debiaspl.photos.api import encoder_for, report_of_photos, train_and_mark
    from debiaspl.photos.check import check_for
    from debiaspl.photos.describe import HEADER, caption, handed_out, rows, verdict
    from debiaspl.photos.run import with_check
    from debiaspl.photos.start import choose_with_start
    from debiaspl.photos.survey import survey
    from debiaspl.training import Run
    from debiaspl.training.device import find_device

    resume, eager = options.resume, options.eager
    photos = survey(folder, *table, names.folders == "use")
    names.check(photos)
    machine = find_device(options.device).type
    named = None if encoder is None else (encoder, encoder_for(photos, machine, encoder, settings))
    recipe, start = choose_with_start(photos, machine, named, settings, out, resume, method)
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
        outcome = train_and_mark(recipe, check, place, resume, machine, options.workers, options.go_on, eager, start)
    print_table(filled_table(HEADER, rows(outcome), box=None, pad_edge=False, padding=(0, 2, 0, 0)))
    say(caption(outcome))
    say(verdict(outcome, photos.unlabeled))
    say(handed_out(outcome, place))
    say_skipped(outcome.semi)
    say(f"The run is in {place}; the report is {report_of_photos(place, photos.folder)}")


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
