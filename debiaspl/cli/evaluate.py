"""``debiaspl evaluate``: the accuracy of a run's model on photos of known classes."""

from pathlib import Path
from typing import Annotated

from debiaspl._printable import printable
from debiaspl.cli import options
from debiaspl.cli.terminal import print_table, progress_bar, say, warn_of_bad


def evaluate_command(
    run: options.EndedRun,
    photos: Annotated[Path, options.argument("PHOTOS", "Class folders, or any photos with --labels.")],
    labels: options.LabelTable = None,
    column: options.TableColumns = None,
    out: Annotated[Path | None, options.file("Write all numbers as JSON.", "no file")] = None,
    every: Annotated[bool, options.flag("--every", "Also count photos that the run was trained with.")] = False,
    overwrite: options.OverwriteFiles = False,
    network: options.RunNetwork = None,
    device: options.Device = None,
) -> None:
    """Measure a model on photos of known classes: accuracy, each class, and which classes it confuses."""
    from debiaspl.deploy.saved import check_inputs, load_model
    from debiaspl.files import write_json
    from debiaspl.report.evaluation import HEADER, evaluate_folder
    from debiaspl.training.process import find_device

    check_inputs(run, photos)
    options.refuse_existing_files(overwrite, {"--out": out})
    model = load_model(run, find_device(device), network)
    with progress_bar("images", "evaluating") as progress:
        found = evaluate_folder(model, run, photos, labels, options.table_columns(column), every, progress)
    rows = found.rows()
    print_table(HEADER, rows)
    if len(rows) < len(found.classes):
        say(f"The {len(rows)} of {len(found.classes):,} classes that are recognised least. All: --out FILE.")
    for line in found.lines():
        say(printable(line))
    if found.trained_with:
        say(f"{found.trained_with:,} photos that the run was trained with are left out; to include them: --every.")
    if found.trained_with is None:
        unknown = "it is not known which photos the run was trained with"
        say(f"warning: {unknown}. If some are among these, the numbers are too good.", err=True)
    if found.absent:
        say(f"{found.absent:,} photos of the table do not exist.")
    if found.without_label:
        say(f"{found.without_label:,} photos without a known class are left out.")
    warn_of_bad(found.bad)
    if out is not None:
        inputs = {"run": str(run), "photos": str(photos), "labels": None if labels is None else str(labels)}
        write_json(out, {**inputs, **found.to_json()})
        say(f"All numbers are in {out}")
