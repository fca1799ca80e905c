"""``debiaspl train FOLDER``: somebody's own photos."""

from pathlib import Path
from typing import Any

import typer

from debiaspl.cli.resuming import warn_of_new_run
from debiaspl.cli.terminal import command_to_go_on, plain_errors


def train_on_photos(
    folder: Path,
    table: tuple[Path | None, str | None, str | None],
    encoder: str | None,
    settings: list[str],
    out: Path | None,
    resume: bool,
    device: str | None,
    workers: int,
    eager: bool,
    allow_alike: bool,
) -> None:
    """Choose, say what was chosen, train, and say what came out. ``table`` is where the labels are, if not in the
    folder, and what its two columns are called."""
    with plain_errors():
        from debiaspl.data.label_table import Columns
        from debiaspl.photos.check import check_for
        from debiaspl.photos.choose import choose
        from debiaspl.photos.describe import caption, verdict
        from debiaspl.photos.run import BASELINE, train_photos, with_check
        from debiaspl.photos.survey import refuse_alike, survey
        from debiaspl.recipes import RECIPES
        from debiaspl.report.runs import write_report
        from debiaspl.training import Run

        photos = survey(folder, table[0], Columns(*table[1:]))
        if not allow_alike:
            refuse_alike(photos)
        machine = _machine(device)
        loaded = None if encoder is None else load_named(photos, machine, encoder)
        named = None if encoder is None or loaded is None else (encoder, loaded)
        recipe = choose(photos, machine, named).with_settings(settings, load_files=True)
        check = check_for(photos, seed=recipe.seed)
        place = out or Path("runs") / recipe.name
        checked = with_check(recipe, check)
        begun = Run.at(place, checked, resume).config_path.exists()
        typer.echo(photos.headline() + ("" if photos.unlabeled else " Every image has a label."))
        if resume and not begun:
            warn_of_new_run(place, checked)
        typer.echo(f"Going on with {place}." if begun else _plan(recipe, photos, check, machine, loaded, eager))
        outcome = train_photos(recipe, check, place, resume, machine, workers, command_to_go_on(), eager)
        _print_table(outcome)
        typer.echo(caption(outcome))
        typer.echo(verdict(outcome))
        if "skipped" in outcome.semi:
            typer.echo(f"{len(outcome.semi['skipped'])} files could not be read; results.json names them", err=True)
        both = [place] if outcome.baseline is None else [place / BASELINE, place]
        typer.echo(f"The run is in {place}; the report is {write_report(both, place / 'report.html', RECIPES)}")


def _machine(device: str | None) -> str:
    from debiaspl.training.device import find_device

    return find_device(device).type


def load_named(photos: Any, machine: str, name: str) -> Any:
    """The encoder of this name, at the size that it looks at these photos with."""
    from debiaspl.encoders import load_encoder
    from debiaspl.photos.choose import working_size

    encoder = load_encoder(name)
    if encoder.any_size:
        encoder.image_size = working_size(photos, machine, encoder)
    return encoder


def _plan(recipe: Any, photos: Any, check: Any, machine: str, encoder: Any, eager: bool) -> str:
    """The second line: what will be trained, how it is checked and how long it takes."""
    from debiaspl.encoders import lite0_is_installed
    from debiaspl.photos.duration import cores, estimate, in_words
    from debiaspl.photos.run import count_runs

    runs = count_runs(recipe, check)
    took = in_words(estimate(recipe, photos, check, machine, encoder, eager))
    frozen = recipe.network.settings.get("frozen")
    network = "a small network" if machine == "cpu" else "a ResNet-9"
    if encoder is not None:
        network = f"{encoder.name}, {'frozen' if frozen else 'fine-tuned'}"
    hint = ""
    if encoder is None and machine == "cpu" and lite0_is_installed():
        hint = " A pretrained network usually does far better: --encoder efficientnet-lite0."
    return (
        f"{network[0].upper()}{network[1:]}, at {recipe.image_size} x {recipe.image_size} pixels, {recipe.steps:,} "
        f"steps. {check.words()} About {took} on {cores(machine)}{f', in {runs} runs' if runs > 1 else ''}.{hint}"
    )


def _print_table(outcome: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    from debiaspl.photos.describe import HEADER, rows

    first, *others = HEADER
    table = Table(first, *others, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows(outcome):
        table.add_row(*row)
    Console().print(table)
