"""``debiaspl pretrain``: features of a known image set or of a folder of photos, learned without labels."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debiaspl._torchrun import rank
from debiaspl.cli.options import (
    Device,
    Eager,
    FileColumn,
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
from debiaspl.cli.terminal import note_new_run, plain_errors, resume_command, say
from debiaspl.cli.train import NETWORKS, refuse_for_photos, report_of, say_skipped

if TYPE_CHECKING:
    from debiaspl.photos.survey import Photos
    from debiaspl.training import Recipe
    from debiaspl.training.loop import RunOptions

NAMED = 5
"""How many class folders are named."""


def pretrain_command(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A known image set (digits, cifar10, ...) or a folder of photos.")
    ],
    labels: LabelTable = None,
    file_column: FileColumn = None,
    label_column: LabelColumn = None,
    no_labels: Annotated[
        bool, typer.Option("--no-labels", help="Ignore labels of photos; folders are not classes.")
    ] = False,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run.", show_default="runs/DATA-pretrain")] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    follow_links: FollowLinks = False,
    device: Device = None,
    workers: Workers = 2,
    root: Root = None,
    eager: Eager = False,
    timeout: Timeout = None,
) -> None:
    """Learn features without labels, for runs that start from them and learn from a few labels.

    Several processes can train on a known image set together: torchrun --nproc-per-node=2 -m debiaspl pretrain ...
    """
    with plain_errors():
        refuse_both(resume, overwrite)
        from debiaspl.data.open import is_folder_of_images
        from debiaspl.training.group import TIMEOUT
        from debiaspl.training.loop import RunOptions

        _refuse_nowhere(data)
        limit = TIMEOUT if timeout is None else timeout
        options = RunOptions(resume, device, workers, root, eager, limit, resume_command())
        if is_folder_of_images(data):
            refuse_for_photos(Path(data), root, timeout)
            table = one_table(labels), file_column, label_column
            _of_photos(Path(data), table, no_labels, settings or [], out, options, overwrite)
            return
        if any(option is not None for option in (labels or None, file_column, label_column, no_labels or None)):
            raise ValueError(
                f"{data} is a known image set with labels of its own; --labels, --file-column, --label-column and "
                "--no-labels are for a folder of photos."
            )
        _of_known(data, settings or [], out, options, overwrite)


def _refuse_nowhere(data: str) -> None:
    from debiaspl.data.known import SETS
    from debiaspl.data.open import is_known

    if not is_known(data) and not Path(data).expanduser().exists():
        known = ", ".join(sorted([*SETS, "digits"]))
        raise ValueError(
            f"{data} is neither a folder nor a known image set. Expected a folder of photos, or one of: {known}."
        )


def _of_photos(
    folder: Path,
    table: tuple[Path | None, str | None, str | None],
    no_labels: bool,
    settings: list[str],
    out: Path | None,
    options: "RunOptions",
    overwrite: bool,
) -> None:
    from debiaspl.data.table_form import Columns
    from debiaspl.photos.duration import estimate_start
    from debiaspl.photos.start import choose_start, start_name, train_start
    from debiaspl.photos.survey import survey_for_start
    from debiaspl.training import Run
    from debiaspl.training.device import find_device
    from debiaspl.training.settings import parse_settings

    before = Run(out or Path("runs") / start_name(folder))
    if options.resume and before.config_path.exists():
        # Labels may have been added since it was started.
        no_labels = no_labels or before.recipe().protocol.name == "no-labels"
    photos = survey_for_start(folder, table[0], Columns(*table[1:]), no_labels)
    machine = find_device(options.device).type
    recipe = parse_settings(choose_start(photos, machine), settings, load_files=True)
    _refuse_labels(recipe)
    place = out or Path("runs") / recipe.name
    with Run(place).replacing(recipe, overwrite):
        begun = Run.at(place, recipe, options.resume).config_path.exists()
        say(photos.headline() + _classes_of(photos))
        note_new_run(options.resume, place)
        _say_plan(recipe, place, begun, machine, None if begun else estimate_start(recipe, machine, options.eager))
        results = train_start(photos, recipe, place, options)
    typed = {"--labels": table[0], "--file-column": table[1], "--label-column": table[2], "--device": options.device}
    more = [part for name, value in typed.items() if value is not None for part in (name, str(value))]
    train = shlex.join(["debiaspl", "train", str(folder), *more, "--set", f"start={place}"])
    label = shlex.join(["debiaspl", "label", str(folder), "--classes", "NAME,OTHER NAME"])
    _say_end(results, place, [train] if photos.classes else [label, train])


def _classes_of(photos: "Photos") -> str:
    """A sentence on what the labels are used for. Class folders are named, in case they are not meant as classes."""
    if not photos.classes:
        return ""
    used = " Labels are not used for training, only to measure the features at the end."
    if not photos.in_folders:
        return used
    named = ", ".join(photos.classes[:NAMED]) + (", ..." if len(photos.classes) > NAMED else "")
    return f" The folders are used as classes ({named}); if they are not classes: --no-labels.{used}"


def _of_known(data: str, settings: list[str], out: Path | None, options: "RunOptions", overwrite: bool) -> None:
    from debiaspl.data import LazyImages, open_data
    from debiaspl.photos.duration import estimate_start
    from debiaspl.recipes.start import LARGEST_SIDE, start_for_known
    from debiaspl.training import Run
    from debiaspl.training.device import find_device
    from debiaspl.training.loop import train_as
    from debiaspl.training.settings import parse_settings
    from debiaspl.training.tasks import task_of

    machine = find_device(options.device).type
    whole = open_data(data, stream=True, root=options.root)
    images = len(whole.train) + (0 if whole.unlabeled is None else len(whole.unlabeled))
    recipe = start_for_known(data, images, machine)
    if not recipe.image_size and max(whole.train.images.shape[2:]) > LARGEST_SIDE[machine]:
        recipe = recipe.changed(image_size=LARGEST_SIDE[machine])
    if isinstance(whole.train.images, LazyImages):
        recipe = recipe.changed(stream=True)
    recipe = parse_settings(recipe, settings, load_files=True)
    _refuse_labels(recipe)
    place = out or Path("runs") / recipe.name
    with Run(place).replacing(recipe, overwrite):
        begun = (place / "config.json").exists()
        if rank() is None:
            Run.at(place, recipe, options.resume)
        task = task_of(recipe, root=options.root)
        if not rank():
            say(f"{len(task.unlabeled):,} images of {data}. Labels are not used for training.")
        note_new_run(options.resume, place)
        seconds = None if begun or rank() is not None else estimate_start(recipe, machine, options.eager, task)
        if not rank():
            _say_plan(recipe, place, begun, machine, seconds, tuple(task.unlabeled.images.shape[2:]))
        results = train_as(options, recipe, place, task)
    if not rank():
        _say_end(results, place, [_next_of_known(recipe, place)])


def _refuse_labels(recipe: "Recipe") -> None:
    from debiaspl.algorithms import STARTS
    from debiaspl.training.parts import find

    if find("algorithm", recipe.algorithm.name).learns_labels:
        raise ValueError(
            f"{recipe.algorithm.name} learns from labels, and pretrain learns without. Expected one of "
            f"{', '.join(STARTS)}; to learn from labels: debiaspl train."
        )


def _say_plan(
    recipe: "Recipe",
    place: Path,
    begun: bool,
    machine: str,
    seconds: float | None,
    size: tuple[int, ...] = (),
) -> None:
    from debiaspl.photos.duration import cores, in_words

    if begun:
        say(f"Resuming {place}.")
        return
    network = NETWORKS.get(recipe.network.name, recipe.network.name)
    height, width = size or (recipe.image_size, recipe.image_size)
    took = "" if seconds is None else f" About {in_words(seconds)} on {cores(machine)}."
    say(
        f"{network}, at {width} x {height} pixels, {recipe.algorithm.name}, {recipe.steps:,} steps of "
        f"{recipe.unlabeled_batch} images.{took}"
    )


def _say_end(results: dict[str, Any], place: Path, commands: list[str]) -> None:
    say(learned(results, place))
    say_skipped(results)
    say(f"The start is in {place}; the report is {report_of([place], place)}")
    say("Next, train from it:")
    for command in commands:
        say(f"  {command}")


def learned(results: dict[str, Any], place: Path) -> str:
    """The loss and, where there are labels, the quality of the features, in a line or two."""
    from debiaspl.training import Run

    said = _loss_of([record for record in Run(place).log() if record["losses"]])  # the first is from before training
    if "accuracy" not in results:
        return said
    labels = sum(results["labels"])
    if results.get("check", {}).get("kind") == "none":
        return f"{said}\nNo class has two labels, so the features cannot be measured."
    tested = "held-out labels" if "check" in results else "test images"
    return (
        f"{said}\nA nearest-class-mean classifier, of {labels:,} labels, is right for "
        f"{100 * results['accuracy']:.1f} % of {results['test']:,} {tested}: this measures the features only."
    )


def _loss_of(log: list[dict[str, Any]]) -> str:
    """How the loss has changed; the log may be empty."""
    if not log:
        return "The log has no loss."
    first, last = (sum(record["losses"].values()) for record in (log[0], log[-1]))
    steps = "in the first step" if log[0]["step"] == 1 else f"over the first {log[0]['step']:,} steps"
    begun = f"went from {first:.2f}, {steps}, to" if len(log) > 1 else "is"
    return f"The loss {begun} {last:.2f} at the end."


def _next_of_known(recipe: "Recipe", place: Path) -> str:
    """A recipe for the same set, with the network of the start."""
    from debiaspl.recipes import RECIPES
    from debiaspl.training.settings import as_text

    fitting = [one for one in RECIPES.values() if one.data == recipe.data and one.correction.name != "none"]
    # Those that begin with this very start, or for minutes, have settings of their own for small batches.
    kinds = (lambda one: one.start == f"runs/{recipe.name}", lambda one: one.name.endswith("-minutes"), bool)
    chosen = next((one for kind in kinds for one in fitting if kind(one)), None)
    typed = [f"start={place}"]
    if chosen is not None and chosen.image_size != recipe.image_size:
        typed += [f"image_size={recipe.image_size}"]
    if chosen is None or chosen.network != recipe.network:
        typed += [f"network={recipe.network.name}"]
        typed += [f"network.{key}={as_text(value)}" for key, value in recipe.network.settings.items()]
    name = chosen.name if chosen is not None else "RECIPE"
    return shlex.join(["debiaspl", "train", "--recipe", name, *(part for one in typed for part in ("--set", one))])
