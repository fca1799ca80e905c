"""``debiaspl predict``: a label for every photo of a folder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl.cli.terminal import plain_errors, progress_bar

FEW = 10


def predict_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that has ended.")],
    photos: Annotated[Path, typer.Argument(metavar="PHOTOS", help="A folder of images; those in its sub-folders too.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="What to write; its ending tells the format.")],
    format_: Annotated[
        str | None, typer.Option("--format", help="csv, jsonl, parquet or label-studio; else by the ending.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also those of every class, a column each.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    skipped: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Name all files that gave no prediction, as CSV.")
    ] = None,
    image_prefix: Annotated[
        str | None,
        typer.Option(metavar="URL", help="label-studio: where it finds the images; local files unless given."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda or cpu; a GPU if there is one.")] = None,
) -> None:
    """Predict the class of every photo in a folder."""
    with plain_errors():
        from debiaspl.deploy.predict import predict_folder, refuse_existing
        from debiaspl.deploy.saved import load_model
        from debiaspl.deploy.tables import format_of
        from debiaspl.training.device import find_device

        chosen = format_of(out, format_)
        for path in (out, *([] if skipped is None else [skipped])):
            refuse_existing(path, overwrite)
        model = load_model(run, find_device(device))
        try:
            with progress_bar("images") as show:
                found = predict_folder(
                    model,
                    photos,
                    out,
                    chosen,
                    probabilities,
                    overwrite,
                    image_prefix,
                    lambda done, total: show("predicting", done, total),
                )
        except KeyboardInterrupt:
            typer.echo(f"stopped; {out} was not written", err=True)
            raise typer.Exit(130) from None
        _print(found, out)
        if skipped is not None:
            _write_skipped(found, skipped)


def _print(found: Any, out: Path) -> None:
    from debiaspl.data.errors import shown

    classes = [f"{_on_one_line(name)} {count:,}" for name, count in found.counts.items()]
    typer.echo(f"{counted(found.images, 'image')}: {shown(classes, limit=12)}")
    typer.echo(f"Their labels are in {out}")
    warn_of_bad(found.bad)
    if found.others:
        typer.echo(f"{counted(len(found.others), 'other file')} left aside: not images", err=True)


def warn_of_bad(bad: dict[str, str]) -> None:
    """Name a few of the files that gave nothing."""
    if not bad:
        return
    typer.echo(f"warning: {counted(len(bad), 'image')} gave no prediction:", err=True)
    for file, reason in list(bad.items())[:FEW]:
        typer.echo(f"  {_on_one_line(file)}: {reason}", err=True)
    if len(bad) > FEW:
        typer.echo(f"  and {len(bad) - FEW:,} more; --skipped FILE names all", err=True)


def counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _on_one_line(text: str) -> str:
    """Names come from strangers: what would move the cursor or cannot be encoded is shown as Python writes it."""
    return text if text.isprintable() else repr(text)


def _write_skipped(found: Any, path: Path) -> None:
    from debiaspl.data.csv_text import csv_line
    from debiaspl.files import write_text

    rows = sorted([*found.bad.items(), *found.others])
    write_text(path, "".join(map(csv_line, (("file_name", "reason"), *rows))))
    typer.echo(f"Files without a prediction are in {path}", err=True)
