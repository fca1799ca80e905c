"""Decode one image file into a tensor of bytes. Files are untrusted: a bad one raises an error with the reason."""

import io
import os
import re
import threading
import warnings
from contextlib import nullcontext
from functools import cache
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFile, JpegImagePlugin, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin
from torch import Tensor

from debiaspl.data.file_names import NO_HEIC, reads_heic
from debiaspl.data.text import DataError
from debiaspl.files import memory

PIXEL_LIMIT = 178_000_000
"""Largest number of pixels in a header, however much memory is free; Pillow's own limit is as high."""
BYTES_PER_PIXEL = 12
"""For an image with transparency: the original, on white, and as numbers."""
_WEBP, _TIFF = WebPImagePlugin.WebPImageFile.format, TiffImagePlugin.TiffImageFile.format  # Image.open knows both now
SMALL = 48_000_000
"""Size in bytes below which nothing is checked: 4 million pixels, or less than half a gigabyte for eight threads."""
_one_at_a_time = threading.Lock()
"""Larger images are decoded one at a time: together they might not fit in memory."""
FORMATS = ("JPEG", "PNG", _WEBP, "GIF", "BMP", _TIFF, "PPM")
"""The content decides which of these decoders reads a file, and no other decoder of Pillow is used."""

_HEIC = re.compile(rb"....ftyp(hei[cxms]|hev[cxms]|mif1|msf1)", re.DOTALL)
_ORIENTATION_TAG = 0x0112
_TO_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class BadImage(DataError):  # noqa: N818 - it names what is wrong with the file
    """The file cannot be decoded; the message is a short reason, without the name of the file."""


ImageFileOrBytes = str | os.PathLike[str] | bytes


def decode(path_or_bytes: ImageFileOrBytes, size: tuple[int, int] | None, channels: int = 3) -> Tensor:
    """The image as uint8, (channels, height, width), rotated by its EXIF tag; of several frames the first; 16 bits are
    scaled to 8; transparent pixels become white. For a ``size``, (height, width), it is scaled until it just covers it,
    with its proportions, and cropped to the centre."""
    return _tensor(open_image(path_or_bytes, size, channels))


def as_pixels(image: Image.Image, size: tuple[int, int] | None, channels: int) -> Tensor:
    """An image of Pillow as ``decode`` would read it, but never from a smaller scale of a JPEG."""
    turn = _TO_UPRIGHT.get(_orientation(image))
    upright = image if turn is None else image.transpose(turn)
    return _tensor(_fit(_plain(upright, "L" if channels == 1 else "RGB"), size, upright.size))


def channels_first(image: Image.Image) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _tensor(image: Image.Image) -> Tensor:
    # Transposed by NumPy: torch would start threads for it, in each of the threads and processes that decode.
    return torch.from_numpy(channels_first(image).copy())


def open_image(path_or_bytes: ImageFileOrBytes, size: tuple[int, int] | None, channels: int = 3) -> Image.Image:
    """The image as ``decode`` needs it, before it becomes a tensor."""
    try:
        with (
            pillow_keeps_quiet,
            io.BytesIO(path_or_bytes) if isinstance(path_or_bytes, bytes) else open(path_or_bytes, "rb") as stream,
        ):
            opened = _opened(stream)
            need = _bytes_needed(opened, size)
            with _one_at_a_time if need > SMALL else nullcontext():
                if need > SMALL and not memory.fits(need):
                    raise BadImage(f"its {opened.width:,} x {opened.height:,} pixels need {memory.lack_of(need)}")
                image = _upright(opened, size, "L" if channels == 1 else "RGB")
                image.load()  # while the stream is open: Pillow decodes when pixels are first needed
            return image
    except (BadImage, MemoryError):
        raise
    except Exception as error:
        # Damaged files raise nearly any exception inside Pillow: OSError, SyntaxError, ValueError, struct.error...
        raise BadImage(f"cannot be decoded: {error or type(error).__name__}") from error


def _bytes_needed(image: ImageFile.ImageFile, size: tuple[int, int] | None) -> int:
    """Upper bound of the memory for decoding. A JPEG may be read at a smaller scale, unless it is progressive."""
    shrink = 1
    if size is not None and isinstance(image, JpegImagePlugin.JpegImageFile) and not image.info.get("progressive"):
        times = min(image.size) / (2 * max(size))
        shrink = next((by for by in (8, 4, 2) if times >= by), 1)
    return image.width * image.height * BYTES_PER_PIXEL // shrink**2


