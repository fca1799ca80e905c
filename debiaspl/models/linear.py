"""The network of vectors that are features already."""

from torch import Tensor, nn

from debiaspl.models.network import Network
from debiaspl.models.scaling import Scaling


class LinearNetwork(Network):
    """A linear classifier that begins with zeros: the first predictions favour nobody, and nothing is drawn.

    It is trained with vectors that have been scaled before. Given that ``scaling``, it takes them as they came.
    """

    scaling: Scaling | None

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.scaling = None
        # Its first weights are not drawn, which would take numbers from the user's own generator.
        self.head: nn.Linear = nn.Linear(num_features, num_classes, device="meta").to_empty(device="cpu")
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, images: Tensor) -> Tensor:
        return images if self.scaling is None else self.scaling(images)
