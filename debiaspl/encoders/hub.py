"""Models of the Hugging Face hub, or of a folder, with ``transformers``. None of their code is executed. It needs no
torchvision: only the model classes are used, and mean, deviation and size in ``preprocessor_config.json``."""

import json
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from torch import Tensor, nn

from debiaspl._checks import extra
from debiaspl.data import DataError
from debiaspl.encoders.encoder import Encoder

T = TypeVar("T")
KIND = "transformers"
# Models for images and texts, of which the image part is used.
TOWERS = {
    "clip": "CLIPVisionModelWithProjection",
    "metaclip_2": "MetaClip2VisionModelWithProjection",
    "chinese_clip": "ChineseCLIPVisionModel",
    "siglip": "SiglipVisionModel",
    "siglip2": "Siglip2VisionModel",
}
TOWERS |= {f"{kind}_vision_model": name for kind, name in tuple(TOWERS.items())}
# Mean and deviation of CLIP's training, for folders without them.
CLIP = [0.4815, 0.4578, 0.4082], [0.2686, 0.2613, 0.2758]
# Entries about classes, which a feature extractor does not need; a thousand names are long.
_ABOUT_CLASSES = ("id2label", "label2id", "num_labels", "problem_type", "_name_or_path", "transformers_version")
_EXPECTED = (
    "Expected efficientnet-lite0, a model of the Hugging Face hub (which needs a network the first time), or a folder "
    "with config.json and model.safetensors; for texts also with a tokenizer."
)
PATIENCE = 5.0
"""In seconds, unless HF_HUB_ETAG_TIMEOUT is longer. A lost first packet is sent again after one and after three."""


class Pretrained:
    """A model by hub name or folder. Weights are read only as data, so that loading executes no code."""

    def __init__(self, name_or_folder: str) -> None:
        self.name, folder = name_or_folder, Path(name_or_folder).expanduser()
        is_path = name_or_folder.startswith((".", "~", os.sep)) or name_or_folder.count("/") > 1
        self.place = str(folder) if folder.is_dir() else name_or_folder
        if (is_path or folder.exists()) and not (folder / "config.json").is_file():
            raise DataError(f"the encoder {name_or_folder} is not a folder with config.json. {_EXPECTED}")
        self.transformers = transformers_package()

    def config(self) -> Any:
        self.load(lambda: require_hub(self.place))
        # By default transformers asks the user whether to execute the model's code.
        return self.load(lambda: self.transformers.AutoConfig.from_pretrained(self.place, trust_remote_code=False))

    def model(self, kind: Any) -> Any:
        """The model, in eval mode and without gradients."""
        loaded = self.load(lambda: kind.from_pretrained(self.place, use_safetensors=True))
        return loaded.eval().requires_grad_(False)

    def tokenizer(self) -> Any:
        load = self.transformers.AutoTokenizer.from_pretrained
        return self.load(lambda: load(self.place, trust_remote_code=False))

    def preprocessing(self) -> dict[str, Any]:
        """The content of ``preprocessor_config.json``; empty if there is none."""
        mixin = self.transformers.image_processing_utils.ImageProcessingMixin
        with suppress(OSError):
            return dict(mixin.get_image_processor_dict(self.place)[0])
        return {}

    def load(self, load: Callable[[], T]) -> T:
        """The result of ``load``, or an error that says what is expected."""
        try:
            with _quiet(self.transformers):
                return load()
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # safetensors, tokenizers and the hub have their own exceptions
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise DataError(f"the encoder {self.name} could not be loaded: {reason}. {_EXPECTED}") from error


