"""A residual network with nine layers, for runs of minutes."""

from torch import Tensor, nn

from debiaspl.kernels.norm import NormActivate
from debiaspl.kernels.pool import max_pool
from debiaspl.models.network import Network, initialise, make_head
from debiaspl.models.wrn import EPS, SLOPE


class ResNet9(Network):
    """A few wide layers instead of many narrow ones: on a GPU it learns several times as fast as WRN-28-2.

    A stem, then three stages that each halve the image; the first and the last have a residual block. The idea comes
    from the fast entries in the DAWNBench competition (Coleman et al., 2017).

    Args:
        widths: channels of the stem and of the three stages.
    """

    least_side = 8  # halved three times, one pixel is left

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        norm_momentum: float = 0.1,
        head: str = "linear",
    ) -> None:
        super().__init__()
        if len(widths) != 4 or min(widths) < 1:
            raise ValueError(f"widths are {widths}, expected four numbers: for the stem and three stages.")
        stem, first, second, third = widths
        self.stem = nn.Conv2d(channels, stem, 3, padding=1, bias=False)
        self.norm = NormActivate(stem, norm_momentum, EPS, SLOPE)
        shapes = (stem, first, True), (first, second, False), (second, third, True)
        self.stages = nn.ModuleList(Stage(*shape, norm_momentum) for shape in shapes)
        self.num_features = third
        self.head = make_head(head, self.num_features, num_classes)
        initialise(self)

    def embed(self, images: Tensor) -> Tensor:
        height, width = images.shape[2:]
        if height < self.least_side or width < self.least_side:
            raise ValueError(f"images are {width} x {height} pixels, expected {self.least_side} or more: image_size.")
        _, active = self.norm(self.stem(images))
        for stage in self.stages:
            active = stage(active)
        return active.mean((2, 3))


class Stage(nn.Module):
    """A convolution, max-pooling, norm and activation; with ``residual``, two more convolutions and a shortcut."""

    def __init__(self, incoming: int, outgoing: int, residual: bool, norm_momentum: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(incoming, outgoing, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(
            NormActivate(outgoing, norm_momentum, EPS, SLOPE) for _ in range(3 if residual else 1)
        )
        self.inner = nn.ModuleList(
            nn.Conv2d(outgoing, outgoing, 3, padding=1, bias=False) for _ in range(2 if residual else 0)
        )

    def forward(self, images: Tensor) -> Tensor:
        active: Tensor
        total, active = self.norms[0](max_pool(self.conv(images)))
        if self.inner:
            _, between = self.norms[1](self.inner[0](active))
            _, active = self.norms[2](total, self.inner[1](between))
        return active
