"""CoOp (Zhou et al., 2022): the words before the class names are learned from a few labeled images."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from debiaspl.data import DataError
from debiaspl.encoders.text import TextClassifier, TextSide, text_side

VECTORS = 16
BATCH = 32
RATE, FIRST_RATE = 0.002, 1e-5
MOMENTUM, DECAY = 0.9, 5e-4
DEVIATION = 0.02


class Prompts:
    """``prompts(context)``: a direction for each class, (C, D), from the vectors that all share, (V, W), then the name
    of the class and a full stop. There are 16 vectors, or as many as fit before the longest name."""

    def __init__(self, side: TextSide, classes: Sequence[str]) -> None:
        self.side = side
        tokens = side.tokens([f"{name.replace('_', ' ')}." for name in classes])
        longest = side.config.text_config.max_position_embeddings
        self.vectors = min(VECTORS, longest - tokens["input_ids"].shape[1])
        if self.vectors < 1:
            raise DataError(f"the longest class name fills all {longest} places of the text. Shorten it.")
        # Any token stands in the places of the vectors; its own vector is replaced.
        self.tokens = {
            name: torch.cat((ids[:, :1], ids[:, 1:2].expand(-1, self.vectors), ids[:, 1:]), 1)
            for name, ids in tokens.items()
        }

    def __call__(self, context: Tensor) -> Tensor:
        def put(module: Any, inputs: Any, embedded: Tensor) -> Tensor:
            shared = context.expand(len(embedded), -1, -1).to(embedded.dtype)
            return torch.cat((embedded[:, :1], shared, embedded[:, 1 + self.vectors :]), 1)

        handle = self.side.model.text_model.embeddings.token_embedding.register_forward_hook(put)
        try:
            return self.side.features(self.tokens)
        finally:
            handle.remove()


def epochs_for(shots: float) -> int:
    """By the number of labels of a class, as published for 1, 2, 4, 8 and 16."""
    return 50 if shots < 2 else 100 if shots <= 4 else 200


def rate_of(epoch: int, epochs: int) -> float:
    return FIRST_RATE if epoch == 0 else RATE * (1 + math.cos(math.pi * epoch / epochs)) / 2


@torch.enable_grad()
def learned_text(
    source: str, classes: Sequence[str], features: Tensor, label: Tensor, seed: int = 0, epochs: int | None = None
) -> TextClassifier:
    """A classifier from class names after words that are learned by cross-entropy from image features, (N, D), with
    everything else frozen. The authors crop and mirror the images in every epoch; here each is seen as it is."""
    side = text_side(source, learned=True)
    prompts = Prompts(side, classes)
    drawn = torch.Generator().manual_seed(seed)
    width = side.config.text_config.hidden_size
    context = (DEVIATION * torch.randn((prompts.vectors, width), generator=drawn)).requires_grad_()
    units, label = F.normalize(features.detach().float().cpu(), dim=-1), label.cpu()
    scale = float(side.model.logit_scale.exp())
    optimiser = torch.optim.SGD([context], RATE, momentum=MOMENTUM, weight_decay=DECAY)
    epochs = epochs or epochs_for(len(label) / len(torch.unique(label)))
    for epoch in range(epochs):
        optimiser.param_groups[0]["lr"] = rate_of(epoch, epochs)
        for rows in torch.split(torch.randperm(len(label), generator=drawn), BATCH):
            loss = F.cross_entropy(scale * units[rows] @ prompts(context).T, label[rows])
            (context.grad,) = torch.autograd.grad(loss, [context])
            optimiser.step()
    return TextClassifier(prompts(context).detach(), scale)
