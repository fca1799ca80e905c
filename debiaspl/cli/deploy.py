"""``debiaspl predict``, ``next`` and ``export``: use the model of a run."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl._printable import printable
from debiaspl._torchrun import rank
from debiaspl.cli.options import (
    Device,
    Encoder,
    EndedRun,
    Features,
    OnRay,
    OverwriteFiles,
    PartOf,
    RunNetwork,
    TableColumns,
    columns_of,
    file,
    flag,
    is_on_ray,
    one_table,
    option,
    photos_or_features,
)
from debiaspl.cli.parts import part_of
from debiaspl.cli.terminal import plain_errors, progress_bar, say

SHARES = {"run": "the run's", "even": "even"}
MOST_NAMED = 10
"""How many files without a prediction are named on the terminal."""


def predict_command(
    run: EndedRun,
    photos: Annotated[
        Path | None,
        typer.Argument(
            metavar="PHOTOS", help="A folder of photos, at any depth; or one photo.", show_default="--features"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        file(
            "Write predictions: .csv, .jsonl, .parquet, or .json for Label Studio. Needed for a folder.",
            "print, for one photo",
        ),
    ] = None,
    probabilities: Annotated[
        bool, flag("--probabilities", "Also write the probability of every class, a column each.")
    ] = False,
    overwrite: OverwriteFiles = False,
    skipped: Annotated[Path | None, file("Write a CSV of files without a prediction.", "no file")] = None,
    image_prefix: Annotated[
        str | None, option("For label-studio: where it finds the photos.", "its local files", metavar="URL")
    ] = None,
    page: Annotated[Path | None, file("Write an HTML page of thumbnails by class.", "no page")] = None,
    shares: Annotated[
        str | None,
        option(
            "Class shares of the photos: those of the run, of this folder (estimated anew), or even ones.",
            "run; even after --optimise classes",
            metavar="run|folder|even",
        ),
    ] = None,
    features: Features = None,
    network: RunNetwork = None,
    part: PartOf = None,
    on: OnRay = None,
    device: Device = None,
) -> None:
    """Predict the class of every photo in a folder, or of one photo.

    Where --out is a folder, it gets a table of every 10,000 photos, and parts of the work can be done anywhere.
    """
    with plain_errors():
        from debiaspl.data.text import shown
        from debiaspl.deploy.predict import predict_folder
        from debiaspl.deploy.saved import check_inputs, load_model
        from debiaspl.deploy.tables import format_of
        from debiaspl.training.process import find_device

        photos, features = photos_or_features(photos, features)
        check_inputs(run, photos)
        if out is not None and not out.suffix and not photos.is_file():
            others = {"--skipped": skipped, "--image-prefix": image_prefix, "--page": page, "--overwrite": overwrite}
            others["--shares"] = shares
            if named := [name for name, value in others.items() if value]:
                raise ValueError(f"{' and '.join(named)} are for one table, and {out} is a folder. Leave them out.")
            own, on_ray = part_of(part), is_on_ray(on)
            _predict_parts((run, network), photos, out, (own, on_ray), probabilities, features, device)
            return
        if part is not None or on is not None or rank() is not None:
            raise ValueError("--part and --on need a folder to write to, without an extension: --out predicted.")
        if out is None and photos.is_file():
            given: dict[str, Any] = {"--probabilities": probabilities, "--image-prefix": image_prefix}
            given |= {"--skipped": skipped, "--shares folder": shares == "folder"}
            useless = [name for name, value in (given | {"--page": page}).items() if value]
            if useless:
                raise ValueError(f"{' and '.join(useless)} are for a table. Add --out predicted.csv.")
            model = load_model(run, find_device(device), network)
            say(_one_photo(model if shares is None else model.using(shares), photos))
            return
        if out is None:
            raise ValueError(
                f"{photos} is not a single photo. Say where to write the predictions: --out predicted.csv."
            )
        chosen = format_of(out)
        if image_prefix and chosen != "label-studio":
            raise ValueError(f"--image-prefix is for Label Studio, and {out} is not: expected --out tasks.json.")
        _refuse_existing(overwrite, {"--out": out, "--skipped": skipped, "--page": page})
        model = load_model(run, find_device(device), network)
        model = model if shares is None else model.using(shares)
        rows: list[Any] = []
        watch = rows.extend if page is not None else lambda made: None
        try:
            with progress_bar("images") as show:
                progress = partial(show, "predicting")
                found = predict_folder(
                    model, photos, out, chosen, probabilities, overwrite, image_prefix, progress, watch, features
                )
        except KeyboardInterrupt:
            say(f"stopped; {out} was not written", err=True)
            raise typer.Exit(130) from None
        classes = [f"{printable(name)} {count:,}" for name, count in found.counts.items()]
        say(f"{_counted(found.images, 'image')}: {shown(classes, limit=12)}")
        say(f"Their labels are in {out}")
        if different := found.different:
            say(
                f"warning: these photos have other class shares than those of the run: {printable(different)}. "
                "--shares folder estimates them anew, --shares even counts every class the same.",
                err=True,
            )
        if page is not None:
            from debiaspl.files import write_text
            from debiaspl.report.photo_pages import sheet_page

            write_text(page, sheet_page(rows, model.classes, run, photos))
            say(f"The page is {page}")
        _warn_of_bad(found.bad)
        if found.others:
            say(f"{_counted(len(found.others), 'other file')} left out: not images", err=True)
        if skipped is not None:
            _write_skipped(found, skipped)


def _predict_parts(
    model: tuple[Path, str | None],
    photos: Path,
    out: Path,
    how: tuple[tuple[int, int], bool],
    probabilities: bool,
    features: Path | None,
    device: str | None,
) -> None:
    """``model`` is the run and its own network, if it has one; ``how`` is the part, and whether to use Ray."""
    from debiaspl.deploy.predict_parts import TableWriter, predict_parts

    write = TableWriter(*model, photos, out, probabilities, features, device)
    with progress_bar("tables") as show:
        count = predict_parts(write, *how, partial(show, "predicting"))
    say(f"part {how[0][0] + 1} of {how[0][1]}: {_counted(count, 'table')} in {out}")


def _one_photo(model: Any, photo: Path) -> str:
    """The class of a photo, and the two next classes."""
    probabilities = model.probabilities([photo])[0]
    sure, label = probabilities.topk(min(3, len(model.classes)))
    first, *others = [
        f"{printable(model.classes[number])} {100 * share:.0f} %"
        for share, number in zip(sure.tolist(), label.tolist(), strict=True)
    ]
    return f"{printable(str(photo))}: {first} ({', '.join(others)})"


def next_command(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN|PHOTOS",
            help="A run that has ended; or the photos, without a run.",
            show_default="--features",
        ),
    ] = None,
    photos: Annotated[
        Path | None,
        typer.Argument(metavar="PHOTOS", help="A folder of photos, at any depth.", show_default="no run"),
    ] = None,
    encoder: Encoder = None,
    out: Annotated[Path, file("Write the photos to this table, with an empty label column.")] = Path("next.csv"),
    count: Annotated[int, option("How many photos to pick.", min=1)] = 50,
    labels: Annotated[
        list[Path] | None, file("Read from this table which photos have a label already.", "that of RUN or PHOTOS")
    ] = None,
    column: TableColumns = None,
    page: Annotated[Path | None, file("Write an HTML page of thumbnails.", "no page")] = None,
    features: Features = None,
    overwrite: OverwriteFiles = False,
    network: RunNetwork = None,
    device: Device = None,
) -> None:
    """Pick the photos to label next: those that cover most of what the model is unsure of; or the first ones."""
    with plain_errors():
        if photos is not None and encoder is not None:
            raise ValueError("--encoder chooses the first labels, without a run: leave out RUN, or --encoder.")
        from debiaspl.data.label_table import Columns
        from debiaspl.deploy.saved import check_inputs
        from debiaspl.files import write_text

        if photos is None and run is not None and (run / "results.json").is_file():
            photos = features
        model_of = run if photos is not None else None
        photos, features = photos_or_features(photos or run, features)
        if model_of is not None:
            check_inputs(model_of, photos)
        _refuse_existing(overwrite, {"--out": out, "--page": page})
        table, columns = one_table(labels), Columns(**columns_of(column))
        if model_of is None:
            found, known, model = _first((photos, features), encoder, count, table, columns, device)
        else:
            model = str(model_of)
            found, known = _next(model_of, (photos, features), count, (table, columns), device, network)
        write_text(out, found.to_csv())
        left_out = "" if known is None else f", {len(known):,} with a label left out"
        say(f"{len(found.picked):,} of {_counted(found.unlabeled, 'image')}{left_out}; they are in {out}")
        if known is None:
            say("It is not known which images have a label already. Give their table: --labels FILE.", err=True)
        if page is not None:
            from debiaspl.report.photo_pages import next_page

            write_text(page, next_page(found, model, photos, out, None if known is None else len(known)))
            say(f"The page is {page}")
        _warn_of_bad(found.bad)


Places = tuple[Path, Path | None]
"""Photos, and a folder of features, if there is one."""


def _next(
    run: Path, places: Places, count: int, labels: tuple[Path | None, Any], device: str | None, network: str | None
) -> Any:
    """What the model of a run asks for, and the photos that have a label, None where that is not known."""
    from debiaspl.data.listing import list_images
    from debiaspl.deploy.labeled import labeled_files, learned_from_teacher
    from debiaspl.deploy.next import learned_by, suggest
    from debiaspl.deploy.saved import load_model
    from debiaspl.training.process import find_device

    (photos, features), (table, columns) = places, labels
    known = labeled_files(run, photos, list_images(photos).files, table, columns)
    model = load_model(run, find_device(device), network)
    with progress_bar("images") as show:
        watch = partial(show, "looking")
        found = suggest(model, photos, count, known, watch, learned_by(run), features)
    if table is None and learned_from_teacher(run):
        say("The run learned from labels of its teacher, which nobody has checked: these images count as unlabeled.")
    return found, known


def _first(
    places: Places, encoder: str | None, count: int, table: Path | None, columns: Any, device: str | None
) -> Any:
    """The first photos to label, by an encoder; the photos that have a label; and the encoder's name."""
    from debiaspl.data.listing import list_images
    from debiaspl.deploy.labeled import labels_of_folder
    from debiaspl.deploy.next import suggestions
    from debiaspl.photos.encoding import FOLDER, PhotoEncoding, about_kept
    from debiaspl.training.process import find_device

    photos, kept = places[0], places[1] or FOLDER
    listing = list_images(photos)
    known = labels_of_folder(photos, listing.files, table, columns)
    encoding = PhotoEncoding(listing, encoder, find_device(device).type, kept)
    with progress_bar("images") as show:
        rows, pool, skipped = encoding.pool(range(len(listing.files)), partial(show, "encoding"))
    bad = {listing.files[row]: why for row, why in skipped.items()}
    found = suggestions(photos, pool, [listing.files[row] for row in rows], count, known, bad)
    say(about_kept(kept))
    return found, known, encoding.encoder.name


