"""Export the model of a run, with its preprocessing, for other programs: as ONNX or torch.export.

The file is checked before it gets its name: on images of many sizes, and on real photos.
"""

import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from debiaspl.deploy.resize import cover, pillow_is_tall_first
from debiaspl.deploy.saved import SavedModel
from debiaspl.files import write_bytes
from debiaspl.models import scale
from debiaspl.training import RunError

ABOUT = "uint8 pictures (N, H, W, C) of any size in; probabilities and logits (N, classes) out"
INPUT, OUTPUTS = "images", ("probabilities", "logits")
AXES = ("batch", "height", "width")
FACTS = "debiaspl.json"
"""The file inside a .pt2 that names its classes."""
TOLERANCE = 1e-4
"""Largest accepted difference between two probabilities."""
PHOTOS = 64
"""Number of real photos that are compared, from a larger folder."""

Probabilities = Callable[[NDArray[np.uint8]], Any]
"""From images (N, H, W, C) to the file's probabilities, (N, classes)."""


class Checked(NamedTuple):
    """The largest differences found."""

    made: float
    """On images of noise, of the model's own size and of others, one and several at a time."""
    photos: int = 0
    """Number of real photos."""
    real: float = 0.0
    """On real photos."""
    as_predicted: float = 0.0
    """Between the file and ``debiaspl predict``, which reads large JPEGs at a smaller scale, as in training."""


def export_file(model: SavedModel, out: Path, photos: Sequence[Path] = ()) -> Checked:
    """Write an ONNX file, or one of ``torch.export`` (.pt2), which only needs torch. It is compared on ``photos``."""
    with _plain_errors():
        content, said = (_onnx if out.suffix == ".onnx" else _torch)(model)
    with torch.inference_mode():
        checked = check(model, said, photos)
    write_bytes(out, content)
    return checked


def _onnx(model: SavedModel) -> tuple[bytes, Probabilities]:
    """Its metadata contain ``classes`` as a JSON list."""
    needed = ("onnxruntime", "onnx", "onnxscript")
    runtime, *_ = (extra(name, f"ONNX files need {name}: pip install 'debiaspl[export]'.") for name in needed)
    names: dict[str, Any] = {"input_names": [INPUT], "output_names": OUTPUTS}
    axes = {INPUT: dict(enumerate(AXES))}
    program: Any = torch.onnx.export(exported(model), dynamo=True, verbose=False, dynamic_shapes=axes, **names)
    program.model.metadata_props.update(facts(model))
    content: bytes = program.model_proto.SerializeToString()
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return content, lambda pictures: session.run([OUTPUTS[0]], {INPUT: pictures})[0]


def _torch(model: SavedModel) -> tuple[bytes, Probabilities]:
    """Its extra file debiaspl.json has the classes."""
    room = io.BytesIO()
    torch.export.save(exported(model), room, extra_files={FACTS: json.dumps(facts(model))})
    loaded = torch.export.load(io.BytesIO(room.getvalue())).module()
    return room.getvalue(), lambda pictures: loaded(torch.from_numpy(pictures))[0]


class Deployed(nn.Module):
    """uint8 images (N, H, W, C), as NumPy converts them from Pillow, of any size -> probabilities and logits."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.network, self.size = model.network, model.size
        shares = model.shares
        shift = torch.zeros(len(model.classes)) if shares is None else shares.shift().float()
        self.register_buffer("shift", shift.to(model.device))
        self.temperature = 1.0 if shares is None else shares.temperature
        self.tall_first = pillow_is_tall_first()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        pictures = cover(images.permute(0, 3, 1, 2), self.size, self.tall_first)
        logits = (self.network(scale(pictures)).float() + self.shift) / self.temperature
        return logits.softmax(-1), logits


def exported(model: SavedModel) -> torch.export.ExportedProgram:
    """The module as a graph, for any number of images of any size."""
    # Example sizes that are all different, and none that a graph could take for a constant.
    height, width = model.size[0] + 3, model.size[1] + 6
    example = torch.zeros((2, height, width, model.channels), dtype=torch.uint8)
    dynamic = {place: torch.export.Dim(name) for place, name in enumerate(AXES)}
    with torch.no_grad():
        return torch.export.export(Deployed(model).eval(), (example,), dynamic_shapes={INPUT: dynamic})


def facts(model: SavedModel) -> dict[str, str]:
    """What a user of the file must know."""
    shares = {} if model.shares is None else {"shares": model.shares.used}
    return shares | {
        "classes": json.dumps(model.classes),
        "about": ABOUT,
        "trained_at": json.dumps({"height": model.size[0], "width": model.size[1], "channels": model.channels}),
        "made_by": f"debiaspl {__version__}",
    }


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Hide an exporter's own messages, and turn any exception, with pages of text, into a short error."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(f"this network cannot be exported: {first} Nothing was written.") from error
    finally:
        logging.disable(before)


def check(model: SavedModel, said: Probabilities, photos: Sequence[Path] = ()) -> Checked:
    """Compare the model and the file, and raise if they differ."""
    made = max(_apart(said(pictures), _expected(model, pictures)) for pictures in _noise(model))
    real = as_predicted = 0.0
    looked_at = 0
    for path in photos:
        try:
            picture = decode(path, None, model.channels)
        except BadImage:
            continue
        looked_at += 1
        pictures = picture.permute(1, 2, 0)[None].numpy()
        found = said(pictures)
        real = max(real, _apart(found, _expected(model, pictures)))
        as_predicted = max(as_predicted, _apart(found, model.probabilities(model.read(path)[None])))
    checked = Checked(made, looked_at, real, as_predicted)
    if not max(made, real) <= TOLERANCE:
        raise RunError(
            f"the exported file and PyTorch differ by {max(made, real):.2g} in a probability, expected at most "
            f"{TOLERANCE:g}, so it was not written. Please report this, with the versions of torch and onnxruntime."
        )
    return checked


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
    apart = float((torch.as_tensor(np.asarray(found)) - expected).abs().max())
    return math.inf if math.isnan(apart) else apart  # Python's max would ignore a NaN
