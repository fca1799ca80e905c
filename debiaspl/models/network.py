"""The base class of all networks, their classifiers by name, and what scales inputs; two small networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from debiaspl.debias.correction import within
from debiaspl.debias.heads import NormalisedHead
from debiaspl.kernels import holds
from debiaspl.kernels.norm import NormActivate

CHUNK = 8192
SAMPLE = 1000
"""Rows for measuring the largest eigenvalue."""


class Network(nn.Module, ABC):
    """``network(images)`` returns logits, (N, classes); ``network.embed(images)`` returns their features, (N, D).

    Settings of the same meaning in many networks:

    Args:
        num_classes: number of classes.
        channels: channels of the images.
        norm_momentum: momentum of the batch norm statistics; higher is faster.
        head: classifier: linear, cosine (LDAM), causal (Causal Norm) or hidden (SimCLRv2).
    """

    num_features: int
    """Width of the features (D)."""
    head: nn.Linear
    least_side: int = 1
    """Smallest side of an image, in pixels."""
    draws: bool = False
    """Whether it draws random numbers of torch's own generator in training, as dropout does."""

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Features of images."""

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.embed(images))

    def load_pretrained(self) -> None:
        """Load the weights that training starts with, if they are not random. Not called for a network that gets the
        weights of a run: the file may be gone."""


def initialise(network: Network) -> None:
    """As in FixMatch: convolutions after He et al. (2015), the classifier after Glorot and Bengio (2010)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    nn.init.xavier_normal_(network.head.weight)
    nn.init.zeros_(network.head.bias)


class NormActivateRows(nn.Module):
    """Batch norm and ReLU of rows, (N, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = NormActivate(width, momentum=0.1, eps=1e-5, slope=0.0)
        self.norm.synchronised = True

    def forward(self, rows: Tensor) -> Tensor:
        images = rows[:, :, None, None].contiguous(memory_format=torch.channels_last)
        return self.norm(images)[1].flatten(1)


class HiddenHead(nn.Linear):
    """A linear classifier after the first layer of a SimCLR projector, with batch norm and a ReLU, from which SimCLRv2
    (Chen et al., 2020) is fine-tuned."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__(num_features, num_classes)
        layer = nn.Linear(num_features, num_features, bias=False)
        self.first = nn.Sequential(layer, NormActivateRows(num_features))

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(self.first(features), self.weight, self.bias)


HEADS: dict[str, Callable[[int, int], nn.Linear]] = {
    "linear": nn.Linear,
    "cosine": NormalisedHead,
    "causal": partial(NormalisedHead, heads=2, scale=16.0, slack=1 / 32),
    "hidden": HiddenHead,
}


def make_head(name: str, num_features: int, num_classes: int) -> nn.Linear:
    if name not in HEADS:
        raise ValueError(f"head is {name!r}, expected one of {', '.join(HEADS)}.")
    return HEADS[name](num_features, num_classes)


def scale(images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Scale uint8 0..255 to -1..1, as FixMatch does, in torch's default precision or ``dtype``; channels last, which
    convolutions prefer. Features, (N, D), stay as they are."""
    if images.is_floating_point():
        return images
    dtype = dtype or torch.get_default_dtype()
    if holds(images):
        from debiaspl.kernels import views_triton

        return views_triton.scale(images.contiguous(), dtype)
    return images.to(torch.float32, memory_format=torch.channels_last).div_(127.5).sub_(1).to(dtype)


class Scaling(nn.Module):
    """Scales vectors of any unit, so that one learning rate fits all of them.

    ``scaling(vectors)``: subtracts the mean, then divides every feature by its deviation, for columns of a table, or,
    with ``unit``, every vector by its length, for those of an encoder. Finally it multiplies all by one number, so that
    the largest curvature of a linear classifier's loss is the same for all data.
    """

    mean: Tensor
    factor: Tensor
    gain: Tensor

    def __init__(self, width: int, unit: bool = False) -> None:
        super().__init__()
        self.unit = unit
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("factor", torch.ones(width))
        self.register_buffer("gain", torch.ones(()))

    @classmethod
    @torch.no_grad()
    def of(cls, vectors: Tensor, unit: bool = False) -> "Scaling":
        """Learn the scale from all rows of (N, D)."""
        scaling = cls(vectors.shape[1], unit).to(vectors.device)
        dtype = torch.promote_types(vectors.dtype, torch.float32)
        # Sums within a part in the vectors' own precision, which is fast; sums of parts in float64, which is exact.
        parts = torch.split(vectors, CHUNK)
        mean = torch.stack([part.to(dtype).sum(0) for part in parts]).double().sum(0) / len(vectors)
        scaling.mean = mean.to(dtype)
        if not unit:
            # Around the mean: the difference of two large sums would lose small variations beside a large offset.
            squares = torch.stack([(part.to(dtype) - scaling.mean).square_().sum(0) for part in parts]).double().sum(0)
            deviation = (squares / len(vectors)).sqrt()
            # A feature that never changes carries no information.
            varies = deviation > 10 * torch.finfo(dtype).eps * mean.abs()
            scaling.factor = torch.where(varies, 1 / deviation, 0.0).to(dtype)
        some = vectors[:: max(len(vectors) // SAMPLE, 1)]
        scaling.gain = 1 / _steepest(scaling(some))
        return scaling

    def forward(self, vectors: Tensor) -> Tensor:
        centred = ((vectors - self.mean) * self.factor).float()
        return (F.normalize(centred, dim=-1) if self.unit else centred) * self.gain


def _steepest(vectors: Tensor) -> Tensor:
    """The square root of the largest eigenvalue of the mean of x x^T; its square is the curvature, up to a factor."""
    direction = vectors.norm(dim=1) @ vectors
    for _ in range(20):
        direction = (vectors @ (direction / direction.norm().clamp_min(1e-12))) @ vectors
    largest: Tensor = direction.norm() / len(vectors)
    return largest.sqrt().clamp_min(1e-6)


class LinearNetwork(Network):
    """A linear classifier that starts at zero: the first predictions are uniform, and no random numbers are drawn.

    It is trained with scaled vectors. After its ``scaling`` is set, it takes raw vectors.
    """

    scaling: Scaling | None

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.scaling = None
        self.head: nn.Linear = nn.Linear(num_features, num_classes, device="meta").to_empty(device="cpu")
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, images: Tensor) -> Tensor:
        return images if self.scaling is None else self.scaling(images)


class SmallNet(Network):
    """Four convolutions that halve the image twice, then the mean; for 8x8 to 32x32 images, fast on a CPU.

    Args:
        width: channels of the first convolution; the last has four times as many.
    """

    def __init__(
        self, num_classes: int, channels: int = 1, width: int = 16, norm_momentum: float = 0.1, head: str = "linear"
    ) -> None:
        super().__init__()
        within("width", width, "[1, inf)")
        layers: list[nn.Module] = []
        shapes = (channels, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 1), (4 * width, 4 * width, 2)
        for incoming, outgoing, stride in shapes:
            layers += [
                nn.Conv2d(incoming, outgoing, 3, stride, padding=1, bias=False),
                nn.BatchNorm2d(outgoing, momentum=norm_momentum),
                nn.ReLU(inplace=True),
            ]
        self.features = nn.Sequential(*layers)
        self.num_features = 4 * width
        self.head = make_head(head, self.num_features, num_classes)

    def embed(self, images: Tensor) -> Tensor:
        return self.features(images).mean((2, 3))
