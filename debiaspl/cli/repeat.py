"""``debiaspl repeat``: run again what a result file records."""

from pathlib import Path
from typing import Annotated

import typer

from debiaspl.cli.options import AsJson, Device, Overwrite, Resume, Settings, refuse_both
from debiaspl.cli.terminal import plain_errors, print_json, resume_command, say


def repeat_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A result file, such as results/start/*/*.json, or a run's results.json."),
    ],
    folds: Annotated[
        list[int] | None,
        typer.Option("--fold", min=0, help="A fold to run, by its seed; may be repeated.", show_default="all recorded"),
    ] = None,
    settings: Settings = None,
    start_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set-start", metavar="KEY=VALUE", help="Change a setting of its start.", show_default="no change"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the runs.", show_default="runs/repeat-NAME")] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: Device = None,
    json_: AsJson = False,
) -> None:
    """Repeat the runs that a result file records, and say whether the new numbers agree.

    With --set, to shorten a trial for example, the runs are not the recorded ones, and numbers are not compared.
    """
    with plain_errors():
        refuse_both(resume, overwrite)
        from debiaspl.recipes.repeat import in_words, plan, read_recorded, recorded_folds, repeat
        from debiaspl.training.loop import RunOptions

        recorded = read_recorded(file)
        name = recorded.recipe.name if file.name == "results.json" else file.stem
        folder = out or Path("runs") / f"repeat-{name}"
        planned = plan(recorded, folds or [], folder, settings or [], start_settings or [])
        for line in recorded_folds(planned):
            say(line, err=json_)
        options = RunOptions(resume, device, go_on=resume_command())
        result = repeat(planned, folder, options, lambda text: say(text, err=json_), overwrite)
        if json_:
            print_json(result)
            return
        for line in in_words(result):
            say(line)
        say(f"Runs and repeat.json are in {folder}")
