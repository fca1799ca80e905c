"""Updates the weights from a loss: SGD with Nesterov momentum or AdamW, and the average of the weights, over flat
tensors.

All parameters of a kind are consecutive views of one tensor. So a step is a few operations, whatever the depth of the
network, and one kernel on a GPU. There the network computes with a bfloat16 copy of its weights, made in the same pass;
the float32 weights are here, and they are averaged, saved and evaluated.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.kernels import bfloat16_works, triton_works
from debiaspl.models import Average, Network, further_heads
from debiaspl.training.adamw import adamw_step, shorten
from debiaspl.training.flat import ParameterGroup, flatten, parameter_group
from debiaspl.training.layers import blocks_above


class Update:
    """``update.take(loss)`` computes the gradient, ``update.step(rate)`` updates every parameter, and then the average.

    With several ranks the gradient is the mean over them, computed by DistributedDataParallel. Batch norm statistics
    are averaged over ranks here, unless norms are ``synchronised`` and already equal, so that there is one average.
    """

    def __init__(
        self,
        student: Network,
        algorithm: nn.Module,
        average: Average,
        momentum: float,
        weight_decay: float,
        synchronised: bool = False,
        adamw: bool = False,
        layer_decay: float = 1.0,
        clip: float = 0.0,
    ) -> None:
        self.student, self.average, self.momentum = student, average, momentum
        self._synchronised, self._adamw, self._clip = synchronised, adamw, clip
        device = next(student.parameters()).device
        half, self._count = bfloat16_works(device), torch.zeros((), device=device)
        scales = {name: layer_decay**blocks for name, blocks in blocks_above(student).items()}
        self.groups: list[ParameterGroup] = []
        further = {id(one): average for head in further_heads(algorithm) for one, average in head.pairs()}
        for decays in (True, False):
            # Weight decay is for weights, not for norms and biases, the parameters of one dimension. A transformer's
            # tokens and positions have a first dimension of 1; with SGD, where they decay, this is as it always was.
            chosen = {
                name: p
                for name, p in student.named_parameters()
                if (p.ndim > 1 and not (adamw and p.shape[0] == 1 < p.ndim - 1)) == decays
            }
            decay = weight_decay if decays else 0.0
            for scale in sorted({scales[name] for name in chosen}):
                names = [name for name in chosen if scales[name] == scale]
                means = [average.model.get_parameter(name) for name in names]
                alike = [chosen[name] for name in names]
                self.groups.append(parameter_group(alike, means, decay, half and decays, adamw, scale))
            own = [p for p in algorithm.parameters() if (p.ndim > 1) == decays]
            if plain := [p for p in own if id(p) not in further]:
                self.groups.append(parameter_group(plain, [], decay, half and decays, adamw))
            if averaged := [p for p in own if id(p) in further]:
                averages = [further[id(p)] for p in averaged]
                self.groups.append(parameter_group(averaged, averages, decay, half and decays, adamw))
        self._flatten_statistics()
        if ranks.count() > 1:
            for group in self.groups:
                for parameter, view in zip(group.parameters, group.gradient_views, strict=True):
                    parameter.grad = view

    def _flatten_statistics(self) -> None:
        """Store the batch norm statistics of the student and of its average as two flat tensors, without counters."""
        averages = dict(self.average.model.named_buffers())
        # Buffers that are not saved are constants, not statistics: a mean over ranks would round them, step by step.
        learned = self.student.state_dict().keys()
        pairs = [(value, averages[name]) for name, value in self.student.named_buffers() if name in learned]
        floats = [pair for pair in pairs if pair[0].is_floating_point()]
        self._counters = [pair for pair in pairs if not pair[0].is_floating_point()]
        self._statistics = flatten([student for student, _ in floats], torch.get_default_dtype())
        self._average_statistics = flatten([average for _, average in floats], torch.get_default_dtype())

    def __call__(self, loss: Tensor, rate: Tensor | float) -> None:
        self.take(loss)
        self.step(rate)

    def take(self, loss: Tensor, add: bool = False) -> None:
        """Compute the gradient of this loss; with ``add``, add it to the one before."""
        if ranks.count() > 1:
            # Only gradients that reach the parameters' .grad are exchanged, which torch.autograd.grad would not use.
            if not add:
                for group in self.groups:
                    group.gradients.zero_()
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it without types
            return
        parameters = [parameter for group in self.groups for parameter in group.parameters]
        gradients = iter(torch.autograd.grad(loss, parameters, materialize_grads=True))
        with torch.no_grad():
            for group in self.groups:
                own = [next(gradients) for _ in group.parameters]
                (torch._foreach_add_ if add else torch._foreach_copy_)(group.gradient_views, own)

    @torch.no_grad()
    def step(self, rate: Tensor | float) -> None:
        self._count.add_(1)
        if self._clip:
            shorten([group.gradients for group in self.groups], self._clip)
        for group in self.groups:
            self._step_group(group, rate)
        self._step_statistics()

    def _step_group(self, group: ParameterGroup, rate: Tensor | float) -> None:
        one_minus_decay = 1 - self.average.decay
        if group.scale != 1:
            rate = rate * group.scale
        if group.squares is not None:
            gradient = group.gradients.to(group.values.dtype)
            adamw_step(group.values, gradient, group.momentum, group.squares, self._count, rate, group.weight_decay)
            self._follow(group)
            return
        if isinstance(rate, Tensor) and group.values.is_cuda and triton_works():
            from debiaspl.kernels.update_triton import update

            tensors = group.values, group.gradients, group.momentum, group.average, group.work
            update(*tensors, rate, group.weight_decay, self.momentum, one_minus_decay)
            return
        gradient = group.gradients.to(group.values.dtype).add(group.values, alpha=group.weight_decay)
        group.momentum.mul_(self.momentum).add_(gradient)
        direction = gradient.add_(group.momentum, alpha=self.momentum)
        if isinstance(rate, Tensor):
            group.values.addcmul_(direction, rate.to(group.values.dtype), value=-1)
        else:
            group.values.add_(direction, alpha=-rate)
        self._follow(group)

    def _follow(self, group: ParameterGroup) -> None:
        """The average, and what the network computes with, after the values have changed."""
        if group.average is not None:
            group.average.lerp_(group.values, 1 - self.average.decay)
        if group.work is not None:
            group.work.copy_(group.values)

    def _step_statistics(self) -> None:
        if ranks.count() > 1 and not self._synchronised and len(self._statistics):  # NCCL needs GPU tensors
            self._statistics.copy_(ranks.mean(self._statistics))
        if self.average.statistics:
            self._average_statistics.lerp_(self._statistics, 1 - self.average.decay)
        else:
            self._average_statistics.copy_(self._statistics)
        for student, average in self._counters:
            average.copy_(student)

    def exact_state(self, module: nn.Module) -> dict[str, Tensor]:
        """``state_dict`` of the student or the algorithm, with the float32 values of its parameters."""
        exact = {id(p): value for group in self.groups for p, value in zip(group.parameters, group.exact, strict=True)}
        state: dict[str, Tensor] = dict(module.state_dict())
        return state | {name: exact[id(parameter)] for name, parameter in module.named_parameters()}

    def load_exact(self, module: nn.Module, state: Mapping[str, Tensor]) -> None:
        """Load a result of ``exact_state``, in place."""
        module.load_state_dict(state)
        own = self.exact_state(module)
        for name, _ in module.named_parameters():
            own[name].copy_(state[name])

    def momenta(self) -> dict[str, Tensor]:
        momenta = {str(number): group.momentum for number, group in enumerate(self.groups)}
        if self._adamw:
            squares = {f"{number}.squares": group.squares for number, group in enumerate(self.groups)}
            momenta |= {name: value for name, value in squares.items() if value is not None}
            momenta["count"] = self._count
        return momenta

    def load_momenta(self, state: Mapping[str, Tensor]) -> None:
        for name, momentum in self.momenta().items():
            if state[name].shape != momentum.shape:
                raise ValueError(
                    f"momentum {name} has {state[name].numel()} numbers, expected {momentum.numel()}: another network."
                )
            momentum.copy_(state[name])
