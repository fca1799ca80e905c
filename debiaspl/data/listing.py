"""Lists the images of a folder and their labels; no image is opened."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from debiaspl._printable import counted
from debiaspl.data.file_names import EXTENSIONS, HEIC, NO_HEIC, FileNames, is_image_name, leads_out, reads_heic
from debiaspl.data.images import UNLABELED, Files
from debiaspl.data.label_table import USUAL, Columns, class_name, match_files, read_label_table, tell_once
from debiaspl.data.manifest import encoded_names
from debiaspl.data.text import UNLABELED_NAME, DataError, composed, is_utf8, means_no_label, shown

Skipped = tuple[tuple[str, str], ...]

# Files that operating systems create, without a leading dot.
_CLUTTER = {"__macosx", "thumbs.db", "desktop.ini", "@eadir"}
_PARTS = frozenset(
    ("train", "training", "val", "valid", "validation", "dev", "eval", "evaluation", "test", "testing", "holdout")
)
_OWN = "about.json", "*/about.json", ".features/*/about.json", "*/config.json"
"""What folders of features and of runs hold, which are no classes."""
TABLE = "labels.csv"
_FOLDER, _IMAGE = "a folder", "an image"
_LEAVES = "a link that leaves the folder; --follow-links reads it"


@dataclass(frozen=True, eq=False)
class Listing:
    """The images of a folder, sorted by name."""

    root: Path
    files: tuple[str, ...]
    """Paths relative to root, with "/"; bytes that are not UTF-8 as in os.fsdecode."""
    labels: Tensor
    """int64, (N,); -1 if the image has no label."""
    classes: tuple[str, ...]
    skipped: Skipped
    """Files that are not images: (file, reason), sorted by name."""
    absent: tuple[str, ...] = ()
    """Files that the table names but that do not exist, as it names them."""
    passed_over: tuple[str, ...] = ()
    """Images in folders named like a class of the table, which the table does not name: they have no label."""
    stored: Files | None = None
    """Where the images are, if not in files of their own."""


def list_folder(
    root: Path | str,
    labels: Path | str | None = None,
    classes: Sequence[str] | None = None,
    allow_absent: bool = False,
    columns: Columns = USUAL,
    needs_classes: bool = True,
    folders: bool = False,
) -> Listing:
    """List class folders, or any folder with a table of labels.

    Without ``labels`` the table is ``root/labels.csv`` if it exists; otherwise every folder in root is a class, with
    all images below it at any depth. ``classes`` are in this order; by default they are sorted. With ``allow_absent`` a
    table may name files that do not exist, as long as some do. Labels of fewer than two classes are an error, unless
    ``needs_classes`` is False: then no image has one. With ``folders``, an image that the table does not name has the
    label of its class folder.
    """
    root = Path(root)
    files, skipped = _find_images(root)
    table = root / TABLE if labels is None else Path(labels)
    absent = passed_over = tuple[str, ...]()
    if labels is not None or table.is_file():
        given, absent = match_files(table, read_label_table(table, columns), FileNames(root, files), allow_absent)
        lies_in = {file: class_name(file.split("/")[0]) if folders and "/" in file else None for file in files}
        named = lies_in | given
        passed_over = _passed_over(named, given)
        used = {*named, os.path.relpath(table, root)}
        skipped = tuple((file, why) for file, why in skipped if file not in used)
    elif columns != USUAL:
        raise DataError(f"{root} has no labels.csv, whose columns could be named. Name the table too: --labels.")
    else:
        named = _from_folders(root, files, classes)
    if not named:
        raise _no_image(root, skipped)
    files, found = tuple(sorted(named)), {name for name in named.values() if name is not None}
    if not needs_classes and len(found) < 2:
        return Listing(root, files, torch.full((len(files),), UNLABELED), (), skipped, absent)
    order = _class_order(root, found, classes, table if table.is_file() else root)
    number: dict[str | None, int] = {name: position for position, name in enumerate(order)}
    numbers = torch.tensor([number.get(named[file], UNLABELED) for file in files], dtype=torch.int64)
    return Listing(root, files, numbers, order, skipped, absent, passed_over)


def _passed_over(named: dict[str, str | None], given: dict[str, str | None]) -> tuple[str, ...]:
    """Of the files without a label and without a row: those in a folder named like an existing label."""
    classes = {name.casefold() for name in given.values() if name is not None}
    rest = (file for file, label in named.items() if label is None and file not in given and "/" in file)
    return tuple(sorted(file for file in rest if composed(file.split("/")[0]).casefold() in classes))


def _find_images(root: Path) -> tuple[tuple[str, ...], Skipped]:
    """All files below root that are named like images, and all others that are not hidden."""
    if not root.is_dir():
        found = "is a file (unpack an archive; put a single image into a folder)" if root.exists() else "does not exist"
        raise DataError(f"{root} {found}. Expected a folder of images.")
    if names := encoded_names(root):
        return names, ()
    # The folder's own table belongs there, also if it is unused.
    entries = sorted(entry for entry in _walk(root) if entry[0] != TABLE)
    images = tuple(name for name, kind in entries if kind == _IMAGE)
    for reason in (_LEAVES, NO_HEIC):
        if images and (count := sum(kind == reason for _, kind in entries)):
            tell_once(f"Of {root}, {counted(count, 'file')} left out: {reason}.")
    return images, tuple((name, kind) for name, kind in entries if kind != _IMAGE)


def list_images(root: Path) -> Listing:
    """All images of a folder, at any depth, without labels."""
    files, others = _find_images(root)
    if not files:
        raise _no_image(root, others)
    return Listing(root, files, torch.full((len(files),), UNLABELED), (), others)


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Each folder is read once, links to folders last: loops end, and a folder has its real name."""
    seen: dict[tuple[int, int], str] = {}
    folders, links = [""], list[str]()
    while folders or links:
        folder = folders.pop() if folders else links.pop(0)
        try:
            status = os.stat(root / folder)
            first = seen.setdefault((status.st_dev, status.st_ino), folder)
            if first != folder:
                yield folder, f"the same folder as {first or 'the whole one'}, which is already read"
                continue
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder or ".", f"cannot be opened: {error.strerror}"
            continue
        for entry in entries:
            if _is_hidden(entry.name):
                continue
            name, kind = f"{folder}/{entry.name}".lstrip("/"), _kind(entry)
            if entry.is_symlink() and kind in (_FOLDER, _IMAGE) and leads_out(root, root / name):
                kind = _LEAVES
            if kind == _FOLDER:
                (links if entry.is_symlink() else folders).append(name)
            else:
                yield name, kind


