"""Images to label next as one page of small pictures."""

from pathlib import Path
from typing import TYPE_CHECKING

from debiaspl.deploy.next import Suggestions
from debiaspl.report.audit.thumbnails import Find, thumbnails
from debiaspl.report.pages import build_page, rounded, short_name

if TYPE_CHECKING:
    from PIL import Image

SIDE = 128


def next_page(found: Suggestions, run: Path, photos: Path, table: Path, labeled: int | None) -> str:
    """One self-contained HTML page; ``labeled`` is how many photos were left out, None where that is not known."""
    names = [one.file_name for one in found.picked]
    pictures = thumbnails(names, photos_in(photos))
    values = {
        "kind": "next",
        "run": path_text(run),
        "folder": path_text(photos),
        "table": path_text(table),
        "unlabeled": found.unlabeled,
        "labeled": labeled,
        "picked": [
            {
                "name": name,
                "predicted": short_name(one.predicted),
                "confidence": rounded(one.confidence),
                "why": one.why,
            }
            for name, one in zip(names, found.picked, strict=True)
        ],
        "pictures": pictures,
    }
    return build_page(f"To label next in {photos}", values)


def photos_in(folder: Path, side: int = SIDE) -> Find:
    """Pictures larger than those of an audit, so that a person can see the class."""
    from debiaspl.data.decode import BadImage, open_image

    def find(name: str) -> "Image.Image | None":
        try:
            return open_image(folder / name, (side, side))
        except BadImage:
            return None

    return find


def path_text(path: Path) -> str:
    return str(path).encode(errors="replace").decode()
