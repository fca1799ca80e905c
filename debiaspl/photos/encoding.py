"""Features of a folder of photos as ``train PHOTOS --encoder`` needs them: each is encoded once for all commands."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from debiaspl.data.lazy import Progress, left_in_files
from debiaspl.data.listing import Listing
from debiaspl.data.manifest import read_manifest, run_on_ray
from debiaspl.data.open import list_place
from debiaspl.deploy.next import Pool, SeenPool
from debiaspl.encoders import features_of, load_encoder
from debiaspl.encoders.encoding import Encoding, Part
from debiaspl.encoders.feature_folder import FEATURES, FeatureFolder
from debiaspl.photos.api import encoder_or_none
from debiaspl.photos.survey import Photos, median_side
from debiaspl.training.process import find_device

FOLDER = Path("runs") / FEATURES
"""Where features lie before there is a run: beside the runs, where ``train`` has them too."""


class PhotoEncoding:
    """The photos of a folder, and an encoder at the image size at which ``train`` uses it."""

    def __init__(self, listing: Listing, name: str | None, device: str, folder: Path = FOLDER) -> None:
        """Without a name it is the encoder that ``train`` uses without one."""
        side = median_side(listing, folder)
        facts = listing.root, None, listing.labels, listing.classes, side
        photos = Photos(*facts, features=folder, names=listing.files)
        encoder = encoder_or_none(photos, device, name)
        if encoder is None:
            raise ValueError("an encoder is needed. Name one: --encoder, or: pip install 'debiaspl[encoders]'.")
        self.place, self.encoder, self.folder = listing.root, encoder.to(device), folder
        self.images = left_in_files(listing, min(side, encoder.image_size))

    def pool(self, rows: Sequence[int], watch: Progress) -> SeenPool:
        """The features of these photos. ``watch`` is called with the number of photos done and the total; if it raises,
        what is done is kept."""
        values, skipped = features_of(self.images.select(rows), self.encoder, self.folder, watch)
        read = [place for place in range(len(rows)) if place not in skipped]
        return [rows[place] for place in read], Pool(values[read]), {rows[at]: why for at, why in skipped.items()}

    def encode(self, part: Part, half: bool, watch: Progress, on_ray: bool = False) -> tuple[int, dict[str, str]]:
        """Compute a part of the features; returns how many photos it has, and why some cannot be read."""
        encoding = Encoding(self.images, self.encoder, self.folder, watch, half)
        if on_ray:
            size = self.images.images.shape[2], self.encoder.image_size
            make = partial(file_encoder, self.place, self.encoder.source, size, self.folder, half)
            run_on_ray(make, encoding.plan(part))
        count = encoding.run(part)
        return count, {self.images.ids[row]: why for row, why in encoding.skipped.items()}


def file_encoder(place: Path, name: str, size: tuple[int, int], folder: Path, half: bool) -> Callable[[int], None]:
    """A function that completes one file of a folder of features, anywhere: ``place`` are the photos or shards, and
    ``size`` is their side and that of the images inside the encoder."""
    encoder = load_encoder(name, image_size=size[1]).to(find_device(None))
    images = left_in_files(list_place(place), size[0])
    position = {name: number for number, name in enumerate(images.ids)}
    manifest = FeatureFolder.of(folder, encoder, images.images.shape[1:]).path

    def complete(number: int) -> None:
        own = [position[name] for name in read_manifest(manifest)[number] if name in position]
        Encoding(images.select(own), encoder, folder, half=half).complete(number)

    return complete


def about_kept(folder: Path) -> str:
    """Where features are kept, and how large they are, as a sentence."""
    size = sum(file.stat().st_size for file in folder.glob("*/*") if file.is_file())
    return f"Features are in {folder} ({size / 1e6:,.1f} MB), where debiaspl train finds them; it may be deleted."
