"""Several corrections as one: each acts in places of its own."""

import inspect
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from torch import Tensor, nn

from debiaspl.debias.correction import Correction

PLUS = "+"
"""Between the names of the parts: ``alignment+logit-adjustment``."""


class Composite(Correction):
    """Corrections that act in different places: on the labels, on one of the losses, on the finished classifier.

    Each place belongs to one part; all parts learn from the same raw logits. Two that act in one place are refused, and
    so are two that take out the same bias in different places, which would be taken out twice.

    Args:
        parts: the corrections by name.
    """

    def __init__(self, parts: Mapping[str, Correction]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(dict(parts))
        for (one, first), (two, second) in combinations(parts.items(), 2):
            if shared := sorted(first.places() & second.places()):
                raise ValueError(
                    f"{one} and {two} both act on the {' and on the '.join(shared)}, expected parts that act in "
                    "different places. Use one of the two."
                )
            if first.takes_out and first.takes_out == second.takes_out:
                raise ValueError(
                    f"{one} and {two} both take out {first.takes_out}: together they would take it out twice. "
                    "Use one of the two."
                )
        idle = [name for name, part in parts.items() if not part.places()]
        if idle or len(parts) < 2:
            raise ValueError(
                f"correction is {PLUS.join(parts)}, expected two or more names of corrections that do something"
                + (f"; {idle[0]} does nothing. Use it without {idle[0]}." if idle else ".")
            )
        self.corrects_pseudo_labels_alone = all(part.corrects_pseudo_labels_alone for part in parts.values())
        self.looks = any(part.looks for part in parts.values())
        self.needs_pictures = next((part.needs_pictures for part in parts.values() if part.needs_pictures), "")
        self.needs_hard_labels = any(part.needs_hard_labels for part in parts.values())

    def places(self) -> frozenset[str]:
        return frozenset().union(*(part.places() for part in self._parts()))

    @property
    def prior(self) -> Tensor | None:
        """That of the part that keeps one: the one of the labels, where two do."""
        kept = [part for part in (self._for("labels"), *self._parts()) if hasattr(part, "prior")]
        prior = kept[0].prior if kept else None
        return prior if isinstance(prior, Tensor) else None

    def probabilities(self, weak_logits: Tensor) -> Tensor:
        return self._for("labels").probabilities(weak_logits)

    def look(self, network: nn.Module, like: Tensor, progress: Tensor) -> None:
        for part in self._parts():
            part.look(network, like, progress)

    def learn(self, weak_logits: Tensor) -> None:
        for part in self._parts():
            part.learn(weak_logits)

    def hold(self) -> None:
        for part in self._parts():
            part.hold()

    def release(self) -> None:
        for part in self._parts():
            part.release()

    def margin(self, strong_logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return self._for("unlabeled loss").margin(strong_logits, labels)

    def labeled_margin(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        return self._for("labeled loss").labeled_margin(logits, labels)

    def classifier(self, head: nn.Linear, mean_features: Tensor) -> nn.Linear:
        return self._for("classifier").classifier(head, mean_features)

    def _parts(self) -> list[Correction]:
        return [part for part in self.parts.values() if isinstance(part, Correction)]

    def _for(self, place: str) -> Correction:
        """Who acts there; where nobody does, any part does what no correction does."""
        return next((part for part in self._parts() if place in part.places()), self._parts()[0])


class CompositeBuilder:
    """Builds a ``Composite`` from the arguments of all its parts, by name.

    What a part needs of the data (an argument without a default) all parts share. A setting has its own name, or, where
    two parts have one of that name, that of the part before it: ``logit_adjustment_tau``.
    """

    def __init__(self, name: str, known: Mapping[str, Callable[..., Correction]]) -> None:
        names = name.split(PLUS)
        for number, part in enumerate(names):
            if part not in known:
                raise ValueError(f"there is no correction named {part!r}; there are {', '.join(sorted(known))}.")
            if part in names[:number]:
                raise ValueError(f"correction is {name}, which names {part} twice. Name each part once.")
        self.builders = {part: known[part] for part in names}
        self.needed: dict[str, list[str]] = {part: [] for part in names}
        """What each part is told of the data."""
        self.settings: dict[str, tuple[str, str]] = {}
        """Setting -> its part, and its name there."""
        named = {part: _named(made) for part, made in self.builders.items()}
        parameters: dict[str, inspect.Parameter] = {}
        for part, items in named.items():
            for item in items:
                if item.default is item.empty:
                    self.needed[part].append(item.name)
                    key = item.name
                else:
                    twice = sum(item.name == other.name for others in named.values() for other in others) > 1
                    key = f"{part.replace('-', '_')}_{item.name}" if twice else item.name
                    self.settings[key] = part, item.name
                parameters[key] = item.replace(name=key, kind=inspect.Parameter.KEYWORD_ONLY)
        ordered = sorted(parameters.values(), key=lambda item: item.default is not item.empty)
        self.__signature__ = inspect.Signature(ordered)

    def __call__(self, **arguments: Any) -> Composite:
        own: dict[str, dict[str, Any]] = {
            part: {name: arguments[name] for name in names} for part, names in self.needed.items()
        }
        for key, (part, name) in self.settings.items():
            if key in arguments:
                own[part][name] = arguments[key]
        return Composite({part: made(**own[part]) for part, made in self.builders.items()})


def _named(made: Callable[..., Correction]) -> list[inspect.Parameter]:
    """The arguments that can be given by name; the null correction has none."""
    unnamed = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [item for item in inspect.signature(made).parameters.values() if item.kind not in unnamed]
