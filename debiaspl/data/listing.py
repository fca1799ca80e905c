"""Which files of a folder are images, and which label each has; no image is opened here."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

import torch
from torch import Tensor

from debiaspl.data.class_names import UNLABELED_NAME, composed
from debiaspl.data.errors import DataError
from debiaspl.data.images import UNLABELED
from debiaspl.data.parts import find_parts

Skipped = tuple[tuple[str, str], ...]

EXTENSIONS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp"),
    *(".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"),
)
# What operating systems leave behind and no leading dot hides.
_CLUTTER = {"__macosx", "thumbs.db", "desktop.ini", "@eadir"}
_FOLDER, _IMAGE = "a folder", "an image"


@dataclass(frozen=True, eq=False)
class Listing:
    """The images of a folder, sorted by name."""

    root: Path
    files: tuple[str, ...]
    """Paths relative to root, with "/"; bytes that are no UTF-8 are kept the way os.fsdecode keeps them."""
    labels: Tensor
    """int64, (N,); -1 where the image has no label."""
    classes: tuple[str, ...]
    skipped: Skipped
    """What is no image, or cannot be reached: (file, reason), sorted by name."""
    absent: tuple[str, ...] = ()
    """Files that the table names and that are not there, as it names them."""


def list_folder(
    root: Path | str,
    labels: Path | str | None = None,
    classes: Sequence[str] | None = None,
    allow_absent: bool = False,
) -> Listing:
    """Class folders, or any folder with a table of labels.

    Without ``labels`` the table is ``root/labels.csv`` if there is one; else every folder in root is a class, with all
    that lies in it at any depth. ``classes`` gives the names in their order; without it they are sorted.
    ``allow_absent`` lets a table name files that are not there, as long as some are.
    """
    root = Path(root)
    files, skipped = find_images(root)
    table = root / "labels.csv" if labels is None else Path(labels)
    absent: tuple[str, ...] = ()
    if labels is not None or table.is_file():
        named, absent = _from_table(root, table, files, allow_absent)
        itself = os.path.abspath(table)
        others = ((file, why) for file, why in skipped if file not in named)
        skipped = tuple((file, why) for file, why in others if os.path.abspath(root / file) != itself)
    else:
        named = _from_folders(root, files, classes)
    if not named:
        found = (
            f"{_count(skipped, 'other file')}: {shown([file for file, _ in skipped])}" if skipped else "no other file"
        )
        raise DataError(f"{root} holds no image and {found}. Images end in {' '.join(EXTENSIONS)}.")
    order = _class_order(root, {name for name in named.values() if name is not None}, classes)
    files = tuple(sorted(named))
    number: dict[str | None, int] = {name: position for position, name in enumerate(order)}
    numbers = torch.tensor([number.get(named[file], UNLABELED) for file in files], dtype=torch.int64)
    return Listing(root, files, numbers, order, skipped, absent)


def find_images(root: Path) -> tuple[tuple[str, ...], Skipped]:
    """Every file below root that is named like an image, and everything else that is not hidden, with the reason."""
    if not root.is_dir():
        found = "is a file (unpack an archive; put a single image into a folder)" if root.exists() else "does not exist"
        raise DataError(f"{root} {found}. Expected a folder of images.")
    entries = sorted(_walk(root))
    images = tuple(name for name, kind in entries if kind == _IMAGE)
    return images, tuple((name, kind) for name, kind in entries if kind != _IMAGE)


def shown(names: Sequence[str], limit: int = 5) -> str:
    """The first names, for a message; those with line breaks or broken letters as Python writes them."""
    first = ", ".join(name if name.isprintable() else repr(name) for name in names[:limit])
    return f"{first} and {len(names) - limit} more" if len(names) > limit else first


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Each folder is read once, links to folders last: loops end, and a folder goes by its real name."""
    seen: dict[tuple[int, int], str] = {}
    folders, links = [""], list[str]()
    while folders or links:
        folder = folders.pop() if folders else links.pop(0)
        try:
            status = os.stat(root / folder)
            first = seen.setdefault((status.st_dev, status.st_ino), folder)
            if first != folder:
                yield folder, f"the same folder as {first or 'the whole one'}, which is read already"
                continue
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError as error:
            yield folder or ".", f"cannot be opened: {error.strerror}"
            continue
        for entry in entries:
            if _is_hidden(entry.name):
                continue
            name, kind = f"{folder}/{entry.name}".lstrip("/"), _kind(entry)
            if kind == _FOLDER:
                (links if entry.is_symlink() else folders).append(name)
            else:
                yield name, kind


