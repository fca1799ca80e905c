"""Several corrections combined into one; each acts in different places."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from torch import Tensor, nn

from debiaspl.debias.correction import Correction

PLUS = "+"
"""Separates the names of the parts: ``alignment+logit-adjustment``."""
ABOUT_THE_DATA = ("num_classes", "class_counts")
"""Arguments that all parts share."""


class Composite(Correction):
    """Combines corrections that act in different places: labels, labeled or unlabeled loss, trained classifier.

    All parts learn from the same raw logits. Two may not act in the same place, or remove the same bias.

    Args:
        parts: the corrections by name.
    """

    def __init__(self, parts: Mapping[str, Correction]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(dict(parts))
        for (one, first), (two, second) in combinations(parts.items(), 2):
            if shared := sorted(first.places() & second.places()):
                raise ValueError(f"{one} and {two} both act on the {' and on the '.join(shared)}. Use one of the two.")
            if first.takes_out and first.takes_out == second.takes_out:
                raise ValueError(f"{one} and {two} both remove {first.takes_out}, so it would go twice. Use one.")
        idle = [name for name, part in parts.items() if not part.places()]
        if idle:
            raise ValueError(f"correction is {PLUS.join(parts)}, but {idle[0]} does nothing. Leave it out.")
        self.needs_pictures = next((part.needs_pictures for part in parts.values() if part.needs_pictures), "")
        self.held_out = any(part.held_out for part in parts.values())

    def each(self) -> tuple[Correction, ...]:
        return tuple(part for part in self.parts.values() if isinstance(part, Correction))

    def places(self) -> frozenset[str]:
        return frozenset().union(*(part.places() for part in self.each()))

    @property
    def prior(self) -> Tensor | None:
        """The prior of the part that has one; if two do, that of the part that corrects labels."""
        priors = (getattr(part, "prior", None) for part in (self._for("labels"), *self.each()))
        return next((prior for prior in priors if prior is not None), None)

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        return self._for("labels").probabilities(weak_logits)

    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        for part in self.each():
            part.look(network, like, progress)

    def expect(self, shares: Tensor) -> None:
        for part in self.each():
            part.expect(shares)

    def learn(self, weak_logits: Tensor) -> None:
        for part in self.each():
            part.learn(weak_logits)

    def hold(self) -> None:
        for part in self.each():
            part.hold()

    def release(self) -> None:
        for part in self.each():
            part.release()

    def margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return self._for("unlabeled loss").margin(logits, labels)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return self._for("labeled loss").labeled_margin(logits, labels)

    def class_weights(self) -> Tensor | None:
        return next((weights for part in self.each() if (weights := part.class_weights()) is not None), None)

    def choose(self, head: nn.Linear, features: Tensor, labels: Tensor) -> None:
        for part in self.each():
            if part.held_out:
                part.choose(head, features, labels)

    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        return self._for("classifier").classifier(head, mean_features)

    def _for(self, place: str) -> Correction:
        """The part that acts there; if none does, any: its method is the one of no correction."""
        return next((part for part in self.each() if place in part.places()), self.each()[0])


def named_arguments(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Those that can be passed by name."""
    every = inspect.signature(builder).parameters.values()
    return {item.name: item for item in every if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)}


class CompositeBuilder:
    """Builds a ``Composite`` from the named arguments of all its parts. If two have a setting of the same name, it is
    prefixed with the name of the part: ``logit_adjustment_tau``."""

    def __init__(self, name: str, known: Mapping[str, Callable[..., Correction]]) -> None:
        names = name.split(PLUS)
        if len(set(names)) < len(names):
            raise ValueError(f"correction is {name}, which names a part twice. Name each part once.")
        self.builders = {part: known[part] for part in names}
        self.arguments: dict[str, inspect.Parameter] = {}
        self.targets: dict[str, list[tuple[str, str]]] = {}
        """Name of an argument -> the parts that take it, each with its own name for it."""
        items = [(part, item) for part, builder in self.builders.items() for item in named_arguments(builder).values()]
        counts = Counter(item.name for _, item in items)
        for part, item in items:
            is_setting = item.name not in ABOUT_THE_DATA
            prefix = f"{part.replace('-', '_')}_" if is_setting and counts[item.name] > 1 else ""
            self.arguments[prefix + item.name] = item
            self.targets.setdefault(prefix + item.name, []).append((part, item.name))

    def __call__(self, **arguments: Any) -> Composite:
        by_part: dict[str, dict[str, Any]] = {part: {} for part in self.builders}
        for key, value in arguments.items():
            for part, name in self.targets[key]:
                by_part[part][name] = value
        return Composite({part: builder(**by_part[part]) for part, builder in self.builders.items()})
