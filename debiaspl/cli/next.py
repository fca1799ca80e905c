"""``debiaspl next``: which photos to label next."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl.cli import options
from debiaspl.cli.options import file, option
from debiaspl.cli.terminal import counted, progress_bar, say, warn_of_bad


def next_command(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN|PHOTOS", help="A run that has ended; or the photos, without a run.", show_default="--features"
        ),
    ] = None,
    photos: Annotated[
        Path | None, typer.Argument(metavar="PHOTOS", help="A folder of photos, at any depth.", show_default="no run")
    ] = None,
    encoder: options.Encoder = None,
    out: Annotated[Path, file("Write the photos to this table, with an empty label column.")] = Path("next.csv"),
    count: Annotated[int, option("How many photos to pick.", min=1)] = 50,
    labels: Annotated[
        Path | None, file("Read from this table which photos have a label already.", "that of RUN or PHOTOS")
    ] = None,
    column: options.TableColumns = None,
    page: Annotated[Path | None, file("Write an HTML page of thumbnails.", "no page")] = None,
    features: options.Features = None,
    overwrite: options.OverwriteFiles = False,
    network: options.RunNetwork = None,
    device: options.Device = None,
) -> None:
    """Pick the photos to label next: those that cover most of what the model is unsure of; or the first ones."""
    if photos is not None and encoder is not None:
        raise ValueError("--encoder chooses the first labels, without a run: leave out RUN, or --encoder.")
    from debiaspl.deploy.saved import check_inputs
    from debiaspl.files import write_text

    if photos is None and run is not None and (run / "results.json").is_file():
        photos = features
    model_of = run if photos is not None else None
    photos, features = options.photos_or_features(photos or run, features)
    if model_of is not None:
        check_inputs(model_of, photos)
    options.refuse_existing_files(overwrite, {"--out": out, "--page": page})
    columns = options.table_columns(column)
    if model_of is None:
        found, known, model = _first(photos, features, encoder, count, labels, columns, device)
    else:
        model = str(model_of)
        found, known = _next(model_of, network, photos, features, count, labels, columns, device)
    write_text(out, found.to_csv())
    left_out = "" if known is None else f", {len(known):,} with a label left out"
    say(f"{len(found.picked):,} of {counted(found.unlabeled, 'image')}{left_out}; they are in {out}")
    if known is None:
        say("It is not known which images have a label already. Give their table: --labels FILE.", err=True)
    if page is not None:
        from debiaspl.report.photo_pages import next_page

        write_text(page, next_page(found, model, photos, out, None if known is None else len(known)))
        say(f"The page is {page}")
    warn_of_bad(found.bad)


def _next(
    run: Path,
    network: str | None,
    photos: Path,
    features: Path | None,
    count: int,
    table: Path | None,
    columns: Any,
    device: str | None,
) -> tuple[Any, dict[str, str] | None]:
    """What the model of a run asks for, and the photos that have a label, None where that is not known."""
    from debiaspl.data.listing import list_images
    from debiaspl.deploy.labeled import labeled_files, learned_from_teacher
    from debiaspl.deploy.next import learned_by, suggest
    from debiaspl.deploy.saved import load_model
    from debiaspl.training.process import find_device

    known = labeled_files(run, photos, list_images(photos).files, table, columns)
    model = load_model(run, find_device(device), network)
    with progress_bar("images") as show:
        found = suggest(model, photos, count, known, partial(show, "looking"), learned_by(run), features)
    if table is None and learned_from_teacher(run):
        say("The run learned from labels of its teacher, which nobody has checked: these images count as unlabeled.")
    return found, known


def _first(
    photos: Path,
    features: Path | None,
    encoder: str | None,
    count: int,
    table: Path | None,
    columns: Any,
    device: str | None,
) -> tuple[Any, dict[str, str] | None, str]:
    """The first photos to label, by an encoder; the photos that have a label; and the encoder's name."""
    from debiaspl.data.listing import list_images
    from debiaspl.deploy.labeled import labels_of_folder
    from debiaspl.deploy.next import suggestions
    from debiaspl.photos.encoding import FOLDER, PhotoEncoding, about_kept
    from debiaspl.training.process import find_device

    listing, kept = list_images(photos), features or FOLDER
    known = labels_of_folder(photos, listing.files, table, columns)
    encoding = PhotoEncoding(listing, encoder, find_device(device).type, kept)
    with progress_bar("images") as show:
        rows, pool, skipped = encoding.pool(range(len(listing.files)), partial(show, "encoding"))
    bad = {listing.files[row]: why for row, why in skipped.items()}
    found = suggestions(photos, pool, [listing.files[row] for row in rows], count, known, bad)
    say(about_kept(kept))
    return found, known, encoding.encoder.name
