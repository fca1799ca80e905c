"""``debiaspl export``: the model of a run, for other programs."""

from pathlib import Path
from typing import Annotated

from debiaspl.cli import options
from debiaspl.cli.options import argument, option
from debiaspl.cli.terminal import say

SHARES = {"run": "the run's", "even": "even"}


def export_command(
    run: options.EndedRun,
    out: Annotated[Path | None, argument("FILE", "The .onnx file to write.", "--hub alone")] = None,
    hub: Annotated[
        Path | None, option("Write a folder for the Hugging Face hub; nothing is sent.", "no folder", metavar="FOLDER")
    ] = None,
    check: Annotated[
        Path | None, option("Also check the file on this folder of photos.", "noise alone", metavar="PHOTOS")
    ] = None,
    shares: Annotated[
        str | None, option("Class shares: run or even.", "run; even after --optimise classes", metavar="run|even")
    ] = None,
    overwrite: options.OverwriteFiles = False,
    network: options.RunNetwork = None,
) -> None:
    """Export a model with its preprocessing, and check that the file gives the same probabilities as PyTorch."""
    if out is None and hub is None:
        raise ValueError("expected a file to write: debiaspl export RUN model.onnx; or --hub FOLDER.")
    if out is not None and out.suffix != ".onnx":
        raise ValueError(f"the format of {out} is not known. Expected a name in .onnx.")
    if shares == "folder":
        raise ValueError("--shares folder is for predict, which sees the folder. Expected run or even.")
    from debiaspl.deploy.export import TOLERANCE, export_file, some_photos
    from debiaspl.deploy.saved import check_inputs, load_model

    check_inputs(run, check)
    if out is None:
        options.refuse_useless({"--check": check, "--shares": shares}, "--hub alone writes no .onnx file")
    options.refuse_existing_files(overwrite, {"FILE": out})
    if hub is not None:
        from debiaspl.deploy.hub import export_hub

        export_hub(run, hub, overwrite)
        say(f"{hub} holds the model, its preprocessing and its card, README.md: read that before you share it")
    if out is None:
        return
    photos = [] if check is None else some_photos(check)
    model = load_model(run, network=network)
    model = model if shares is None else model.using(shares)
    if model.shares is not None:
        say(f"Probabilities are for {SHARES[model.shares.used]} class shares.")
    checked = export_file(model, out, photos)
    say(f"{out}: probabilities differ from PyTorch's by at most {checked.made:.1e} on pictures of five sizes")
    if checked.photos:
        say(f"  and by at most {checked.real:.1e} on {checked.photos} photos")
    if checked.as_predicted > TOLERANCE:
        say(f"  and by {checked.as_predicted:.1e} where debiaspl predict reads large JPEGs smaller (docs/deploy.md)")
