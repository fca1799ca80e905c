"""Updates the weights from a loss: SGD with Nesterov momentum or AdamW, and the average of the weights, over flat
tensors.

All parameters of a kind are consecutive views of one tensor. So a step is a few operations, whatever the depth of the
network, and one kernel on a GPU. In bfloat16 the network computes with a copy of its weights, made in the same pass;
the float32 weights are here, and they are averaged, saved and evaluated.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from debiaspl.debias import ranks
from debiaspl.kernels import triton_works
from debiaspl.models import Average, Network, further_heads
from debiaspl.training.loss_scale import LossScale
from debiaspl.training.recipe import FIXMATCH, HALF_WAVE

ALIGNED = 64
"""In elements: every parameter starts on a boundary that fast kernels need."""
BETAS, EPS = (0.9, 0.999), 1e-8
"""AdamW's."""
SCALE = "scale"
"""Name of the loss scale among the momenta."""


class ParameterGroup:
    """Parameters that are updated in the same way: with this weight decay, and the learning rate times ``scale``.

    ``parameters`` are what the network computes with, and for which gradients are computed; ``values`` are their
    float32 values, flat, and ``exact`` the same with the parameters' shapes. ``momentum`` is SGD's velocity or AdamW's
    mean of the gradients, ``squares`` AdamW's mean of their squares. ``average`` has the flat averages of the values;
    of an algorithm's parameters, only those of further classifiers have one. ``work`` is the tensor of which the
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
        self.average = flatten(averages, torch.get_default_dtype()) if averages else None


def flatten(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """One flat tensor with the values of all tensors, which become views of it."""
    if not tensors:
        return torch.zeros(0)
    flat = torch.zeros(_length(tensors), dtype=dtype, device=tensors[0].device)
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

    A block is one of several modules of the same type in a list, such as a layer of a transformer or of a stage; a list
    in a block of a list is not looked at, unless that block has no parameters beside it. What lies between blocks
    counts to the one before it, what comes before the first one is below all.
    """
    blocks = list(_blocks(network, ""))
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
        is_block = isinstance(module, nn.ModuleList | nn.Sequential) and _is_layer(child)
        alike = len({type(other) for other in module.children()}) == 1
        names += [whole] if is_block and alike and not inner else inner
    return names


def _is_layer(module: nn.Module) -> bool:
    """Whether it has parameters in modules of its own, unlike a linear layer or an activation."""
    return any(True for _ in module.children()) and any(True for _ in module.parameters())


def adamw_step(
    values: Tensor,
    gradient: Tensor,
    mean: Tensor,
    squares: Tensor,
    count: Tensor,
    rate: Tensor | float,
    weight_decay: float,
) -> None:
    """One step, in place; ``count`` is its number, from 1."""
    first, second = BETAS
    mean.lerp_(gradient, 1 - first)
    squares.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    length = (squares / (1 - second**count)).sqrt_().add_(EPS)
    direction = mean / (1 - first**count) / length + weight_decay * values
    values.sub_((rate * direction).to(values.dtype))


def shorten(gradients: Sequence[Tensor], longest: float) -> None:
    """Shorten gradients, in place, so that together they are at most this long."""
    length = torch.stack([gradient.float().square().sum() for gradient in gradients]).sum().sqrt()
    share = (longest / (length + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(share.to(gradient.dtype))


def rate(number: int, length: int, arc: float = FIXMATCH, warm_up: float = 0.0) -> float:
    """The factor at step ``number`` of ``length``: linear from 0 to 1 over the first share ``warm_up`` of the steps,
    then cos(arc pi k / K) over the other K steps. FixMatch's arc of 7/16 ends at 0.195, an arc of 1/2 at 0. An arc of 1
    is the half wave of the ImageNet scripts, (1 + cos(pi k / K)) / 2, which ends at 0 as well."""
    rising = round(warm_up * length)
    if number < rising:
        return (number + 1) / rising  # the first step is above 0, since a rate of 0 would waste it
    wave = math.cos(arc * math.pi * (number - rising) / (length - rising))
    return (1 + wave) / 2 if arc == HALF_WAVE else wave


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
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.student, self.average, self.momentum = student, average, momentum
        self._synchronised, self._adamw, self._clip = synchronised, adamw, clip
        device = next(student.parameters()).device
        half, self._count = dtype == torch.bfloat16, torch.zeros((), device=device)
        self._scale = LossScale(device) if dtype == torch.float16 else None
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
                self.groups.append(ParameterGroup(alike, means, decay, half and decays, adamw, scale))
            own = [p for p in algorithm.parameters() if (p.ndim > 1) == decays]
            if plain := [p for p in own if id(p) not in further]:
                self.groups.append(ParameterGroup(plain, [], decay, half and decays, adamw))
            if averaged := [p for p in own if id(p) in further]:
                averages = [further[id(p)] for p in averaged]
                self.groups.append(ParameterGroup(averaged, averages, decay, half and decays, adamw))
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
        if self._clip:
            shorten(gradients, self._clip)
        for group in self.groups:
            self._step_group(group, rate)
        self._step_statistics()

    def _step_group(self, group: ParameterGroup, rate: Tensor | float) -> None:
        one_minus_decay = 1 - self.average.decay
        if group.scale != 1:
            rate = rate * group.scale
        if isinstance(rate, Tensor) and group.squares is None and group.values.is_cuda and triton_works():
            from debiaspl.kernels.update_triton import update

            tensors = group.values, group.gradients, group.momentum, group.average, group.work
            update(*tensors, rate, group.weight_decay, self.momentum, one_minus_decay)
            return
        gradient = group.gradients.to(group.values.dtype)
        if group.squares is not None:
            adamw_step(group.values, gradient, group.momentum, group.squares, self._count, rate, group.weight_decay)
        else:
            gradient = gradient.add(group.values, alpha=group.weight_decay)
            group.momentum.mul_(self.momentum).add_(gradient)
            direction = gradient.add_(group.momentum, alpha=self.momentum)
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
        if self._adamw:
            squares = ((number, group.squares) for number, group in enumerate(self.groups))
            momenta |= {f"{number}.squares": value for number, value in squares if value is not None}
            momenta["count"] = self._count
        return momenta if self._scale is None else momenta | {SCALE: self._scale.state}

    def restart(self) -> None:
        """Forget earlier gradients."""
        for name, momentum in self.momenta().items():
            if name != SCALE:
                momentum.zero_()

    def load_momenta(self, state: Mapping[str, Tensor]) -> None:
        for name, momentum in self.momenta().items():
            momentum.copy_(state[name])