def _kind(entry: os.DirEntry[str]) -> str:
    """A folder, an image, or the reason why it is skipped."""
    try:
        if entry.is_dir():
            return _FOLDER
        if entry.is_file():
            extension = PurePath(entry.name).suffix
            return _IMAGE if extension.lower() in EXTENSIONS else f"not an image: {extension or 'no extension'}"
    except OSError as error:
        return f"cannot be reached: {error.strerror}"
    # Pipes and devices are left alone: opening a pipe waits for ever.
    return "a link to a file that is not there" if entry.is_symlink() else "neither a file nor a folder"


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.casefold() in _CLUTTER


def _from_folders(root: Path, files: Sequence[str], classes: Sequence[str] | None) -> dict[str, str | None]:
    """File -> class, by the folder directly below root that it lies in."""
    loose = [file for file in files if "/" not in file]
    if loose and len(loose) == len(files) and classes is not None:
        return dict.fromkeys(files)
    if loose:
        raise DataError(
            f"{root} has {_count(loose, 'image')} outside of any class folder: {shown(loose)}. "
            f"Expected {root}/CLASS/*.jpg and, for images without a label, {root}/{UNLABELED_NAME}/*.jpg; "
            "or a table labels.csv with the columns file_name,label."
        )
    used = {file.split("/")[0] for file in files}
    folders = {path.name for path in root.iterdir() if path.is_dir() and not _is_hidden(path.name)} | used
    if classes is None:
        refuse_parts(root, folders, files)
    empty = sorted(folders - used - {UNLABELED_NAME})
    if files and empty:
        raise DataError(
            f"{root} has {_count(empty, 'class folder')} without an image: {shown(empty)}. "
            f"Add images, which end in {' '.join(EXTENSIONS)}, or remove the folder."
        )
    return {file: _class_name(file.split("/")[0]) for file in files}


def refuse_parts(root: Path, folders: Iterable[str], files: Sequence[str]) -> None:
    """``train/`` and ``val/`` would be two classes, and a run would learn to tell them apart."""
    found = find_parts(set(folders) - {UNLABELED_NAME}, files)
    if found is None:
        return
    main = f"{root}/{found.main}"
    beside = f", and move {root}/{UNLABELED_NAME} into it" if UNLABELED_NAME in folders else ""
    raise DataError(
        f"{root} holds {shown(found.names)}, named like parts of a data set and not like classes; {main} holds "
        f"{shown(found.classes)}. Expected a folder for each class. Give the part to learn from instead: {main}"
        f"{beside}. If they are classes after all, label their images in a table with the columns file_name,label."
    )


