"""Pretrained models of ``transformers``, by hub name or local folder. None of their code is executed."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from debiaspl._extras import extra
from debiaspl.data import DataError
from debiaspl.encoders.reach import require_hub

T = TypeVar("T")
_EXPECTED = (
    "Expected efficientnet-lite0, the name of a model on the Hugging Face hub (which needs a network the first time), "
    "or a folder made by save_pretrained, with config.json and model.safetensors; for texts also with a tokenizer."
)


class Pretrained:
    """A model by hub name or folder. Weights are read only as data, so that loading executes no code."""

    def __init__(self, name_or_folder: str) -> None:
        self.name, folder = name_or_folder, Path(name_or_folder).expanduser()
        is_path = name_or_folder.startswith((".", "~", os.sep)) or name_or_folder.count("/") > 1
        self.place = str(folder) if folder.is_dir() else name_or_folder
        if folder.is_dir() and not (folder / "config.json").is_file():
            raise DataError(f"the encoder {name_or_folder} is a folder without config.json. {_EXPECTED}")
        if not folder.is_dir() and (is_path or folder.exists()):
            found = "is a file" if folder.exists() else "does not exist"
            raise DataError(f"the encoder {name_or_folder} {found}. {_EXPECTED}")
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
        try:
            mixin = self.transformers.image_processing_utils.ImageProcessingMixin
            values: dict[str, Any] = mixin.get_image_processor_dict(self.place)[0]
        except OSError:
            return {}
        return values

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
