"""Builds one HTML page with its style, script and values inside; small pictures and confusion matrices for it."""

import base64
import hashlib
import html
import io
import json
import math
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from debiaspl._measures import Cells
from debiaspl.files import FileError

if TYPE_CHECKING:
    from PIL import Image

LONGEST_NAME = 120
MARK = b'<meta name="generator" content="debiaspl">'
"""Near the beginning of every page."""
MOST_CELLS = 60_000
"""Cells of a matrix that a page carries."""
MOST_CLASSES = 2_000
"""A matrix of more classes is not drawn; the list of mistakes is still shown."""
SIDE = 64
MOST_BYTES = 700_000
"""Total size of the pictures of a page, as text, so that the page can be sent by mail."""

Find = Callable[[str], "Image.Image | None"]
"""From the name of an image to the image; None if there is none."""


def build_page(title: str, values: dict[str, Any]) -> str:
    """The page for these values. Its security policy lets the browser run only this script, by its digest: if the name
    of a class or a file were ever read as HTML, it could still do nothing."""
    style, script = _part("style.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    # What is filled in is never searched for further marks.
    return Template(_part("page.html")).substitute(
        policy=html.escape(policy),
        title=html.escape(title.encode(errors="replace").decode()),
        style=style,
        script=script,
        values=embedded(rounded(values)),
    )


def refuse_other_page(out: Path, overwrite: bool) -> None:
    """Raise where a report, which every run writes again, would replace a file that is not a debiaspl page."""
    if not overwrite and out.is_file():
        with out.open("rb") as file:
            beginning = file.read(1000)
        if beginning and MARK not in beginning:
            raise FileError(f"{out} exists already and is not a debiaspl page. Use --overwrite, or another --out.")


def embedded(values: Any) -> str:
    """JSON for a script element: no character of it can end the element or begin a comment."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def short_name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def rounded(value: Any) -> Any:
    """Rounded to six digits, to keep the page small. Values that are not finite become None, as JSON has none."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


@cache
def _part(name: str) -> str:
    return files("debiaspl.report.pages").joinpath(name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """All scripts inside one function, so that nothing is global; main.js, which calls the others, is the last."""
    names = {one.name for one in files("debiaspl.report.pages").iterdir() if one.name.endswith(".js")}
    parts = map(_part, [*sorted(names - {"main.js"}), "main.js"])
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def matrix_of(cells: Cells, most: int = MOST_CELLS) -> dict[str, Any]:
    """Row by row, predicted class and count by turns; of more cells than ``most`` the smallest are left out."""
    kept = np.sort(np.argsort(-cells.count, kind="stable")[:most])
    pairs = np.stack([cells.predicted[kept], cells.count[kept]], 1)
    ends = np.searchsorted(cells.true[kept], np.arange(1, cells.classes))
    return {
        "rows": [part.reshape(-1).tolist() for part in np.split(pairs, ends)],
        "totals": cells.of_true.tolist(),
        "left_out": int(cells.count.sum() - cells.count[kept].sum()),
    }


def confusion_order(cells: Cells) -> list[int]:
    """An order of the classes by average linkage of their confusions, in which confused classes are next to each other.

    scipy's optimal_leaf_ordering would need 2 s for 1,000 classes, and its order was not better.
    """
    if not 1 < cells.classes <= MOST_CLASSES:
        return list(range(cells.classes))
    from scipy.cluster.hierarchy import linkage

    shares = cells.dense() / np.maximum(cells.of_true, 1)[:, None]
    near = (shares + shares.T) / 2  # how much of two classes is taken for one another
    joins = linkage(1 - near[np.triu_indices(cells.classes, 1)], "average")
    groups = {number: [number] for number in range(cells.classes)}
    for place, (one, other, distance, _) in enumerate(joins.tolist()):
        if distance >= 1:  # never confused
            break
        first, second = groups.pop(int(one)), groups.pop(int(other))
        ways = [(a, b) for a in (first, first[::-1]) for b in (second, second[::-1])]
        first, second = max(ways, key=lambda way: near[way[0][-1], way[1][0]])
        groups[cells.classes + place] = first + second
    return [number for group in sorted(groups.values(), key=min) for number in group]


def thumbnails(names: Iterable[str], find: Find, most_bytes: int = MOST_BYTES) -> dict[str, str]:
    """Pictures as data URIs, by name, as many as fit."""
    made: dict[str, str] = {}
    used = 0
    for name in names:
        image = find(name)
        if image is None:
            continue
        content = io.BytesIO()
        image.save(content, "WEBP", quality=75)
        uri = "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()
        used += len(uri)
        if used > most_bytes:
            break
        made[name] = uri
    return made


def images_in(folder: Path, side: int = SIDE, linked: bool = False) -> Find:
    """Finds images by their path in a folder. Names that leave the folder find nothing, unless they are ``linked``."""
    from debiaspl.data.decode import BadImage, open_image

    home = folder.resolve()

    def find(name: str) -> "Image.Image | None":
        try:
            path = home / name
            if not path.is_file() or not (linked or path.resolve().is_relative_to(home)):
                return None
            return open_image(path, (side, side))
        except (BadImage, OSError, ValueError):  # a name with a zero byte is a ValueError
            return None

    return find
