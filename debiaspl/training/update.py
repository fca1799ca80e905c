"""Updates the weights from a loss: SGD with Nesterov momentum or AdamW, and the average of the weights.

All parameters of a kind are consecutive views of one flat tensor: a step is a few operations, and one kernel on a GPU.
In bfloat16 the network computes with a copy of its weights; the float32 weights are here, and they are averaged, saved
and evaluated.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.kernels import triton_works
from debiaspl.models import Average, Network, further_heads
from debiaspl.training.loss_scale import LossScale
from debiaspl.training.recipe import FIXMATCH, HALF_WAVE, Recipe

ALIGNED = 64
"""In elements: every parameter starts on a boundary that fast kernels need."""
BETAS, EPS = (0.9, 0.999), 1e-8
"""AdamW's."""
SCALE = "scale"
"""Name of the loss scale among the momenta."""


class ParameterGroup:
    """Parameters that are updated in the same way: with this weight decay, and the learning rate times ``scale``.

    ``parameters`` are what the network computes with; ``values`` are their float32 values, flat, and ``exact`` the same
    with the parameters' shapes. ``momentum`` is SGD's velocity or AdamW's mean of gradients, ``squares`` that of their
    squares. ``average`` has the averages of the values, if there are any. ``work`` is the tensor of which the
    parameters are views, if that is not ``values``.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        averages: Sequence[Tensor],
        weight_decay: float,
        half: bool,
        adamw: bool,
        scale: float = 1.0,
    ) -> None:
        dtype = torch.bfloat16 if half else torch.get_default_dtype()
        self.parameters, self.weight_decay, self.scale = tuple(parameters), weight_decay, scale
        self.values = torch.zeros(_length(parameters), device=parameters[0].device)
        self.exact = _views(self.values, parameters)
        for view, parameter in zip(self.exact, parameters, strict=True):
            view.copy_(parameter.data)
        self.work = self.values.to(dtype) if half else None
        used = self.values if self.work is None else self.work
        for parameter, view in zip(parameters, _views(used, parameters), strict=True):
            parameter.data = view
        self.gradients = torch.zeros_like(self.values, dtype=dtype)
        self.gradient_views = _views(self.gradients, parameters)
        self.momentum = torch.zeros_like(self.values)
        self.squares = torch.zeros_like(self.values) if adamw else None
        self.average = flatten(averages) if averages else None


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """One flat tensor with the values of all tensors, which become views of it."""
    if not tensors:
        return torch.zeros(0)
    flat = torch.zeros(_length(tensors), device=tensors[0].device)
    for tensor, view in zip(tensors, _views(flat, tensors), strict=True):
        view.copy_(tensor.data)
        tensor.data = view
    return flat


def _length(tensors: Sequence[Tensor]) -> int:
    return sum(-(-tensor.numel() // ALIGNED) * ALIGNED for tensor in tensors)


def _views(flat: Tensor, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the flat tensor with the shapes and strides of these tensors, which are dense in memory."""
    views, start = [], 0
    for tensor in like:
        views.append(flat.as_strided(tensor.shape, tensor.stride(), start))
        start += -(-tensor.numel() // ALIGNED) * ALIGNED
    return tuple(views)


def blocks_above(network: nn.Module) -> dict[str, int]:
    """Name of each parameter -> blocks above it: 0 for what follows the last block, such as the classifier.

    A block is one of several modules of the same type in a list, such as a layer of a transformer. What lies between
    blocks counts to the one before it, what comes before the first one is below all.
    """
    blocks = _blocks(network, "")
    place = {name: number for number, name in enumerate(blocks, 1)}
    last, found = 0, {}
    for name, _ in network.named_parameters():
        own = next((place[block] for block in blocks if name.startswith(f"{block}.")), None)
        if own is not None:
            last = own
        elif name.startswith("head.") or last == len(blocks):
            last = len(blocks) + 1 if blocks else 0
        found[name] = last
    top = max(found.values(), default=0)
    return {name: top - depth for name, depth in found.items()}


def _blocks(module: nn.Module, prefix: str) -> list[str]:
    """Names of all blocks below a module, in order."""
    names: list[str] = []
    for name, child in module.named_children():
        whole = f"{prefix}{name}"
        inner = _blocks(child, f"{whole}.")
        # Unlike a linear layer or an activation, a block has parameters in modules of its own.
        large = any(True for _ in child.children()) and any(True for _ in child.parameters())
        alike = len({type(other) for other in module.children()}) == 1
        is_block = large and alike and isinstance(module, nn.ModuleList | nn.Sequential)
        names += [whole] if is_block and not inner else inner
    return names


def adamw_step(group: ParameterGroup, squares: Tensor, gradient: Tensor, count: Tensor, rate: Tensor | float) -> None:
    """One step, in place; ``count`` is its number, from 1."""
    first, second = BETAS
    group.momentum.lerp_(gradient, 1 - first)
    squares.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    length = (squares / (1 - second**count)).sqrt_().add_(EPS)
    direction = group.momentum / (1 - first**count) / length + group.weight_decay * group.values
    group.values.sub_((rate * direction).to(group.values.dtype))


def shorten(gradients: Sequence[Tensor], longest: float) -> None:
    """Shorten gradients, in place, so that together they are at most this long."""
    length = torch.stack([gradient.float().square().sum() for gradient in gradients]).sum().sqrt()
    share = (longest / (length + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(share.to(gradient.dtype))


def rate(number: int, length: int, arc: float = FIXMATCH, warm_up: float = 0.0) -> float:
    """The factor at step ``number`` of ``length``: linear from 0 to 1 over the first share ``warm_up`` of the steps,
    then cos(arc pi k / K) over the other K steps, or the half wave: see ``Recipe.arc``."""
    rising = round(warm_up * length)
    if number < rising:
        return (number + 1) / rising  # the first step is above 0, since a rate of 0 would waste it
    wave = math.cos(arc * math.pi * (number - rising) / (length - rising))
    return (1 + wave) / 2 if arc == HALF_WAVE else wave


class Update:
    """``update.take(loss)`` computes the gradient, ``update.step(rate)`` updates every parameter, and then the average.

    With several ranks the gradient is the mean over them, computed by DistributedDataParallel. Batch norm statistics
    are averaged over ranks here, unless norms are ``synchronised`` and already equal.
    """

    def __init__(
        self,
        student: Network,
        algorithm: nn.Module,
        average: Average,
        recipe: Recipe,
        synchronised: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.student, self.average, self._recipe, self._synchronised = student, average, recipe, synchronised
        adamw, device = recipe.optimizer == "adamw", next(student.parameters()).device
        half, self._count = dtype == torch.bfloat16, torch.zeros((), device=device)
        self._scale = LossScale(device) if dtype == torch.float16 else None
        scales = {name: recipe.layer_decay**blocks for name, blocks in blocks_above(student).items()}
        self.groups: list[ParameterGroup] = []
        named = student.named_parameters()
        averages: dict[int, Tensor] = {id(p): average.model.get_parameter(name) for name, p in named}
        averages |= {id(p): mean for head in further_heads(algorithm) for p, mean in head.pairs()}
        for decays in (True, False):
            kinds = defaultdict[tuple[int, float], list[nn.Parameter]](list)
            for name, p in student.named_parameters():
                # Weight decay is for weights, not for norms and biases, which have one dimension. Tokens and positions
                # of a transformer have a first dimension of 1; with SGD they decay.
                if (p.ndim > 1 and not (adamw and p.shape[0] == 1 < p.ndim - 1)) == decays:
                    kinds[0, scales[name]].append(p)
            for p in algorithm.parameters():
                if (p.ndim > 1) == decays:
                    kinds[2 if id(p) in averages else 1, 1.0].append(p)
            decay = recipe.weight_decay if decays else 0.0
            for (_, scale), alike in sorted(kinds.items()):
                means = [averages[id(p)] for p in alike if id(p) in averages]
                self.groups.append(ParameterGroup(alike, means, decay, half and decays, adamw, scale))
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
        self._statistics = flatten([student for student, _ in floats])
        self._average_statistics = flatten([average for _, average in floats])

    def take(self, loss: Tensor, add: bool = False) -> None:
        """Compute the gradient of this loss; with ``add``, add it to the one before."""
        loss = loss if self._scale is None else self._scale.scaled(loss)
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
        gradients = [group.gradients for group in self.groups]
        if self._scale is not None and not self._scale.unscale(gradients):
            return
        self._count.add_(1)
        if self._recipe.clip:
            shorten(gradients, self._recipe.clip)
        for group in self.groups:
            self._step_group(group, rate)
        self._step_statistics()

    def _step_group(self, group: ParameterGroup, rate: Tensor | float) -> None:
        momentum, one_minus_decay = self._recipe.sgd_momentum, 1 - self.average.decay
        if group.scale != 1:
            rate = rate * group.scale
        if isinstance(rate, Tensor) and group.squares is None and group.values.is_cuda and triton_works():
            from debiaspl.kernels.update_triton import update

            tensors = group.values, group.gradients, group.momentum, group.average, group.work
            update(*tensors, rate, group.weight_decay, momentum, one_minus_decay)
            return
        gradient = group.gradients.to(group.values.dtype)
        if group.squares is not None:
            adamw_step(group, group.squares, gradient, self._count, rate)
        else:
            gradient = gradient.add(group.values, alpha=group.weight_decay)
            group.momentum.mul_(momentum).add_(gradient)
            direction = gradient.add_(group.momentum, alpha=momentum)
            if isinstance(rate, Tensor):
                group.values.addcmul_(direction, rate.to(group.values.dtype), value=-1)
            else:
                group.values.add_(direction, alpha=-rate)
        if group.average is not None:
            group.average.lerp_(group.values, one_minus_decay)
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
        squares = {f"{number}.squares": group.squares for number, group in enumerate(self.groups)}
        if known := {name: value for name, value in squares.items() if value is not None}:
            momenta |= {**known, "count": self._count}
        return momenta if self._scale is None else momenta | {SCALE: self._scale.state}

    def restart(self) -> None:
        """Forget earlier gradients."""
        for name, momentum in self.momenta().items():
            if name != SCALE:
                momentum.zero_()

    def load_momenta(self, state: Mapping[str, Tensor]) -> None:
        for name, momentum in self.momenta().items():
            momentum.copy_(state[name])
