"""Images as a browser shows them: upright, of any format, no larger than a screen."""

import io
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from PIL import Image

from debiaspl.data.decode import open_image

LONGEST = 1600
SMALL = 256
"""Images up to this size keep every pixel as it is."""
KEPT = 24


class ServedPictures:
    """Pictures by file; the last few are kept. One is made at a time, as several large ones would fill the memory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._lock = Lock()

    def picture(self, file: str) -> tuple[str, bytes]:
        """Content type and content. Raises BadImage where training would skip the file."""
        with self._lock:
            if file not in self._kept:
                self._kept[file] = _picture(open_image(self._root / file, None))
            self._kept.move_to_end(file)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[file]


def _picture(image: Image.Image) -> tuple[str, bytes]:
    content = io.BytesIO()
    if max(image.size) <= SMALL:
        image.save(content, "PNG")
        return "image/png", content.getvalue()
    image.thumbnail((LONGEST, LONGEST), Image.Resampling.BICUBIC, reducing_gap=2.0)
    image.save(content, "JPEG", quality=92, subsampling=0)
    return "image/jpeg", content.getvalue()
