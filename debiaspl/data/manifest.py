"""A folder of numbered files about images: line k of its manifest names the images of file k.

The manifest is written first, so that several processes can share the work. A folder of features holds one such folder
for each encoder, and can take the place of the photos.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from debiaspl._checks import extra
from debiaspl.data.file_names import leaves
from debiaspl.data.text import DataError, shown
from debiaspl.files import memory, open_own, parse_json, try_lock, write_bytes

ROWS = 10_000
"""Most images of a file."""
MANIFEST, ABOUT = "manifest.jsonl", "about.json"
_KEY = re.compile("[0-9a-f]{16}")
Names = tuple[str, ...]


def regular_file(path: Path) -> Path:
    """The path itself. Raises OSError or ValueError for links, pipes, and what does not fit in memory."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or not memory.fits(found.st_size):
        raise ValueError("it is not a regular file, or does not fit in memory")
    return path


def read_manifest(folder: Path) -> list[Names]:
    """The names of each file; what follows a damaged line does not count."""
    files: list[Names] = []
    try:
        for line in regular_file(folder / MANIFEST).read_bytes().splitlines():
            names = parse_json(line)
            if not isinstance(names, list) or not 0 < len(names) <= ROWS or any(leaves(str(name)) for name in names):
                break
            files.append(tuple(map(str, names)))
    except (OSError, ValueError):
        pass
    return files


def add_to_manifest(folder: Path, files: Sequence[Names], new: Sequence[str]) -> list[Names]:
    """Write ``new`` names behind those of ``files``, into lines of their own; returns all lines."""
    every = [*files, *(tuple(new[start : start + ROWS]) for start in range(0, len(new), ROWS))]
    write_bytes(folder / MANIFEST, "".join(f"{json.dumps(names)}\n" for names in every).encode())
    return every


def run_on_ray(make: Callable[[], Callable[[int], Any]], numbers: Sequence[int]) -> list[Any]:
    """Share these numbers among the workers of a Ray cluster: RAY_ADDRESS, or this machine. ``make`` is called in every
    worker; what it returns, for a number in one of them. Ray repeats what is lost. Returns their JSON, in any order."""
    if not numbers:
        return []
    ray, data = (extra(name, "--on ray needs Ray: pip install 'debiaspl[ray]'.") for name in ("ray", "ray.data"))
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    gpus, cpus = (int(ray.cluster_resources().get(kind, 0)) for kind in ("GPU", "CPU"))
    nodes = sum(node["Alive"] for node in ray.nodes())
    # A node needs a CPU beside those of its workers, or nothing reads the numbers.
    workers = max(1, min(gpus or cpus - nodes, len(numbers)))

    class Worker:
        def __init__(self) -> None:
            if os.path.isdir(here):  # paths may be relative
                os.chdir(here)
            self.work = make()

        def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
            return {"made": [json.dumps(self.work(int(number))) for number in batch["item"]]}

    here, every = os.getcwd(), data.from_items(list(numbers), override_num_blocks=len(numbers))
    how: dict[str, Any] = {"num_gpus": 1} if gpus else {"num_cpus": 1}
    made = every.map_batches(Worker, batch_size=1, compute=data.ActorPoolStrategy(size=workers), **how)
    return [json.loads(row["made"]) for row in made.take_all()]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from changing the manifest meanwhile, where the file system has locks."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(open_own(folder / ".lock"), "ab") as file:
        try_lock(file.fileno(), wait=True)
        yield


class StoredFor(NamedTuple):
    """For which encoder a folder holds features, and the side of the images inside it and as they were read."""

    encoder: str
    image_size: int
    side: int


def encoders_in(root: Path) -> dict[str, StoredFor]:
    """Folder below ``root`` -> the encoder whose features it holds; empty if ``root`` is not a folder of features."""
    found = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if _KEY.fullmatch(folder.name):
            with suppress(OSError, KeyError, TypeError, ValueError):
                about = parse_json(regular_file(folder / ABOUT).read_bytes())
                one = StoredFor(*(kind(about[key]) for key, kind in StoredFor.__annotations__.items()))
                if all(0 < pixels <= 2**14 for pixels in one[1:]):
                    found[folder.name] = one
    return found


def stored_for(root: Path | None, names: Iterable[str], encoder: str | None = None) -> StoredFor | None:
    """The encoder, of this name if one is given, whose features ``root`` holds of some images of these ``names``; None
    if there is none or several."""
    kinds = [(key, one) for key, one in encoders_in(root).items() if encoder in (None, one.encoder)] if root else []
    own = set(names) if kinds else set()
    found = [
        one for key, one in kinds if any(not own.isdisjoint(file) for file in read_manifest(Path(root or "", key)))
    ]
    return found[0] if len(found) == 1 else None


def encoded_names(root: Path) -> Names:
    """The images whose features lie in ``root``, sorted; none if it is another folder."""
    found = encoders_in(root)
    if len(found) > 1:
        kinds = shown(sorted({one.encoder for one in found.values()}))
        found_in = f"{root} holds features of {len(found)} encoders or image sizes: {kinds}"
        raise DataError(f"{found_in}. Name the photos too, or keep each in a folder of its own.")
    return tuple(sorted({name for key in found for names in read_manifest(root / key) for name in names}))
