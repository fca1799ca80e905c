"""How far each parameter of a network is from its end, in blocks: for learning rates that fall from layer to layer."""

from torch import nn


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