def _from_table(
    root: Path, table: Path, files: Sequence[str], allow_absent: bool
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """File -> class, by the rows of the table, and its rows without a file; a file that has no row has no label."""
    # macOS writes accents in two code points where most keyboards write one: both forms find the file.
    known = {composed(file): file for file in files} | {file: file for file in files}
    labels: dict[str, str | None] = {}
    lines: dict[str, int] = {}
    missing = []
    for line, name, label in _rows(table):
        file = _locate(root, table, line, name, known)
        if file is None:
            missing.append(name)
        elif labels.setdefault(file, label) != label:
            raise DataError(
                f"{table} says {labels[file] or 'no label'} for {shown([file])} in line {lines[file]} "
                f"and {label or 'no label'} in line {line}. Keep one of the two."
            )
        else:
            lines.setdefault(file, line)
    if missing and not (allow_absent and labels):
        raise DataError(
            f"{table} names {_count(missing, 'file')} not in {root}: {shown(missing)}. "
            f"Paths are relative to {root} and written with /."
        )
    return dict.fromkeys(files) | labels, tuple(dict.fromkeys(missing))


def _locate(root: Path, table: Path, line: int, name: str, known: dict[str, str]) -> str | None:
    """The file that a row means; a file named in the table needs no image extension."""
    # Judged without spaces around it, as it may be read below; and by the rules of Windows too, on any system.
    bare = name.strip()
    if PurePath(bare).anchor or bare.startswith("\\") or ".." in bare.replace("\\", "/").split("/"):
        raise DataError(
            f"{table} names {shown([name])} in line {line}, which is absolute or leaves {root}. "
            f"Expected a path below {root}, relative to it; for images elsewhere, link them into it."
        )
    for spelled in (PurePosixPath(name).as_posix(), PurePosixPath(bare).as_posix()):
        file = known.get(spelled) or known.get(composed(spelled))
        if file is not None or os.path.isfile(root / spelled):
            return file or spelled
    return None


def _rows(table: Path) -> Iterator[tuple[int, str, str | None]]:
    """(line, file, label) of every row that is not blank."""
    rows = _numbered(table)
    header = [cell.strip().casefold() for cell in next(rows, (0, []))[1]]
    if not {"file_name", "label"} <= set(header):
        found = f"has the columns {shown(header)}" if header else "is empty"
        raise DataError(f"{table} {found}. Expected a first line with file_name and label, separated by commas.")
    file_at, label_at = header.index("file_name"), header.index("label")
    for line, cells in rows:
        if any(cell.strip() for cell in cells[len(header) :]):
            raise DataError(
                f"{table} has {len(cells)} cells in line {line}, expected {len(header)} as in its first line. "
                'A name that holds a comma is written in quotes: "a, b.jpg".'
            )
        cells += [""] * (len(header) - len(cells))
        name, label = cells[file_at], cells[label_at].strip()
        if not name.strip() or _holds_rows(label):
            found = "a label that runs over several lines" if name.strip() else "no file name"
            raise DataError(f"{table} has {found} in line {line}. Is a quote left open, or a cell left out?")
        yield line, name, _class_name(label)


def _holds_rows(label: str) -> bool:
    """Whether a quote that was left open has made other rows a part of this label. A line break alone is none: class
    names may hold one."""
    return any(Path(line.partition(",")[0]).suffix.lower() in EXTENSIONS for line in label.splitlines()[1:])


def _numbered(table: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the line each begins in."""
    try:
        # utf-8-sig drops the mark that spreadsheets put in front.
        text = table.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{table} cannot be read: {error.strerror}. Expected a csv file of labels.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{table} is not UTF-8: byte {error.object[error.start]:#x} in line {line}. "
            'Save it as UTF-8 (in a spreadsheet: "CSV UTF-8").'
        ) from error
    reader, line = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True), 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{table} cannot be read from line {line} on: {error}. Is a quote left open?") from error


def _class_order(root: Path, found: set[str], classes: Sequence[str] | None) -> tuple[str, ...]:
    order = tuple(sorted(found)) if classes is None else tuple(composed(name.strip()) for name in classes)
    # Lone surrogates stand for bytes that are no UTF-8; no report or table could be written with such a class.
    broken = [name for name in order if name in ("", UNLABELED_NAME) or any("\ud800" <= c <= "\udfff" for c in name)]
    if classes is None and len(order) < 2 and not broken:
        raise DataError(
            f"{f'the classes of {root} are {shown(order)}' if order else f'no image of {root} has a label'}. "
            "Expected two or more different names: label a few images of every class, in a table with the columns "
            f"file_name,label, or in a folder for each class beside {UNLABELED_NAME}/."
        )
    if len(set(order)) < 2 or len(set(order)) < len(order) or broken:
        raise DataError(
            f"the classes of {root} are {shown(broken or order) or 'not known'}. Expected two or more different names "
            f"in UTF-8, none of them {UNLABELED_NAME}: one folder each, or given in the table or as classes."
        )
    unknown = sorted(found - set(order))
    if unknown:
        raise DataError(
            f"{root} has {_count(unknown, 'label')} not among the classes given: {shown(unknown)}. "
            f"The classes given are {shown(order, limit=20)}."
        )
    return order


def _class_name(name: str) -> str | None:
    return None if name in ("", UNLABELED_NAME) else composed(name)


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
