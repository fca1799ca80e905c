"""Opens a labelling session from the arguments of the command."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from debiaspl.data.file_names import FileNames
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.listing import list_images, refuse_parts
from debiaspl.data.text import DataError, check_class_names, composed, means_no_label
from debiaspl.files import Busy, remove_leftovers
from debiaspl.files import locked as lock_file
from debiaspl.label.guide import EncoderGuide, Guide, RunGuide
from debiaspl.label.session import Session
from debiaspl.label.table import Table, why_unnameable
from debiaspl.photos.encoding import FOLDER
from debiaspl.training.process import RunError


@contextmanager
def open_session(
    photos: Path,
    classes: tuple[str, ...] | None = None,
    labels: Path | None = None,
    run: Path | None = None,
    columns: Columns = USUAL,
    encoder: str | None = None,
    features: Path = FOLDER,
    network: str | None = None,
) -> Iterator[Session]:
    """The images of a folder and its table, locked against other sessions. Without a run, images are chosen by the
    features of ``encoder``, which are kept in the folder ``features``.

    Classes that are not given are those of the run, of the table, or of the class folders, in this order.
    """
    listing = list_images(photos)
    files = listing.files
    path = Path(os.path.realpath(photos / "labels.csv" if labels is None else labels))
    model = None
    if run is not None:
        from debiaspl.deploy import load_model

        model = load_model(run, network=network)
        classes = model.classes if classes is None else classes
    with locked(path):
        remove_leftovers(path)  # of a session that was killed while it wrote
        names = FileNames(photos, files)
        if classes is None:
            classes = _found_classes(Table(path, names, columns=columns), files, photos)
        table = Table(path, names, classes, columns)
        # A table may name files that have no extension of an image: they are shown as well.
        files += tuple(sorted(set(table.answers) - set(files)))
        if not path.exists():
            _take_over_class_folders(table, files, classes)
        guide: Guide | None = None
        if model is not None and run is not None:
            from debiaspl.deploy.next import learned_by

            guide = RunGuide(model, photos, files, table, classes, learned_by(run))
            encoder = getattr(model.network, "source", None)
        elif encoder is not None:
            guide = EncoderGuide(listing, encoder, features, table, classes)
        session = Session(photos, files, classes, table, guide, encoder)
        session.start()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Keep other sessions off this table."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_file(table.with_name(f".{table.name}.lock")))
        except Busy as error:
            by = f" by process {error.process}" if error.process else ""
            raise RunError(
                f"{table} is being labelled already{by}. "
                "Continue in its page, or end it with Ctrl-C; or write to another table: --out."
            ) from error
        except OSError as error:
            raise RunError(
                f"could not write beside {table}: {error.strerror}. "
                "Choose a table in a folder that can be written: --out."
            ) from error
        yield


def _found_classes(table: Table, files: tuple[str, ...], photos: Path) -> tuple[str, ...]:
    found = table.classes_found()
    if found:
        return check_class_names(found, str(table.path), alike=True)
    folders = sorted(name for name in {file.split("/")[0] for file in files if "/" in file} if not means_no_label(name))
    if len(folders) < 2 or any("/" not in file for file in files):
        raise DataError(
            f'{photos} does not say which classes there are. Name them: --classes "owl,heron,other", or --classes FILE '
            "with one per line."
        )
    refuse_parts(photos, folders, files)
    return check_class_names(folders, str(photos), alike=True)


def _take_over_class_folders(table: Table, files: tuple[str, ...], classes: tuple[str, ...]) -> None:
    """Write labels of images in class folders to the table: with a table, training does not read class folders."""
    folders = {file: composed(file.split("/")[0]) for file in files if "/" in file and why_unnameable(file) is None}
    labeled = {file: folder for file, folder in folders.items() if folder in classes}
    if labeled:
        table.answer_all(labeled)