def _opened(stream: IO[bytes]) -> ImageFile.ImageFile:
    """The image with its header read, and nothing decoded yet."""
    start = stream.read(16)
    stream.seek(0)
    if not start:
        raise BadImage("the file is empty (zero bytes)")
    formats: tuple[str, ...] = FORMATS
    if _HEIC.match(start):
        if not reads_heic():
            raise BadImage(NO_HEIC)
        _register_heif()
        formats = ("HEIF",)
    try:
        image = Image.open(stream, formats=formats)
    except UnidentifiedImageError as error:
        raise BadImage("its content is not JPEG, PNG, WebP, GIF, BMP, TIFF or PPM, or it is damaged") from error
    except Image.DecompressionBombError as error:
        raise BadImage("its header claims more pixels than Pillow's limit") from error
    width, height = image.size
    if width * height > PIXEL_LIMIT:
        raise BadImage(f"its header claims {width:,} x {height:,} pixels, more than the limit of {PIXEL_LIMIT:,}")
    return image


@cache
def _register_heif() -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()


def _upright(image: ImageFile.ImageFile, size: tuple[int, int] | None, mode: str) -> Image.Image:
    """The first frame in ``mode`` and ``size``; rotated last, when it is smallest."""
    if not isinstance(image, JpegImagePlugin.JpegImageFile):
        # A TIFF is rotated while it loads, and the tag of a PNG may come after its pixels.
        image.load()
    orientation = _orientation(image)
    if size is not None and orientation >= 5:
        size = size[1], size[0]
    extent = _draft(image, size)
    turn = _TO_UPRIGHT.get(orientation)
    fitted = _fit(_plain(image, mode), size, extent)
    return fitted if turn is None else fitted.transpose(turn)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:
        # Broken tags do not affect the pixels.
        return 1


def _draft(image: ImageFile.ImageFile, size: tuple[int, int] | None) -> tuple[float, float]:
    """Make a JPEG far larger than ``size`` load at 1/2, 1/4 or 1/8; return the exact width and height at that scale:
    20 rows at 1/8 give 3 rows, of which the last one counts half."""
    if size is not None and isinstance(image, JpegImagePlugin.JpegImageFile):
        # Twice the size needed, so that the last halving is done by the resize, not by the coarser JPEG blocks.
        scale = 2 * max(size[1] / image.width, size[0] / image.height)
        drafted = image.draft(None, (round(image.width * scale), round(image.height * scale)))
        if drafted is not None:
            return drafted[1][2], drafted[1][3]
    return image.size


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """Convert to eight bits, opaque, grey ("L") or "RGB"."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        # Pillow's own conversion clips at 255, which turns nearly every pixel white; 65535 = 257 * 255.
        image = Image.fromarray(((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise BadImage("its 32-bit pixels have no standard range; save it with 8 or 16 bits")
    elif image.has_transparency_data:
        seen_through = image.convert("RGBA")
        image = Image.new("RGB", image.size, "white")
        image.paste(seen_through, mask=seen_through)
    return image if image.mode == mode else image.convert(mode)


def _fit(image: Image.Image, size: tuple[int, int] | None, extent: tuple[float, float]) -> Image.Image:
    """The largest centred part with the proportions of ``size``, resized once: a long strip is never enlarged first."""
    if size is None or image.size == (size[1], size[0]):
        return image
    scale = max(size[1] / extent[0], size[0] / extent[1])
    width, height = min(size[1] / scale, extent[0]), min(size[0] / scale, extent[1])
    left, top = (extent[0] - width) / 2, (extent[1] - height) / 2
    box = (left, top, min(left + width, image.width), min(top + height, image.height))
    return image.resize((size[1], size[0]), Image.Resampling.BICUBIC, box=box)


def resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Images in memory, uint8, (N, C, H, W), resized to another height and width as ``decode`` does it."""
    if tuple(images.shape[2:]) == size:
        return images
    grey = images.shape[1] == 1
    made = torch.empty((*images.shape[:2], *size), dtype=torch.uint8)
    for place, picture in enumerate(images.cpu().permute(0, 2, 3, 1).numpy()):
        image = Image.fromarray(picture[:, :, 0] if grey else picture)
        made[place] = _tensor(_fit(image, size, image.size))
    return made


class _PillowKeepsQuiet:
    """Silences Pillow's warnings about odd tags in photos and about large images, which the limit above handles. As
    ``catch_warnings`` is not thread-safe, the first thread that enters sets the filter and the last removes it."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._caught: warnings.catch_warnings[None] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._caught is not None:
                self._caught.__exit__(None, None, None)


pillow_keeps_quiet = _PillowKeepsQuiet()
