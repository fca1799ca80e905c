"""Export the model of a run, with its preprocessing, for other programs: as ONNX or torch.export.

The file is checked before it gets its name.
"""

import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from debiaspl._extras import extra
from debiaspl._version import __version__
from debiaspl.deploy.check import Checked, check
from debiaspl.deploy.resize import cover, pillow_is_tall_first
from debiaspl.deploy.saved import SavedModel
from debiaspl.files import refuse_existing, write_bytes
from debiaspl.models import scale
from debiaspl.training import RunError

ABOUT = "uint8 pictures (N, H, W, C) of any size in; probabilities and logits (N, classes) out"
INPUT, OUTPUTS = "images", ("probabilities", "logits")
AXES = ("batch", "height", "width")
FACTS = "debiaspl.json"
"""The file inside a .pt2 that names its classes."""


def export_onnx(model: SavedModel, out: Path | str, overwrite: bool = False, photos: Sequence[Path] = ()) -> Checked:
    """Write an ONNX file; its metadata contain ``classes`` as a JSON list. It is also compared on ``photos``."""
    refuse_existing(Path(out), overwrite)
    needed = ("onnxruntime", "onnx", "onnxscript")
    runtime, *_ = (extra(name, f"ONNX files need {name}: pip install 'debiaspl[export]'.") for name in needed)
    with _quiet(), _plain_errors():
        program = torch.onnx.export(
            exported(model), dynamo=True, verbose=False, input_names=[INPUT], output_names=list(OUTPUTS)
        )
        assert program is not None
        proto = program.model_proto
        _name_axes(proto)
        for key, value in facts(model).items():
            entry = proto.metadata_props.add()
            entry.key, entry.value = key, value
        content: bytes = proto.SerializeToString()
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    checked = check(model, lambda pictures: session.run([OUTPUTS[0]], {INPUT: pictures})[0], photos)
    write_bytes(Path(out), content)
    return checked


def export_torch(model: SavedModel, out: Path | str, overwrite: bool = False, photos: Sequence[Path] = ()) -> Checked:
    """Write a ``torch.export`` file (.pt2), which only needs torch; its extra file debiaspl.json has the classes."""
    refuse_existing(Path(out), overwrite)
    with _quiet(), _plain_errors():
        room = io.BytesIO()
        torch.export.save(exported(model), room, extra_files={FACTS: json.dumps(facts(model))})
        content = room.getvalue()
        loaded = torch.export.load(io.BytesIO(content)).module()
    with torch.inference_mode():
        checked = check(model, lambda pictures: loaded(torch.from_numpy(pictures))[0], photos)
    write_bytes(Path(out), content)
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
    dynamic = {0: torch.export.Dim("batch"), 1: torch.export.Dim("height"), 2: torch.export.Dim("width")}
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


def _name_axes(proto: Any) -> None:
    """Rename the dynamic axes, which have the exporter's own names."""
    own = [axis.dim_param for axis in proto.graph.input[0].type.tensor_type.shape.dim[:3]]
    names = dict(zip(own, AXES, strict=True))
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param in names:
                axis.dim_param = names[axis.dim_param]


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn any exception of an exporter, with pages of text, into a short error."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(f"this network cannot be exported: {first} Nothing was written.") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's own messages."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
