"""``debiaspl data``: download and pack image sets."""

from pathlib import Path
from typing import Annotated

import typer

from debiaspl.cli.options import argument, option
from debiaspl.cli.terminal import progress_bar, say, warn_of_bad
from debiaspl.cli.usage import PlainCommand, PlainGroup

data_app = typer.Typer(name="data", cls=PlainGroup, help="Download and pack image sets.", no_args_is_help=True)


@data_app.command("get", cls=PlainCommand)
def get_command(
    name: Annotated[str, argument("NAME", "cifar10, cifar100, eurosat or mnist.")],
    root: Annotated[Path | None, option("Folder for the image set.", "$DEBIASPL_DATA, else ~/.cache/debiaspl")] = None,
) -> None:
    """Download a known image set from its authors."""
    from debiaspl.data.known import get, known_set

    if name == "digits":
        say("digits come with scikit-learn (pip install 'debiaspl[digits]'): there is nothing to download")
        return
    known = known_set(name)
    with progress_bar("bytes") as watch:
        place, fetched = get(known, root, watch)
    say(f"{name} is in {place}" if fetched else f"{name} is already in {place}")


@data_app.command("pack", cls=PlainCommand)
def pack_command(
    source: Annotated[Path, argument("SOURCE", "Class folders, a folder with labels.csv, or tar shards.")],
    out: Annotated[Path, argument("OUT", "The packed folder to write.")],
    size: Annotated[int, option("Side of the packed images; 0 takes that of the first image.", min=0)] = 0,
) -> None:
    """Pack an image set into memory-mapped files that load fast: debiaspl train --set data=OUT."""
    from debiaspl.data.open import read_place
    from debiaspl.data.packed import pack, refuse_packing_over

    refuse_packing_over(out)
    images = read_place(source, size)
    with progress_bar("images", "packing") as watch:
        count, skipped = pack(images, out, watch)
    say(f"{count:,} images of {images.images.shape[2]} x {images.images.shape[3]} are in {out}")
    warn_of_bad(skipped)