def transformers_package() -> Any:
    message = "encoders other than efficientnet-lite0 need transformers: pip install 'debiaspl[encoders]'"
    return extra("transformers", message)


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Context without the progress bars and notes of transformers and the hub, and without lists of unused weights."""
    own, hub = transformers.utils.logging, logging.getLogger("huggingface_hub")
    level, hub_level, bars = own.get_verbosity(), hub.level, own.is_progress_bar_enabled()
    own.set_verbosity_error()
    own.disable_progress_bar()
    hub.setLevel(logging.ERROR)
    try:
        yield
    finally:
        own.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            own.enable_progress_bar()


def require_hub(name_or_folder: str) -> None:
    """Raise ConnectionError if this is a name on the hub, it is not cached on this machine, and the hub cannot be
    reached: its client would try for half a minute. Cases that only the client can handle, such as a proxy, are left
    to it."""
    from huggingface_hub import constants, try_to_load_from_cache

    elsewhere = "TRANSFORMERS_CACHE" in os.environ  # a cache that the hub's client does not search
    if Path(name_or_folder).is_dir() or constants.HF_HUB_OFFLINE or elsewhere or set(getproxies()) - {"no"}:
        return
    try:
        if try_to_load_from_cache(name_or_folder, "config.json") is not None:
            return
    except ValueError:
        return  # not a valid hub name: the hub's client reports that
    place = urlsplit(constants.ENDPOINT)
    patience = max(PATIENCE, float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or 0))
    try:
        port = place.port or (80 if place.scheme == "http" else 443)
        socket.create_connection((place.hostname or "", port), timeout=patience).close()
    except OSError as error:
        found = f"{place.hostname} cannot be reached ({error.strerror or error})"
        raise ConnectionError(f"{found}, and the model is not cached on this machine") from error


class HubEncoder(Encoder):
    """Features are the model's embedding of the image, as of CLIP; or its pooled output; or the mean of its feature map
    or, without a class token, of its patches. The width comes from one forward pass."""

    def __init__(
        self, name: str, model: nn.Module, config: dict[str, Any], image_size: int, mean: list[float], std: list[float]
    ) -> None:
        # Many checkpoints lack the dense pooler of a transformer, so that it would be random; its input is not.
        if hasattr(getattr(model, "pooler", None), "dense"):
            model.register_module("pooler", None)
        super().__init__(name, 0, image_size, mean, std)
        self.model, self._config = model.eval(), config
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            output = self._output(torch.zeros(1, 3, image_size, image_size))
            self.num_features = self._pooled(output, image_size**2).shape[1]
        self.model.train().eval()  # some, such as LeViT, remember what follows from their weights
        # Convolutional models, whose output is a map, accept images of any size.
        self.any_size = getattr(output.last_hidden_state, "ndim", 0) == 4
        self.may_read_text = config["model_type"] in ("clip_vision_model", "siglip_vision_model")

    @property
    def architecture(self) -> dict[str, Any]:
        scale = {"image_size": self.image_size, "mean": list(self.mean), "std": list(self.std)}
        return {"kind": KIND, "name": self.name, "config": self._config, **scale}

    def features(self, images: Tensor) -> Tensor:
        return self._pooled(self._output(images), images.shape[2] * images.shape[3])

    def _output(self, images: Tensor) -> Any:
        if not self._config["model_type"].startswith("siglip2"):
            return self.model(pixel_values=images, return_dict=True)
        # It takes rows of patches, (high, wide, channels), of images of any shape.
        side = self._config.get("patch_size", 16)
        patches = images.unfold(2, side, side).unfold(3, side, side).permute(0, 2, 3, 4, 5, 1)
        rows = patches.flatten(3).flatten(1, 2)
        shapes = torch.tensor([patches.shape[1:3]] * len(images), device=images.device)
        mask = torch.ones(rows.shape[:2], dtype=torch.int64, device=images.device)
        return self.model(pixel_values=rows, pixel_attention_mask=mask, spatial_shapes=shapes, return_dict=True)

    def _pooled(self, output: Any, pixels: int) -> Tensor:
        for name in ("image_embeds", "pooler_output"):
            pooled: Tensor | None = getattr(output, name, None)
            if pooled is not None:
                return pooled.flatten(1)
        last: Tensor = output.last_hidden_state
        if last.ndim == 4:
            return last.mean((2, 3))
        patch = self._config.get("patch_size", 16)
        every_token_is_a_patch = isinstance(patch, int) and last.shape[1] == pixels // patch**2
        return last.mean(1) if every_token_is_a_patch else last[:, 0]


def build_hub_encoder(architecture: dict[str, Any]) -> HubEncoder:
    """The network with random weights, from a run's description; no file is read and nothing is downloaded."""
    transformers = transformers_package()
    values = dict(architecture["config"])
    kind = values.pop("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        known = f"transformers {transformers.__version__} does not know. Update it: pip install -U transformers"
        raise ValueError(f"the encoder {architecture['name']} is a {kind!r}, which {known}")
    config = transformers.AutoConfig.for_model(kind, **values)
    if kind in TOWERS:
        model = getattr(transformers, TOWERS[kind])(config)
    else:
        # By default transformers asks the user whether to execute code that the configuration names.
        model = transformers.AutoModel.from_config(config, trust_remote_code=False)
    numbers = (architecture[key] for key in ("image_size", "mean", "std"))
    return HubEncoder(architecture["name"], model, architecture["config"], *numbers)


def load_hub_encoder(name_or_folder: str, image_size: int | None = None) -> Encoder:
    """A model with its weights, in eval mode."""
    source = Pretrained(name_or_folder)
    config = _image_part(source.config())
    loader = getattr(source.transformers, TOWERS.get(config.model_type, "AutoModel"))
    model, loading = source.load(
        lambda: loader.from_pretrained(source.place, config=config, output_loading_info=True, trust_remote_code=False)
    )
    absent = [*loading["missing_keys"], *(key for key, *_ in loading["mismatched_keys"])]
    missing = sorted(key for key in absent if not key.startswith("pooler."))
    if missing:
        found = f"{name_or_folder} has no weights for {len(missing)} tensors of a {config.model_type}"
        raise ValueError(f"{found}, such as {missing[0]}: it is not a complete image model. Use another encoder.")
    size, mean, std = _preprocessing(source, model.config)
    # Of the sizes that it was trained with, the first that the model accepts.
    own = _side(getattr(model.config, "image_size", None))
    sizes = [image_size] if image_size else dict.fromkeys(filter(None, (size, own, 224)))
    for side in sizes:
        try:
            encoder = HubEncoder(Path(name_or_folder).name, model, _plain(model.config), side, mean, std).eval()
        except (ValueError, RuntimeError, TypeError, AttributeError) as error:
            reason = str(error).partition("\n")[0]
        else:
            _refuse_random(encoder)
            return encoder
    raise ValueError(f"the encoder {name_or_folder} does not accept images of {side} x {side}: {reason}")


def _refuse_random(encoder: HubEncoder) -> None:
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        images = torch.linspace(-1, 1, 3 * encoder.image_size**2).reshape(1, 3, encoder.image_size, -1)
        if not torch.allclose(encoder.embed(images), encoder.embed(images), rtol=1e-3, atol=1e-5):
            raise ValueError(
                f"the encoder {encoder.name} gives an image different features each time. Use another one."
            )


def _image_part(config: Any) -> Any:
    """The configuration; for a model of images and texts, that of the image part."""
    if config.model_type not in TOWERS or not hasattr(config, "vision_config"):
        return config
    if hasattr(config, "projection_dim"):
        config.vision_config.projection_dim = config.projection_dim  # some checkpoints have it once, for both parts
    return config.vision_config


def _plain(config: Any) -> dict[str, Any]:
    """The configuration after a round trip through JSON."""
    values = json.loads(json.dumps({**config.to_diff_dict(), "model_type": config.model_type}, default=str))
    return {key: value for key, value in values.items() if key not in _ABOUT_CLASSES}


def _preprocessing(source: Pretrained, config: Any) -> tuple[int | None, list[float], list[float]]:
    """Image side, if it is known, mean and deviation of the model's training."""
    values = source.preprocessing()
    size = _side(values.get("crop_size") or values.get("size"))
    if not values.get("do_normalize", True):
        return size, [0.0] * 3, [1.0] * 3
    mean, std = CLIP if config.model_type.startswith("clip") else ([0.5] * 3, [0.5] * 3)
    return size, list(values.get("image_mean") or mean), list(values.get("image_std") or std)


def _side(size: Any) -> int | None:
    """The side of square images, by an entry of a configuration."""
    if isinstance(size, dict):
        size = size.get("height") or size.get("shortest_edge")
    if isinstance(size, list | tuple):
        size = size[0] if size else None
    return size if isinstance(size, int) and size > 0 else None
