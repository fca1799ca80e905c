"""``debiaspl predict``: predict photos with the model of a run."""

from pathlib import Path
from typing import Annotated, Any

from debiaspl._printable import counted, printable
from debiaspl._processes import rank
from debiaspl.cli import options
from debiaspl.cli.options import argument, file, flag, option
from debiaspl.cli.terminal import progress_bar, say, warn_of_bad


def predict_command(
    run: options.EndedRun,
    photos: Annotated[
        Path | None, argument("PHOTOS", "A folder of photos, at any depth; or one photo.", "--features")
    ] = None,
    out: Annotated[
        Path | None, file("Write predictions: .csv, .jsonl or .parquet. Needed for a folder.", "print, for one photo")
    ] = None,
    probabilities: Annotated[
        bool, flag("--probabilities", "Also write the probability of every class, a column each.")
    ] = False,
    overwrite: options.OverwriteFiles = False,
    skipped: Annotated[Path | None, file("Write a CSV of files without a prediction.", "no file")] = None,
    page: Annotated[Path | None, file("Write an HTML page of thumbnails by class.", "no page")] = None,
    shares: Annotated[
        str | None,
        option(
            "Class shares of the photos: those of the run, of this folder (estimated anew), or even ones.",
            "run; even after --optimise classes",
            metavar="run|folder|even",
        ),
    ] = None,
    features: options.RunFeatures = None,
    network: options.RunNetwork = None,
    part: options.PartOf = None,
    on: options.OnRay = None,
    device: options.Device = None,
) -> None:
    """Predict the class of every photo in a folder, or of one photo.

    Where --out is a folder, it gets a table of every 10,000 photos, and parts of the work can be done anywhere.
    """
    from debiaspl.data.text import csv_line, shown
    from debiaspl.deploy.predict import listed, predict_folder, predict_parts
    from debiaspl.deploy.saved import check_inputs, load_model
    from debiaspl.deploy.tables import table_writer
    from debiaspl.files import write_text
    from debiaspl.training.process import find_device

    photos, features = options.photos_or_features(photos, features)
    check_inputs(run, photos)
    of_a_table: dict[str, Any] = {"--skipped": skipped, "--page": page}
    if out is not None and not out.suffix and not photos.is_file():
        of_a_table |= {"--overwrite": overwrite, "--shares": shares}
        options.refuse_useless(of_a_table, f"{out} is a folder of many tables")
        own, on_ray = options.part_of(part), options.is_on_ray(on)
        with progress_bar("tables", "predicting") as progress:
            count, bad = predict_parts(
                run, photos, out, own, on_ray, probabilities, features, network, device, progress
            )
        warn_of_bad(bad, "predicted")
        say(f"part {own[0] + 1} of {own[1]}: {counted(count, 'table')} in {out}")
        return
    if part is not None or on is not None or rank() is not None:
        raise ValueError("--part and --on need a folder to write to, without an extension: --out predicted.")
    if out is None and not photos.is_file():
        raise ValueError(f"{photos} is not a single photo. Say where to write the predictions: --out predicted.csv.")
    if out is None:
        given = of_a_table | {"--probabilities": probabilities, "--shares folder": shares == "folder"}
        options.refuse_useless(given, "without --out predicted.csv there is no table")
    else:
        table_writer(out)  # raises for a format that cannot be written
        options.refuse_existing_files(overwrite, {"--out": out, "--skipped": skipped, "--page": page})
    model = load_model(run, find_device(device), network)
    model = model if shares is None else model.using(shares)
    if out is None:
        say(_one_photo(model, photos))
        return
    rows: list[Any] = []
    watch = rows.extend if page is not None else lambda made: None
    with progress_bar("images", "predicting") as progress:
        listing = listed(photos)
        found = predict_folder(model, listing, out, probabilities, progress, watch, features)
    classes = [f"{printable(name)} {count:,}" for name, count in found.counts.items()]
    say(f"{counted(sum(found.counts.values()), 'image')}: {shown(classes, limit=12)}")
    say(f"Their labels are in {out}")
    if found.different:
        other = f"these photos have other class shares than those of the run: {printable(found.different)}"
        todo = "--shares folder estimates them anew, --shares even counts every class the same"
        say(f"warning: {other}. {todo}.", err=True)
    if page is not None:
        from debiaspl.report.photo_pages import sheet_page

        write_text(page, sheet_page(rows, model.classes, run, photos))
        say(f"The page is {page}")
    warn_of_bad(found.bad, "predicted", "; --skipped FILE writes all")
    if listing.skipped:
        say(f"{counted(len(listing.skipped), 'other file')} left out; --skipped FILE says why", err=True)
    if skipped is not None:
        reasons = sorted([*found.bad.items(), *listing.skipped])
        write_text(skipped, "".join(map(csv_line, (("file_name", "reason"), *reasons))))
        say(f"Files without a prediction are in {skipped}", err=True)


def _one_photo(model: Any, photo: Path) -> str:
    """The class of a photo, and the two next classes."""
    sure, label = model.probabilities([photo])[0].topk(min(3, len(model.classes)))
    pairs = zip(sure.tolist(), label.tolist(), strict=True)
    first, *others = [f"{model.classes[number]} {100 * share:.0f} %" for share, number in pairs]
    return printable(f"{photo}: {first} ({', '.join(others)})")
