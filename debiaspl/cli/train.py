"""``debiaspl train``: a folder of photos, or a recipe."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from debiaspl._printable import printable
from debiaspl._processes import rank
from debiaspl.cli import options
from debiaspl.cli.options import MACHINE, argument, flag, option
from debiaspl.cli.terminal import note_new_run, print_table, resume_command, say

if TYPE_CHECKING:
    from debiaspl.data.label_table import Columns
    from debiaspl.photos.survey import Photos
    from debiaspl.training import Run
    from debiaspl.training.loop import RunOptions

ENDED = "The run in {} has ended already; nothing was trained."


def train_command(
    photos: Annotated[
        Path | None,
        argument(
            "PHOTOS",
            "A folder of photos: class folders and unlabeled/, or any photos with labels.csv.",
            "use --recipe or --features",
        ),
    ] = None,
    labels: options.LabelTable = None,
    features: options.Features = None,
    encoder: options.Encoder = None,
    network: options.Network = None,
    method: options.Method = None,
    fine_tune: Annotated[
        bool | None,
        option(
            "Train the encoder too, from the classifier of its frozen features; or not.",
            "on a GPU, a small one is trained",
            "--fine-tune/--frozen",
        ),
    ] = None,
    optimise: Annotated[
        str | None,
        option("With an encoder: most photos right, or every class the same.", "photos", metavar="photos|classes"),
    ] = None,
    fit_on: Annotated[
        int | None, option("With an encoder: most photos in the graph that labels spread over.", "200,000", min=2)
    ] = None,
    recipe: Annotated[
        str | None, option("Train this recipe instead of photos; see: debiaspl list recipes.", "use PHOTOS")
    ] = None,
    length: options.Length = None,
    settings: options.Settings = None,
    out: Annotated[Path | None, option("Folder for the run.", "runs/PHOTOS or runs/RECIPE")] = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    column: options.TableColumns = None,
    folders: options.Folders = None,
    allow_names: Annotated[
        bool, flag("--allow-names", "Accept class names such as 'rest', or 'owl' beside 'Owl'.")
    ] = False,
    device: options.Device = None,
    workers: Annotated[int, option("Processes that read the files.", min=0, rich_help_panel=MACHINE)] = 2,
    eager: Annotated[
        bool, flag("--eager", "On a GPU: do not record the step as a graph; slower.", rich_help_panel=MACHINE)
    ] = False,
    timeout: Annotated[
        float, option("With torchrun: seconds until a process that hangs ends the run.", min=1, rich_help_panel=MACHINE)
    ] = 600,
    tensorboard: Annotated[
        bool, flag("--tensorboard", "Write TensorBoard files beside the log.", rich_help_panel=MACHINE)
    ] = False,
) -> None:
    """Train on a folder of photos with a few labels, or train a recipe.

    Several processes can train a recipe together: torchrun --nproc-per-node=2 -m debiaspl train ...
    """
    options.refuse_both(resume, overwrite)
    from debiaspl.training.loop import RunOptions

    settings = settings or []
    if network is not None and encoder is not None:
        raise ValueError(f"--encoder {encoder} and --network {network} are both given. Expected one of them.")
    frozen = None if fine_tune is None else not fine_tune
    named = {"network": network, "fit_on": fit_on, "optimise": optimise, "frozen": frozen}
    settings += [f"{name}={value}" for name, value in named.items() if value is not None]
    how = RunOptions(resume, device, workers, eager, timeout, resume_command(), tensorboard=tensorboard)
    wanted = Wanted(settings, out, how, overwrite)
    if recipe is not None:
        given: dict[str, Any] = {"PHOTOS": photos, "--labels": labels, "--encoder": encoder, "--folders": folders}
        given |= {"--column": column, "--allow-names": allow_names, "--features": features}
        options.refuse_useless(given, f"--recipe {recipe} has its own data")
        _train_recipe((recipe, length, method), wanted)
        return
    if length is not None:
        raise ValueError("--length is that of a recipe: --recipe NAME --length LENGTH.")
    if photos is None and features is None:
        raise ValueError("expected a folder of photos (debiaspl train photos/ --labels labels.csv), or --recipe.")
    photos, features = options.photos_or_features(photos, features)
    if rank() is not None:
        raise ValueError("training on photos runs in one process. Several processes can train a --recipe.")
    from debiaspl.algorithms import STARTS
    from debiaspl.photos.survey import survey

    columns = options.table_columns(column)
    if method not in STARTS:
        found = survey(photos, labels, columns, folders, features, allow_names)
        _train_photos(found, encoder, method, wanted)
        return
    if features is not None:
        raise ValueError(f"{method} learns features of its own: leave out --features.")
    _train_start(photos, labels, columns, folders == "ignore", method, wanted)


class Wanted(NamedTuple):
    """What is said of every training."""

    settings: list[str]
    out: Path | None
    how: "RunOptions"
    overwrite: bool


def _train_recipe(which: tuple[str, str | None, str | None], wanted: Wanted) -> None:
    from debiaspl.features.begin import begin
    from debiaspl.features.run import is_frozen, train_encoded
    from debiaspl.recipes import recipe as find
    from debiaspl.report.runs import write_report
    from debiaspl.training import Run
    from debiaspl.training.loop import train_as
    from debiaspl.training.settings import parse_settings

    settings, out, how, overwrite = wanted
    chosen = parse_settings(find(*which, load_files=True), settings, load_files=True)
    folder = out or Path("runs") / chosen.name
    ended = how.resume and Run(folder).results_path.exists()
    note_new_run(how.resume, folder)
    if is_frozen(chosen):
        _refuse_tensorboard(how)
    with Run(folder).replacing(chosen, overwrite):
        if is_frozen(chosen):
            results = train_encoded(chosen, folder, how.resume, how.go_on)
        else:
            results = train_as(how, chosen, folder, begin=begin)
    if rank():
        return  # the first one speaks for all
    if ended:
        say(ENDED.format(folder))
    if "accuracy" in results:
        say(f"accuracy {100 * results['accuracy']:.1f} % on {results['test']:,} test images, {chosen.name}")
        say(f"worst class {100 * results['worst_recall']:.0f} %; the run is in {folder}")
    else:
        say(f"features of {results['unlabeled']:,} images without labels; the run is in {folder}")
    _say_skipped(results)
    say(f"The report is {write_report([folder], folder / 'report.html')}")


def _train_photos(photos: "Photos", encoder: str | None, method: str | None, wanted: Wanted) -> None:
    """Choose a recipe for these photos and print it, train, and print what was measured."""
    from debiaspl.photos.api import plan, train
    from debiaspl.photos.check import about_shares, caption, handed_out, verdict
    from debiaspl.report.runs import write_report
    from debiaspl.training import Run
    from debiaspl.training.process import find_device

    settings, out, how, overwrite = wanted
    planned = plan(photos, find_device(how.device).type, encoder, method, settings, out, how.resume)
    if planned.frozen:
        _refuse_tensorboard(how)
    elif photos.features is not None:
        raise ValueError("--features are of a frozen encoder: leave them out, or --fine-tune and --encoder none.")
    place = planned.place
    with Run(place).replacing(planned.inputs, overwrite):
        run = Run.at(place, planned.recipe, how.resume)
        say(photos.headline() + ("" if photos.unlabeled else " Every image has a label."))
        say(photos.each_class())
        _say_begun(how.resume, run, planned.words())
        outcome = train(planned, how)
    print_table(outcome.chosen.header, [one.cells for one in outcome.candidates])
    shares = about_shares(outcome.results, photos.classes)
    for line in (caption(outcome), *shares, verdict(outcome, photos.unlabeled), handed_out(outcome, place)):
        say(printable(line))
    _say_skipped(outcome.results)
    say(f"The run is in {place}; the report is {write_report([place], place / 'report.html', photos.folder)}")


def _refuse_tensorboard(how: "RunOptions") -> None:
    if how.tensorboard:
        raise ValueError("--tensorboard shows the log of training, which a frozen encoder has not: add --fine-tune.")


def _train_start(
    folder: Path, table: Path | None, columns: "Columns", no_labels: bool, method: str, wanted: Wanted
) -> None:
    """Choose a recipe and print it, train, and print how to train from it. Labels only measure the features."""
    from debiaspl.photos.api import NETWORKS
    from debiaspl.photos.choose import choose_start, start_name
    from debiaspl.photos.run import train_start
    from debiaspl.photos.survey import survey_for_start
    from debiaspl.report.runs import write_report
    from debiaspl.training import Run
    from debiaspl.training.method import with_method
    from debiaspl.training.process import find_device
    from debiaspl.training.settings import parse_settings

    settings, out, how, overwrite = wanted
    place = out or Path("runs") / start_name(folder)
    if how.resume and Run(place).config_path.exists():
        # Labels may have been added since it was started.
        no_labels = no_labels or Run(place).recipe().protocol.name == "no-labels"
    photos = survey_for_start(folder, table, columns, no_labels)
    chosen = choose_start(photos, find_device(how.device).type)
    if method != chosen.algorithm.name:
        chosen = with_method(chosen, method)
    recipe = parse_settings(chosen, settings, load_files=True)
    with Run(place).replacing(recipe, overwrite):
        run = Run.at(place, recipe, how.resume)
        say(photos.headline())
        if photos.classes:
            say("Labels only measure the features at the end. To leave out those of class folders: --folders ignore.")
        network = NETWORKS.get(recipe.network.name, recipe.network.name)
        size = f"{recipe.image_size} x {recipe.image_size} pixels, {recipe.algorithm.name}"
        steps = f"{recipe.steps:,} steps of {recipe.unlabeled_batch} images"
        _say_begun(how.resume, run, f"{network}, at {size}, {steps}.")
        results = train_start(photos, recipe, place, how)
    if results.get("check", {}).get("kind") == "none":
        say("No class has two labels, so the features cannot be measured.")
    elif "accuracy" in results:
        right = f"{100 * results['accuracy']:.1f} % of {results['test']:,} held-out labels"
        labels = f"{sum(results['labels']):,} labels"
        say(f"A nearest-class-mean classifier, of {labels}, is right for {right}: this measures the features only.")
    _say_skipped(results)
    say(f"The start is in {place}; the report is {write_report([place], place / 'report.html')}")
    typed = [("--labels", table), ("--device", how.device)]
    typed += [("--column", f"{role}={name}") for role, name in vars(columns).items() if name]
    more = [part for option, value in typed if value is not None for part in (option, str(value))]
    say("Next, train from it:")
    if not photos.classes:
        say(f"  {shlex.join(['debiaspl', 'label', str(folder), '--classes', 'NAME,OTHER NAME'])}")
    say(f"  {shlex.join(['debiaspl', 'train', str(folder), *more, '--set', f'start={place}'])}")


def _say_begun(resume: bool, run: "Run", words: str) -> None:
    """Whether a new run starts, in ``words``, or one is resumed, or has ended: it does not see what is new."""
    note_new_run(resume, run.folder)
    if run.results_path.exists():
        words = f"{ENDED.format(run.folder)} After new labels or photos: --overwrite, or another --out."
    elif run.config_path.exists():
        words = f"Resuming {run.folder}."
    say(words)


def _say_skipped(results: dict[str, Any]) -> None:
    if "skipped" in results:
        say(f"{len(results['skipped'])} files could not be read; they are listed in results.json", err=True)