def export_command(
    run: EndedRun,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...", help="Files to write: .onnx, or .pt2 of torch.export.", show_default="--hub alone"
        ),
    ] = None,
    hub: Annotated[
        Path | None,
        option(
            "Write a folder for the Hugging Face hub, with a model card; nothing is sent.",
            "no folder",
            metavar="FOLDER",
        ),
    ] = None,
    check: Annotated[
        Path | None, option("Also check the file on this folder of photos.", "noise alone", metavar="PHOTOS")
    ] = None,
    shares: Annotated[
        str | None,
        option("Class shares: run or even.", "run; even after --optimise classes", metavar="run|even"),
    ] = None,
    overwrite: OverwriteFiles = False,
    network: RunNetwork = None,
) -> None:
    """Export a model with its preprocessing, and check that the file gives the same probabilities as PyTorch."""
    with plain_errors():
        files = files or []
        if not files and hub is None:
            raise ValueError("expected a file to write: debiaspl export RUN model.onnx; or --hub FOLDER.")
        if unknown := [str(path) for path in files if path.suffix not in (".onnx", ".pt2")]:
            raise ValueError(f"the format of {' and '.join(unknown)} is not known. Expected names in .onnx or .pt2.")
        from debiaspl.deploy.check import TOLERANCE, some_photos
        from debiaspl.deploy.export import export_onnx, export_torch
        from debiaspl.deploy.saved import check_inputs, load_model

        check_inputs(run, check)
        _refuse_existing(overwrite, {f"FILE {number}": path for number, path in enumerate(files, 1)})
        if hub is not None:
            from debiaspl.deploy.hub import export_hub

            export_hub(run, hub, overwrite)
            say(f"{hub} holds the model, its preprocessing and its card, README.md: read that before you share it")
        if not files:
            return
        photos = [] if check is None else some_photos(check)
        model = load_model(run, network=network)
        if shares == "folder":
            raise ValueError("--shares folder is for predict, which sees the folder. Expected run or even.")
        model = model if shares is None else model.using(shares)
        if model.shares is not None:
            say(f"Probabilities are for {SHARES[model.shares.used]} class shares.")
        for path in files:
            export = export_onnx if path.suffix == ".onnx" else export_torch
            checked = export(model, path, overwrite, photos)
            differ = "probabilities differ from PyTorch's by at most"
            say(f"{path}: {differ} {checked.made:.1e} on pictures of five sizes")
            if checked.photos:
                say(f"  and by at most {checked.real:.1e} on {checked.photos} photos")
            if checked.as_predicted > TOLERANCE:
                say(
                    f"  and by {checked.as_predicted:.1e} where debiaspl predict reads large JPEGs at a smaller scale; "
                    "docs/deploy.md says how to read them the same way"
                )


def _refuse_existing(overwrite: bool, outputs: dict[str, Path | None]) -> None:
    """Raise where a file exists already, or where two outputs are the same file."""
    from debiaspl.files import refuse_existing

    seen: dict[str, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        first = seen.setdefault(os.path.realpath(path), name)
        if first != name:
            raise ValueError(f"{first} and {name} are the same file, {path}. Expected a file for each.")
        refuse_existing(path, overwrite)


def _warn_of_bad(bad: dict[str, str]) -> None:
    """Name some of the files without a prediction."""
    if not bad:
        return
    say(f"warning: {_counted(len(bad), 'image')} could not be predicted:", err=True)
    for path, reason in list(bad.items())[:MOST_NAMED]:
        say(f"  {printable(path)}: {reason}", err=True)
    if len(bad) > MOST_NAMED:
        say(f"  and {len(bad) - MOST_NAMED:,} more; --skipped FILE writes all", err=True)


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _write_skipped(found: Any, path: Path) -> None:
    from debiaspl.data.text import csv_line
    from debiaspl.files import write_text

    rows = sorted([*found.bad.items(), *found.others])
    write_text(path, "".join(map(csv_line, (("file_name", "reason"), *rows))))
    say(f"Files without a prediction are in {path}", err=True)
