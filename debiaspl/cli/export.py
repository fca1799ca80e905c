"""``debiaspl export``: the model of a run as a file for other programs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl.cli.terminal import plain_errors


def export_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that has ended.")],
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Write ONNX.")] = None,
    torch_: Annotated[Path | None, typer.Option("--torch", metavar="FILE", help="Write torch.export (.pt2).")] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="PHOTOS", help="A folder of images to check the file with, beside noise.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write a model with its preprocessing inside, check it against PyTorch, and say how far they differ."""
    with plain_errors():
        if onnx is None and torch_ is None:
            raise ValueError("nothing to write: expected --onnx FILE, --torch FILE, or both.")
        from debiaspl.deploy.check import some_photos
        from debiaspl.deploy.export import export_onnx, export_torch
        from debiaspl.deploy.predict import refuse_existing
        from debiaspl.deploy.saved import load_model

        for path in (onnx, torch_):
            if path is not None:
                refuse_existing(path, overwrite)
        photos = [] if check is None else some_photos(check)
        model = load_model(run)
        if onnx is not None:
            _print(onnx, export_onnx(model, onnx, overwrite, photos))
        if torch_ is not None:
            _print(torch_, export_torch(model, torch_, overwrite, photos))


def _print(path: Path, checked: Any) -> None:
    from debiaspl.deploy.check import TOLERANCE

    typer.echo(f"{path}: probabilities differ from PyTorch's by at most {checked.made:.1e} on pictures of five sizes")
    if checked.photos:
        typer.echo(f"  and by at most {checked.real:.1e} on {checked.photos} photos")
    if checked.as_predicted > TOLERANCE:
        typer.echo(
            f"  and by {checked.as_predicted:.1e} where debiaspl predict reads large JPEGs at a smaller scale; "
            "docs/deploy.md tells how to read them alike"
        )
