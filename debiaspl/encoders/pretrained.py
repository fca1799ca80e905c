"""Pretrained models of ``transformers``, by hub name or local folder. None of their code is executed."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from debiaspl._extras import extra
from debiaspl.data import DataError
from debiaspl.encoders.hub import quiet
from debiaspl.encoders.reach import require_hub
from debiaspl.files import digest_of_file

T = TypeVar("T")


class Pretrained:
    """A model by hub name or folder. Weights are read only from safetensors, so that loading executes no code."""

    def __init__(self, name_or_folder: str) -> None:
        self.name = name_or_folder
        self.is_folder = Path(name_or_folder).expanduser().is_dir()
        self.place = str(Path(name_or_folder).expanduser()) if self.is_folder else name_or_folder
        looks_like_path = name_or_folder.startswith((".", "/", "~")) or name_or_folder.count("/") > 1
        if not self.is_folder and looks_like_path:
            raise DataError(f"{name_or_folder} is not a folder. Expected {_EXPECTED}, or a name on the hub.")
        if self.is_folder and not (Path(self.place) / "config.json").is_file():
            raise DataError(f"{name_or_folder} has no config.json, so it is not a model folder. Expected {_EXPECTED}.")
        self.transformers = extra(
            "transformers", "zero-shot models need transformers: pip install 'debiaspl[zeroshot]'"
        )

    def config(self) -> Any:
        self._load(lambda: require_hub(self.place))
        # By default transformers asks the user whether to execute the model's code.
        return self._load(lambda: self.transformers.AutoConfig.from_pretrained(self.place, trust_remote_code=False))

    def model(self, kind: Any) -> Any:
        """The model, in eval mode and without gradients."""
        loaded = self._load(lambda: kind.from_pretrained(self.place, use_safetensors=True))
        return loaded.eval().requires_grad_(False)

    def tokenizer(self) -> Any:
        load = self.transformers.AutoTokenizer.from_pretrained
        return self._load(lambda: load(self.place, trust_remote_code=False))

    def preprocessing(self) -> dict[str, Any]:
        """The content of ``preprocessor_config.json``; empty if there is none."""
        from transformers.utils.hub import cached_file

        options = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
        found = self._load(lambda: cached_file(self.place, "preprocessor_config.json", **options))
        told: dict[str, Any] = {} if found is None else self._load(lambda: json.loads(Path(found).read_text()))
        return told

    def identity(self) -> str:
        """Identifies the weights: their commit on the hub, or a digest of the folder's files."""
        if not self.is_folder:
            return f"{self.name}@{getattr(self.config(), '_commit_hash', None)}"
        found = hashlib.sha256()
        for path in sorted(Path(self.place).glob("*")):
            if path.suffix in (".safetensors", ".json", ".txt", ".model"):
                found.update(path.name.encode())
                found.update(bytes.fromhex(digest_of_file(path)))
        return found.hexdigest()

    def _load(self, load: Callable[[], T]) -> T:
        try:
            with quiet(self.transformers):
                return load()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        except Exception as error:  # safetensors and tokenizers have their own exceptions
            reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        where = "the folder" if self.is_folder else "the hub (or its cache on this machine)"
        raise DataError(
            f"{self.name} cannot be loaded from {where}: {reason.rstrip('.')}. Expected {_EXPECTED}, or a "
            "name on the hub and a network connection."
        )


_EXPECTED = "a folder with config.json, model.safetensors, preprocessor_config.json and the files of a tokenizer"
