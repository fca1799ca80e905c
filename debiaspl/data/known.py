"""Known sets by name: where they are, and how to read them."""

import os
from pathlib import Path

from debiaspl._checks import did_you_mean
from debiaspl.data.errors import DataError
from debiaspl.data.formats.cifar import CIFAR10, CIFAR100
from debiaspl.data.formats.definition import KnownSet, TrainTest
from debiaspl.data.formats.digits import digits
from debiaspl.data.formats.eurosat import EUROSAT
from debiaspl.data.formats.imagenet import IMAGENET
from debiaspl.data.formats.mnist import MNIST

__all__ = ["SETS", "TrainTest", "data_folders", "digits", "find", "known_set", "load", "unknown"]

SETS: dict[str, KnownSet] = {known.name: known for known in (CIFAR10, CIFAR100, EUROSAT, IMAGENET, MNIST)}


def load(name: str, root: Path | str | None = None) -> TrainTest:
    """Load a known set by name.

    It is searched in the folder ``$DEBIASPL_DATA``, in ``~/.cache/debiaspl``, and in ``root`` if given, which may also
    be the set's own folder.
    """
    if name == "digits":
        return digits()
    known = known_set(name)
    place = _found(known, root)
    try:
        return known.read(place)
    except OSError as error:
        raise DataError(f"{error.filename or place} could not be read: {error.strerror or error}.") from error


def known_set(name: str) -> KnownSet:
    if name not in SETS:
        raise unknown(name)
    return SETS[name]


def unknown(name: str) -> DataError:
    """The error for a name that no set has."""
    names = sorted([*SETS, "digits"])
    hint = did_you_mean(name, names)
    return DataError(f"there is no image set named {name!r}.{hint} Known image sets are {', '.join(names)}.")


def data_folders() -> list[Path]:
    """Folders in which sets are searched, in order; downloads go into the first."""
    given = os.environ.get("DEBIASPL_DATA")
    cache = Path.home() / ".cache" / "debiaspl"
    return [Path(given).expanduser(), cache] if given else [cache]


def find(known: KnownSet, folders: list[Path], own: Path | None = None) -> Path | None:
    """Where the set is, complete or not: a place below these folders, or below ``own``, or ``own`` itself."""
    places = [folder / name for folder in folders for name in known.places]
    if own is not None:
        places += [*(own / name for name in known.places), own]
    return next((place for place in places if any((place / sign).exists() for sign in known.signs)), None)


def _found(known: KnownSet, root: Path | str | None) -> Path:
    own = None if root is None else Path(root).expanduser()
    place = find(known, data_folders(), own)
    if place is not None:
        return place
    folders = [*data_folders(), *([] if own is None else [own])]
    asked = [str(folder) if folder.exists() else f"{folder} (does not exist)" for folder in folders]
    advice = f"Get it with: debiaspl data get {known.name}" if known.sources else known.elsewhere
    raise DataError(
        f"the set {known.name} was not found: looked for {' or '.join(known.places)} in {', '.join(asked)}. {advice}"
    )