def _kind(entry: os.DirEntry[str]) -> str:
    """A folder, an image, or the reason why the entry is skipped."""
    try:
        if entry.is_dir():
            return _FOLDER
        if entry.is_file():
            extension = os.path.splitext(entry.name)[1]
            if extension.lower() in HEIC and not reads_heic():
                return NO_HEIC
            return _IMAGE if is_image_name(entry.name) else f"not an image: {extension or 'no extension'}"
    except OSError as error:
        return f"cannot be reached: {error.strerror}"
    # Pipes and devices are not opened: opening a pipe would wait forever.
    return "a link to a file that is not there" if entry.is_symlink() else "neither a file nor a folder"


def _no_image(root: Path, others: Skipped) -> DataError:
    named = shown([file for file, _ in others])
    found = f"{counted(len(others), 'other file')}: {named}" if others else "no other file"
    links = sum(reason == _LEAVES for _, reason in others)
    hint = f" {links:,} of them are links out of the folder: --follow-links reads them." if links else ""
    hint += f" {NO_HEIC}." if any(reason == NO_HEIC for _, reason in others) else ""
    return DataError(f"{root} contains no image and {found}. Images end in {' '.join(EXTENSIONS)}.{hint}")


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.casefold() in _CLUTTER


def _from_folders(root: Path, files: Sequence[str], classes: Sequence[str] | None) -> dict[str, str | None]:
    """File -> class, from the folder directly below root."""
    loose = [file for file in files if "/" not in file]
    if loose and len(loose) == len(files):
        return dict.fromkeys(files)
    if loose:
        found = f"{root} has {counted(len(loose), 'image')} outside of class folders: {shown(loose)}"
        raise DataError(f"{found}. Move them into CLASS/ or {UNLABELED_NAME}/, or add labels.csv: file_name,label.")
    used = {file.split("/")[0] for file in files}
    every = {path.name for path in root.iterdir() if path.is_dir() and not _is_hidden(path.name)}
    folders = used | {name for name in every - used if not any(map(any, map((root / name).glob, _OWN)))}
    if classes is None:
        refuse_parts(root, folders, files)
    empty = sorted(name for name in folders - used if not means_no_label(name))
    if files and empty:
        links = [name for name in empty if leads_out(root, root / name)]
        hint = f" {shown(links)}: {_LEAVES}." if links else ""
        found = f"{root} has {counted(len(empty), 'class folder')} without an image: {shown(empty)}"
        raise DataError(f"{found}. Add images, which end in {' '.join(EXTENSIONS)}, or remove it.{hint}")
    return {file: class_name(file.split("/")[0]) for file in files}


def refuse_parts(root: Path, folders: Iterable[str], files: Sequence[str]) -> None:
    """Raise for ``train/`` and ``val/``, which would become two classes: all folders are named like parts of a set, and
    at least one of them contains only folders, two or more."""
    names = sorted(name for name in folders if not means_no_label(name))
    if not all(name.casefold() in _PARTS for name in names):
        return
    inner = {name: {file.split("/")[1] for file in files if file.startswith(f"{name}/")} for name in names}
    loose = {file.split("/")[0] for file in files if file.count("/") == 1}
    cut = [name for name in names if len(inner[name]) > 1 and name not in loose]
    if not cut:
        return
    part = next((name for name in cut if name.casefold().startswith("train")), cut[0])
    found = f"{root} contains {shown(names)}, named like parts of a data set, expected a folder for each class"
    beside = f" after you have moved {UNLABELED_NAME}/ into it" if UNLABELED_NAME in folders else ""
    raise DataError(f"{found}. Use {root}/{part}{beside}; or, if they are classes, a table with file_name,label.")


def _class_order(root: Path, found: set[str], classes: Sequence[str] | None, place: Path) -> tuple[str, ...]:
    """The given classes, otherwise all that were found in this place, sorted."""
    if classes is not None:
        order = tuple(map(composed, classes))
        if unknown := sorted(found - set(order)):
            known = f"outside of the given classes: {shown(unknown)}. The given classes are {shown(order, limit=20)}"
            raise DataError(f"{place} has {counted(len(unknown), 'label')} {known}.")
        return order
    order = tuple(sorted(found))
    if not order:
        photos = shlex.quote(str(root))
        raise DataError(
            f"no image of {root} has a label yet. Label a few of every class: debiaspl label {photos} --classes "
            f'"..."; or use class names alone: debiaspl zeroshot {photos} --classes "..."; or name a table: --labels.'
        )
    # Such a class could not be written to a report or table.
    if broken := [name for name in order if not is_utf8(name)]:
        raise DataError(f"the classes of {root} are {shown(broken)}. Expected names in UTF-8: rename the folders.")
    if len(order) < 2:
        one = f"{root} has labels of one class only: {shown(order)}. Expected two classes or more"
        raise DataError(f"{one}, in a table with the columns file_name,label or in folders beside {UNLABELED_NAME}/.")
    return order
