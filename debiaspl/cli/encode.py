"""``debiaspl encode``: features of photos, in one process or in many."""

from pathlib import Path
from typing import Annotated

from debiaspl.cli import options
from debiaspl.cli.options import argument, flag, option
from debiaspl.cli.terminal import progress_bar, say, warn_of_bad


def encode_command(
    photos: Annotated[Path, argument("PHOTOS", "A folder of photos, at any depth; or tar shards.")],
    out: Annotated[Path, option("Folder for the features; what it has is not computed again.")] = Path("features"),
    encoder: options.Encoder = None,
    part: options.PartOf = None,
    on: options.OnRay = None,
    half: Annotated[bool, flag("--half", "Store features in half precision, which takes half the space.")] = False,
    device: options.Device = None,
) -> None:
    """Compute the features of photos once, for --features of the other commands.

    Parts run anywhere and in any order, and go on where they were killed.
    """
    from debiaspl.data.manifest import encoders_in
    from debiaspl.data.open import list_place
    from debiaspl.photos.encoding import PhotoEncoding
    from debiaspl.training.process import find_device

    if encoders_in(photos) or photos.resolve() == out.resolve():
        raise ValueError(f"{photos} holds features, or is --out. Expected photos, and another folder for features.")
    own, on_ray = options.part_of(part), options.is_on_ray(on)
    encoding = PhotoEncoding(list_place(photos), encoder, find_device(device).type, out)
    with progress_bar("images", "encoding") as watch:
        count, bad = encoding.encode(own, half, watch, on_ray)
    warn_of_bad(bad)
    which = "" if own == (0, 1) else f"part {own[0] + 1} of {own[1]}, "
    unreadable = f", {len(bad):,} of which cannot be read" if bad else ""
    say(f"{which}{count:,} of {len(encoding.images):,} images{unreadable}; features are in {out}")
