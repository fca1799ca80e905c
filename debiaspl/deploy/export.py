"""Export the model of a run, with its preprocessing, for other programs: as ONNX.

The file is checked before it gets its name: on images of many sizes, and on real photos.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from debiaspl._checks import extra
from debiaspl._version import __version__
from debiaspl.data.decode import BadImage, decode
from debiaspl.data.listing import list_images
from debiaspl.deploy.resize import cover
from debiaspl.deploy.saved import SavedModel
from debiaspl.files import write_bytes
from debiaspl.models import scale
from debiaspl.training import RunError

ABOUT = "uint8 pictures (N, H, W, C) of any size in; probabilities and logits (N, classes) out"
INPUT, OUTPUTS = "images", ["probabilities", "logits"]
TOLERANCE = 1e-4
"""Largest accepted difference between two probabilities."""
PHOTOS = 64
"""Number of real photos that are compared, from a larger folder."""


class Checked(NamedTuple):
    """The largest differences found."""

    made: float
    """On images of noise, of the model's own size and of others, one and several at a time."""
    photos: int
    """Number of real photos."""
    real: float
    """On real photos."""
    as_predicted: float
    """Between the file and ``debiaspl predict``, which reads large JPEGs at a smaller scale, as in training."""


def export_file(model: SavedModel, out: Path, photos: Sequence[Path] = ()) -> Checked:
    """Write an ONNX file, which is compared on ``photos``. Its metadata contain ``classes`` as a JSON list."""
    needed = ("onnxruntime", "onnx", "onnxscript")
    runtime, *_ = (extra(name, f"ONNX files need {name}: pip install 'debiaspl[export]'.") for name in needed)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    size = {"height": model.size[0], "width": model.size[1], "channels": model.channels}
    about = {"classes": json.dumps(model.classes), "about": ABOUT, "trained_at": json.dumps(size)}
    about |= {"made_by": f"debiaspl {__version__}"} | ({"shares": model.shares.used} if model.shares else {})
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)  # the exporter has much to say
    try:
        with warnings.catch_warnings(action="ignore"):
            program = exported(model)
            program.model.metadata_props.update(about)
            content: bytes = program.model_proto.SerializeToString()
            session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of many kinds, with pages of text
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(f"this network cannot be exported: {first} Nothing was written.") from error
    finally:
        logging.disable(before)
    with torch.inference_mode():
        checked = check(model, lambda pictures: session.run(OUTPUTS[:1], {INPUT: pictures})[0], photos)
    write_bytes(out, content)
    return checked


class Deployed(nn.Module):
    """uint8 images (N, H, W, C), as NumPy converts them from Pillow, of any size -> probabilities and logits."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.network, self.size = model.network, model.size
        shares = model.shares
        shift = torch.zeros(len(model.classes)) if shares is None else shares.shift().float()
        self.register_buffer("shift", shift.to(model.device))
        self.temperature = 1.0 if shares is None else shares.temperature

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        pictures = cover(images.permute(0, 3, 1, 2), self.size)
        logits = (self.network(scale(pictures)).float() + self.shift) / self.temperature
        return logits.softmax(-1), logits


@torch.no_grad()
def exported(model: SavedModel) -> Any:
    """The module as an ONNX program, for any number of images of any size."""
    # Example sizes that are all different, and none that a graph could take for a constant.
    height, width = model.size[0] + 3, model.size[1] + 6
    example = torch.zeros((2, height, width, model.channels), dtype=torch.uint8)
    names: dict[str, Any] = {"input_names": [INPUT], "output_names": OUTPUTS}
    axes = {INPUT: {0: "batch", 1: "height", 2: "width"}}
    return torch.onnx.export(
        Deployed(model).eval(), (example,), dynamo=True, verbose=False, dynamic_shapes=axes, **names
    )


def check(model: SavedModel, said: Callable[[NDArray[np.uint8]], Any], photos: Sequence[Path] = ()) -> Checked:
    """Compare the model and what the file says of pictures, (N, H, W, C); raise if they differ."""
    made = np.max([_apart(said(pictures), _expected(model, pictures)) for pictures in _noise(model)])  # also of NaN
    real, as_predicted = [0.0], [0.0]
    for path in photos:
        try:
            pictures = decode(path, None, model.channels).permute(1, 2, 0)[None].numpy()
        except BadImage:
            continue
        found = said(pictures)
        real.append(_apart(found, _expected(model, pictures)))
        as_predicted.append(_apart(found, model.probabilities(model.read(path)[None])))
    if not (worst := np.max([made, *real])) <= TOLERANCE:
        found = f"the exported file and PyTorch differ by {worst:.2g} in a probability, expected at most {TOLERANCE:g}"
        todo = "Please report this, with the versions of torch and onnxruntime."
        raise RunError(f"{found}, so it was not written. {todo}")
    return Checked(float(made), len(real) - 1, max(real), max(as_predicted))


def some_photos(folder: Path) -> list[Path]:
    """Evenly spaced photos of a folder."""
    files = list_images(folder).files
    count = min(PHOTOS, len(files))
    return [folder / files[number * len(files) // count] for number in range(count)]


def _noise(model: SavedModel) -> Iterator[NDArray[np.uint8]]:
    random = np.random.default_rng(0)
    height, width = model.size
    for shape in (
        (1, height, width),
        (5, height, width),
        (2, 2 * height + 5, 3 * width + 1),
        (1, 4 * height + 3, width + 2),
        (3, max(1, height // 2), max(1, width // 3)),
    ):
        # Coarse spots over fine noise: images with different predictions, and with every grey value.
        spots = random.integers(0, 200, (shape[0], -(-shape[1] // 8), -(-shape[2] // 8), model.channels))
        large = spots.repeat(8, 1).repeat(8, 2)[:, : shape[1], : shape[2]]
        yield (large + random.integers(0, 56, large.shape)).astype(np.uint8)


def _expected(model: SavedModel, pictures: NDArray[np.uint8]) -> Tensor:
    """The model's probabilities for the images, read from a file as in training."""
    return model.probabilities(torch.stack([model.read(_as_file(picture)) for picture in pictures]))


def _as_file(picture: NDArray[np.uint8]) -> bytes:
    """PPM or PGM, the simplest formats."""
    height, width, channels = picture.shape
    return b"P%d\n%d %d\n255\n" % (6 if channels == 3 else 5, width, height) + picture.tobytes()


def _apart(found: Any, expected: Tensor) -> float:
    return float((torch.as_tensor(np.asarray(found)) - expected).abs().max())
