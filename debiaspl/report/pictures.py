"""Small pictures of the images that a page shows, where the images are available."""

import base64
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

SIDE = 64
MOST_BYTES = 700_000
"""Total size of the pictures of a page, as text, so that the page can be sent by mail."""

Find = Callable[[str], "Image.Image | None"]
"""From the name of an image to the image; None if there is none."""


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


def images_of_run(folder: Path) -> Find | None:
    """Finds test images of a run by name, if its data are a known set on this machine. Runs are untrusted, so a folder
    that a run names is not opened; ``--images`` names one."""
    import numpy as np
    import torch
    from PIL import Image

    from debiaspl.data.known import SETS, load
    from debiaspl.files import parse_json

    try:
        data = parse_json((folder / "config.json").read_text())["recipe"]["data"]
        if data not in (*SETS, "digits"):
            return None
        test = load(data).test
    except (OSError, ValueError, KeyError, TypeError, ImportError):
        return None
    places = {name: place for place, name in enumerate(test.ids)}

    def find(name: str) -> "Image.Image | None":
        if name not in places:
            return None
        pixels = test.images[torch.tensor([places[name]])][0].cpu().numpy().transpose(1, 2, 0)
        image = Image.fromarray(np.repeat(pixels, 3, 2) if pixels.shape[2] == 1 else pixels)
        image.thumbnail((SIDE, SIDE))
        return image

    return find
