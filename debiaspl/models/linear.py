"""The network for vectors that are features already."""

from torch import Tensor, nn

from debiaspl.models.network import Network
from debiaspl.models.scaling import Scaling


class LinearNetwork(Network):
    """A linear classifier that starts at zero: the first predictions are uniform, and no random numbers are drawn.

    It is trained with scaled vectors. After its ``scaling`` is set, it takes raw vectors.
    """

    scaling: Scaling | None

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.scaling = None
        # No random initial weights, which would use numbers of the user's generator.
        self.head: nn.Linear = nn.Linear(num_features, num_classes, device="meta").to_empty(device="cpu")
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, images: Tensor) -> Tensor:
        return images if self.scaling is None else self.scaling(images)
