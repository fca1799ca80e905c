"""Features of a folder of photos as ``train PHOTOS --encoder`` needs them: each is encoded once for all commands."""

from collections.abc import Sequence
from pathlib import Path

from debiaspl.data import ImageSet
from debiaspl.data.folder import left_in_files
from debiaspl.data.listing import Listing
from debiaspl.data.manifest import stored_for
from debiaspl.deploy.next import Pool
from debiaspl.encoders import Encoder, features_of
from debiaspl.encoders.encoding import Encoding, Part, Watch
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.photos.api import encoder_or_none
from debiaspl.photos.survey import Photos, median_side

FOLDER = Path("runs") / FEATURES
"""Where features lie before there is a run: beside the runs, where ``train`` has them too."""


class PhotoEncoding:
    """The photos of a folder, and an encoder at the image size at which ``train`` uses it."""

    def __init__(self, listing: Listing, name: str | None, device: str, folder: Path = FOLDER) -> None:
        """Without a name it is the encoder that ``train`` uses without one."""
        stored = stored_for(folder)
        side = stored.side if stored else median_side(listing)
        photos = Photos(listing.root, None, listing.labels, listing.classes, side, features=folder)
        named = encoder_or_none(photos, device, name)
        if named is None:
            raise ValueError(
                "an encoder is needed. Install one: pip install 'debiaspl[encoders]'; or name one: --encoder."
            )
        self.encoder: Encoder = named[1].to(device)
        self.images: ImageSet = left_in_files(listing, min(photos.side, self.encoder.image_size))
        self.folder = folder

    def pool(self, rows: Sequence[int], watch: Watch) -> tuple[list[int], Pool, dict[int, str]]:
        """Those of these photos that can be read, with their features; and why others cannot. ``watch`` is called with
        the number of photos done and the total; if it raises, what is done is kept."""
        values, skipped = features_of(self.images.select(rows), self.encoder, self.folder, watch)
        read = [place for place in range(len(rows)) if place not in skipped]
        return [rows[place] for place in read], Pool(values[read]), {rows[at]: why for at, why in skipped.items()}

    def encode(self, part: Part, half: bool, watch: Watch) -> tuple[int, dict[str, str]]:
        """Compute a part of the features; returns how many photos it has, and why some cannot be read."""
        encoding = Encoding(self.images, self.encoder, self.folder, watch, half)
        count = encoding.run(part)
        return count, {self.images.ids[row]: why for row, why in encoding.skipped.items()}


def about_kept(folder: Path = FOLDER) -> str:
    """Where features are kept, and how large they are, as a sentence."""
    size = sum(file.stat().st_size for file in folder.glob("*/*") if file.is_file())
    return f"Features are in {folder} ({size / 1e6:,.1f} MB), where debiaspl train finds them; it may be deleted."
