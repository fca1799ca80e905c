"""``debiaspl next``: which photos to label next."""

from pathlib import Path
from typing import Annotated

from debiaspl._printable import counted
from debiaspl.cli import options
from debiaspl.cli.options import argument, file, option
from debiaspl.cli.terminal import progress_bar, say, warn_of_bad

TAUGHT = "The run learned from labels of its teacher, which nobody has checked: these images count as unlabeled."


def next_command(
    run: Annotated[
        Path | None, argument("RUN|PHOTOS", "A run that has ended; or the photos, without a run.", "--features")
    ] = None,
    photos: Annotated[Path | None, argument("PHOTOS", "A folder of photos, at any depth.", "no run")] = None,
    encoder: options.Encoder = None,
    out: Annotated[Path, file("Write the photos to this table, with an empty label column.")] = Path("next.csv"),
    count: Annotated[int, option("How many photos to pick.", min=1)] = 50,
    labels: Annotated[
        Path | None, file("Read from this table which photos have a label already.", "that of RUN or PHOTOS")
    ] = None,
    column: options.TableColumns = None,
    page: Annotated[Path | None, file("Write an HTML page of thumbnails.", "no page")] = None,
    features: options.RunFeatures = None,
    overwrite: options.OverwriteFiles = False,
    network: options.RunNetwork = None,
    device: options.Device = None,
) -> None:
    """Pick the photos to label next: those that cover most of what the model is unsure of; or the first ones."""
    if photos is not None and encoder is not None:
        raise ValueError("--encoder chooses the first labels, without a run: leave out RUN, or --encoder.")
    from debiaspl.data.listing import list_images
    from debiaspl.deploy.labeled import labeled_files, learned_from_teacher
    from debiaspl.deploy.next import learned_by, see_pool, suggest
    from debiaspl.deploy.saved import check_inputs, load_model
    from debiaspl.files import write_text
    from debiaspl.photos.encoding import FOLDER, PhotoEncoding, about_kept
    from debiaspl.training.process import find_device

    if photos is None and run is not None and (run / "results.json").is_file():
        if features is None:
            raise ValueError(f"{run} is a run. Expected its photos too: debiaspl next {run} PHOTOS.")
        photos = features
    model_of = run if photos is not None else None
    photos, features = options.photos_or_features(photos or run, features)
    if model_of is not None:
        check_inputs(model_of, photos)
    options.refuse_existing_files(overwrite, {"--out": out, "--page": page})
    listing = list_images(photos)
    rows = range(len(listing.files))
    known = labeled_files(model_of, photos, listing.files, labels, options.table_columns(column))
    with progress_bar("images", "looking") as watch:
        if model_of is None:
            kept = features or FOLDER
            encoding = PhotoEncoding(listing, encoder, find_device(device).type, kept)
            seen = encoding.pool(rows, watch)
            chosen_by, note = encoding.encoder.name, "" if features else about_kept(kept)
        else:
            model = load_model(model_of, find_device(device), network)
            images = model.photos(photos, listing.files)
            seen = see_pool(model, images, rows, watch, learned_by(model_of), features)
            chosen_by, note = str(model_of), TAUGHT if labels is None and learned_from_teacher(model_of) else ""
        found = suggest(listing.files, seen, count, known or {})
    if note:
        say(note)
    write_text(out, found.to_csv())
    left_out = "" if known is None else f", {len(known):,} with a label left out"
    say(f"{len(found.picked):,} of {counted(found.unlabeled, 'image')}{left_out}; they are in {out}")
    if known is None:
        say("It is not known which images have a label already. Give their table: --labels FILE.", err=True)
    if page is not None:
        from debiaspl.report.photo_pages import next_page

        write_text(page, next_page(found, chosen_by, photos, out, None if known is None else len(known)))
        say(f"The page is {page}")
    warn_of_bad(found.bad)
