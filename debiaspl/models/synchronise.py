"""Batch norm over the batches of all ranks."""

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from debiaspl.debias import ranks
from debiaspl.kernels.norm import NormActivate
from debiaspl.kernels.norm_ranks import joint_norm


def synchronise_norms(network: nn.Module) -> None:
    """Make batch norm use the joint batch of all ranks, in training.

    In place, with the same parameters, buffers and names. In eval mode and in one process nothing changes.
    """
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and type(module) not in (nn.BatchNorm2d, JointBatchNorm2d):
            raise ValueError(
                f"{name} is a {type(module).__name__}, but only nn.BatchNorm2d can be synchronised. "
                "Use the statistics of each rank for this network."
            )
    for module in list(network.modules()):
        if isinstance(module, NormActivate):
            module.synchronised = True
        for name, child in list(module.named_children()):
            if type(child) is nn.BatchNorm2d:
                setattr(module, name, JointBatchNorm2d(child))


class JointBatchNorm2d(nn.BatchNorm2d):
    """``nn.BatchNorm2d`` over all ranks, with the parameters and buffers of an existing one."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self, name, getattr(norm, name))
        self.train(norm.training)

    def forward(self, images: Tensor) -> Tensor:
        if not self.training or ranks.count() == 1:
            return super().forward(images)
        self._check_input_dim(images)
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # every batch has the same weight
                momentum = 1 / self.num_batches_tracked
        learned = self.weight, self.bias, self.running_mean, self.running_var
        return joint_norm(images, *learned, momentum, self.eps)
