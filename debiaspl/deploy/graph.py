"""A model with its preprocessing as one module: bytes of pictures in, probabilities out."""

import torch
from torch import Tensor, nn

from debiaspl.deploy.resize import cover, pillow_is_tall_first
from debiaspl.deploy.saved import SavedModel
from debiaspl.models import scale

INPUT, OUTPUTS = "images", ("probabilities", "logits")


class Deployed(nn.Module):
    """uint8 pictures (N, H, W, C), as NumPy has them of Pillow, of any height and width -> probabilities and logits."""

    def __init__(self, model: SavedModel) -> None:
        super().__init__()
        self.network, self.size = model.network, model.size
        self.tall_first = pillow_is_tall_first()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        pictures = cover(images.permute(0, 3, 1, 2), self.size, self.tall_first)
        logits = self.network(scale(pictures)).float()
        return logits.softmax(-1), logits


def exported(model: SavedModel) -> torch.export.ExportedProgram:
    """The module as a graph, for any number of pictures of any size."""
    # Sizes that are all different, and none that a graph could take for a constant.
    height, width = model.size[0] + 3, model.size[1] + 6
    example = torch.zeros((2, height, width, model.channels), dtype=torch.uint8)
    dynamic = {0: torch.export.Dim("batch"), 1: torch.export.Dim("height"), 2: torch.export.Dim("width")}
    with torch.no_grad():
        return torch.export.export(Deployed(model).eval(), (example,), dynamic_shapes={INPUT: dynamic})
