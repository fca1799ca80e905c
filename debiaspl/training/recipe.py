"""Recipes: everything that determines what a run computes, as frozen dataclasses."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

from debiaspl._checks import did_you_mean
from debiaspl.debias.correction import within
from debiaspl.training.parts import PARTS, build, check_settings, check_type, find, is_importable, settings_of

CHOICES = {
    "first_classifier": ("random", "means", "graph", "probe", "fit", "text", "coop"),
    "teacher": ("auto", "student", "average"),
    "precision": ("auto", "bfloat16", "float16", "float32"),
    "optimizer": ("sgd", "adamw"),
    "optimise": ("", "photos", "classes"),
}
DESCRIPTION = ("name", "about", "cost", "paper")
"""Fields that describe a recipe and do not change what it computes."""
FIXMATCH, HALF_WAVE = 7 / 16, 1.0
"""Arcs of the learning rate."""
LIST = " For a list: debiaspl list settings RECIPE."
RANGES = {
    "seed": f"[0, {2**32 - 2}]",
    "image_size": f"[0, {2**14}]",
    "labeled_batch": f"[0, {2**20}]",
    "health_every": f"[-1, {2**40}]",
    "evaluate_every": f"[0, {2**40}]",
    **dict.fromkeys(("unlabeled_batch", "accumulate"), f"[1, {2**20}]"),
    "fit_on": f"[2, {2**40}]",
    **dict.fromkeys(("steps", "log_every", "checkpoint_every"), f"[1, {2**40}]"),
    **dict.fromkeys(("learning_rate", "weight_decay", "clip"), "[0, inf)"),
    "layer_decay": "(0, 1]",
    **dict.fromkeys(("sgd_momentum", "average_decay", "validation", "warm_up"), "[0, 1)"),
}


@dataclass(frozen=True)
class Choice:
    """A part by name, with the settings that differ from its defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"a part is named {self.name!r}, expected a text.")
        if not isinstance(self.settings, Mapping):
            raise ValueError(f"the settings of {self.name} are {self.settings!r}, expected names with values.")
        # JSON has no tuples: a choice that was written and read again must be equal.
        settings = {key: tuple(value) if isinstance(value, list) else value for key, value in self.settings.items()}
        object.__setattr__(self, "settings", settings)

    def build(self, kind: str, **known: Any) -> Any:
        """The part itself; ``known`` are arguments from the run."""
        return build(kind, self.name, self.settings, **known)


@dataclass(frozen=True)
class Recipe:
    """One experiment. Two runs of equal recipes on one machine give the same bits."""

    name: str
    """Its name for ``debiaspl train --recipe``."""
    about: str = ""
    """One line of description."""
    cost: str = ""
    """Duration of a run, and where it was measured."""
    paper: float | None = None
    """The paper's result, top-1 %, if it has one."""

    data: str = "digits"
    """A known set by name, or the path of a folder of images, of tar shards or of a packed set."""
    image_size: int = 0
    """Side of the images; 0: that of the set, or of the first image of a folder."""
    stream: bool = False
    """Read the images of a folder while training, with random resized crops, instead of once before."""
    validation: float = 0.0
    """Share of the labels that is held out from training for validation."""
    protocol: Choice = Choice("few-labels")
    """Which images are labeled."""
    network: Choice = Choice("wrn")
    """The network."""
    start: str = ""
    """Initial weights of the network: the folder of a run with the same network, such as a self-supervised one, or, for
    ``resnet``, a checkpoint of MoCo v2, of EMAN or of any ResNet of its depth. Empty: random weights."""
    first_classifier: str = "random"
    """Initial classifier, for features that are already good, from a start or a pretrained encoder: ``random`` weights;
    ``means``, the nearest mean of the labeled images; ``graph``, the same after label propagation over the nearest
    neighbours of the features; ``probe``, a logistic regression of the labels; ``fit``, to fine-tune an encoder, what
    the method fits to its frozen features, calibrated; ``text``, from the class names, with the text part of a CLIP or
    SigLIP; or ``coop``, the same after words that are learned from the labels (CLIP)."""
    fit_on: int = 200_000
    """Most images in the graph, from which labels spread: all with a label and, with a frozen encoder, random others;
    training sees every image."""
    optimise: str = ""
    """With a frozen encoder and the Debiaser: ``photos`` is right for most images, ``classes`` counts every class the
    same. Empty: the paper, for which all shares are equal."""
    algorithm: Choice = Choice("fixmatch")
    """The algorithm, which computes the losses of a batch."""
    correction: Choice = Choice("debiaser")
    """Debiasing of the predictions before they become labels; ``none`` turns DebiasPL into FixMatch."""
    strong: Choice = Choice("fixmatch")
    """The strong views."""
    flip: bool = True
    """Whether a mirrored image shows the same thing; not so for letters and digits."""

    seed: int = 0
    """Seed of the fold (which images are labeled), the initial weights, the order and the views."""
    steps: int = 2**19
    """Training steps (K)."""
    labeled_batch: int = 64
    """Labeled images per step (B); 0 for a self-supervised algorithm."""
    unlabeled_batch: int = 448
    """Unlabeled images per step (mu B)."""
    learning_rate: float = 0.03
    """Highest learning rate; step k has learning_rate * cos(arc pi k / K)."""
    arc: float = FIXMATCH
    """How far the learning rate falls: 7/16, as in FixMatch, ends at 0.195 of it, 1/2 at 0, and 1 is the half wave
    (1 + cos(pi k / K)) / 2, which ends at 0 too."""
    warm_up: float = 0.0
    """Share of the steps over which the learning rate first rises linearly from 0."""
    optimizer: str = "sgd"
    """``sgd`` with Nesterov momentum, or ``adamw``, for transformers."""
    sgd_momentum: float = 0.9
    """Nesterov momentum of the optimiser."""
    weight_decay: float = 5e-4
    """Weight decay, not on norms and biases."""
    layer_decay: float = 1.0
    """Factor of the learning rate from each block of a network to the one below it; 1: all the same."""
    clip: float = 0.0
    """Longest gradient; longer ones are shortened. 0: any length."""
    average_decay: float = 0.999
    """Decay of the moving average of the weights, which is evaluated."""
    average_statistics: bool = False
    """EMAN: average the batch norm statistics too."""
    teacher: str = "auto"
    """What labels the weak views: the ``student`` in training mode, the ``average`` in eval mode, or, with ``auto``,
    the choice of the algorithm's paper."""

    precision: str = "auto"
    """What a step computes in, with weights of float32: ``bfloat16``, ``float16``, with a scaled loss, or ``float32``;
    ``auto``: bfloat16 on a GPU of compute capability 8 or more (A100), float16 on an older one, float32 elsewhere."""
    synchronise_norm: bool = False
    """With several ranks: compute batch norm over the whole batch, instead of each rank's part."""
    accumulate: int = 1
    """Pieces in which a rank's part of the batch is computed, one after the other, if the whole does not fit. A
    correction learns once, from all of them; what else depends on a batch, such as batch norm, uses a piece. A run may
    be resumed with another number."""

    log_every: int = 100
    """Steps between lines of log.jsonl."""
    evaluate_every: int = 0
    """Steps between evaluations on the test set during training, only for information; 0: only at the end."""
    health_every: int = 0
    """Steps between measurements of the features, without labels, that show whether a run works; 0: twenty times for
    self-supervised algorithms, never for others; -1: never."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            check_type(item.name, value, "" if item.default is MISSING else item.default)
            if item.name in PARTS and not isinstance(value, Choice):
                raise ValueError(f"{item.name} is {value!r}, expected Choice(name, settings).")
        check_type("paper", 0.0 if self.paper is None else self.paper, 0.0)
        for name, interval in RANGES.items():
            within(name, getattr(self, name), interval)
        if not 0 <= self.arc <= 0.5 and self.arc != HALF_WAVE:
            raise ValueError(f"arc is {self.arc}, expected a number in [0, 1/2], or 1 for the half wave.")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected {' or '.join(filter(None, choices))}.")
        for part in PARTS:
            choice = getattr(self, part)
            # A recipe may come from an untrusted config.json: reading it must not execute a file that it names.
            if is_importable(part, choice.name):
                check_settings(part, choice.name, choice.settings)
        name = self.algorithm.name
        if self.teacher == "student" and is_importable("algorithm", name) and find("algorithm", name).needs_average:
            raise ValueError(f"{name} needs an averaged teacher, but teacher is student. Use teacher=average or auto.")

    def to_json(self) -> dict[str, Any]:
        """The recipe as plain values; ``Recipe.from_json`` of them is an equal recipe."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        """A result of ``to_json``; it may come from a file, so everything is checked. Raises ValueError."""
        if not isinstance(values, Mapping) or "name" not in values:
            raise ValueError(f"a recipe is {str(values)[:50]!r}, expected names with values, and a name.")
        if unknown := sorted(set(values) - {item.name for item in fields(cls)}):
            raise ValueError(f"a recipe has no {', '.join(unknown)}: it was written by another version of debiaspl.")
        plain = dict(values)
        for part in PARTS.keys() & plain.keys():
            choice = plain[part]
            if not isinstance(choice, Mapping) or choice.keys() != {"name", "settings"}:
                raise ValueError(f"{part} is {choice!r}, expected a name and settings.")
            plain[part] = Choice(**choice)
        return cls(**plain)

    def changed(self, load_files: bool = False, **values: Any) -> "Recipe":
        """This recipe with other values: of a field (``steps=20``), a part by name or as a ``Choice``
        (``algorithm="supervised"``), or a setting of a part (``strength=0.0``; explicit:
        ``**{"correction.strength": 0.0}``). Parts are changed first.

        A part may be a class in a file, ``algorithm="mine.py:Mine"``. That file is executed, so ``load_files`` must
        allow it: set it for what a user has typed, never for what was read from a folder.
        """
        return self.converted(values, lambda key, value, default: value, load_files)

    def converted(
        self, values: Mapping[str, Any], convert: Callable[[str, Any, Any], Any], load_files: bool = False
    ) -> "Recipe":
        """``changed``, with ``convert(key, value, default)`` of each value that is not a part."""
        parts: dict[str, Choice] = {part: getattr(self, part) for part in PARTS}
        for part in [key for key in values if key in PARTS]:
            value = values[part]
            name = value.name if isinstance(value, Choice) else value
            if isinstance(name, str) and not load_files and not is_importable(part, name):
                raise ValueError(f"{part}={name} would execute a file. To allow it: load_files=True.")
            parts[part] = value if isinstance(value, Choice) else Choice(name, self._kept(part, name))
        plain: dict[str, Any] = {}
        for key in [key for key in values if key not in PARTS]:
            owner, setting = _owner(parts, key), key.rpartition(".")[2]
            if owner is None:
                raise ValueError(self._unknown(parts, key))
            if owner == "recipe":
                plain[key] = convert(key, values[key], getattr(self, key))
            else:
                choice = parts[owner]
                new = convert(key, values[key], settings_of(owner, choice.name)[setting])
                parts[owner] = Choice(choice.name, {**choice.settings, setting: new})
        plain |= parts
        return replace(self, **plain)

    def diff(self, other: "Recipe") -> dict[str, Any]:
        """What ``other`` computes differently: the values of ``other`` by the names that ``changed`` takes, so that
        ``self.changed(**self.diff(other))`` computes the same as ``other``. A default counts as if it were given."""
        values: dict[str, Any] = {}
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if item.name in DESCRIPTION or mine == theirs:
                continue
            if item.name not in PARTS:
                values[item.name] = theirs
                continue
            if mine.name != theirs.name:
                values[item.name] = theirs.name
                kept = self._kept(item.name, theirs.name) if is_importable(item.name, theirs.name) else {}
                mine = Choice(theirs.name, kept)
            before, after = with_defaults(item.name, mine), with_defaults(item.name, theirs)
            for key in dict.fromkeys((*after, *before)):
                if before.get(key) != after.get(key):
                    values[f"{item.name}.{key}"] = after.get(key)
        return values

    def owner(self, key: str) -> str | None:
        """What ``changed`` would change: ``recipe``, a part, or None. Executes no file."""
        return _owner({part: getattr(self, part) for part in PARTS}, key)

    def _kept(self, part: str, name: str) -> dict[str, Any]:
        """Settings that are kept when another part replaces this one: those that it has too, if they are not the old
        part's defaults."""
        old: Choice = getattr(self, part)
        names = settings_of(part, name)
        defaults = settings_of(part, old.name) if name != old.name and is_importable(part, old.name) else {}
        changed = {key: value for key, value in old.settings.items() if key not in defaults or value != defaults[key]}
        return {key: value for key, value in changed.items() if key in names}

    def _unknown(self, parts: Mapping[str, Choice], key: str) -> str:
        names, hint = [item.name for item in fields(self)], ""
        problem = f"recipe {self.name!r} has no setting {key!r}"
        for part, choice in parts.items():
            if is_importable(part, choice.name):
                names += settings_of(part, choice.name)
            else:
                hint = f" For the settings of {choice.name}, name it too: {part}={choice.name}."
        setting = key.rpartition(".")[2]
        apart = (f"{one}_{setting}" for one in parts["correction"].name.replace("-", "_").split("+"))
        if either := " or ".join(name for name in apart if name in names):
            return f"{problem}. Write {either}.{LIST}"
        others = {part: [name for name in PARTS[part] if setting in settings_of(part, name)] for part in PARTS}
        of = [f"{part}={', '.join([*own[:3], *['...'] * (len(own) > 3)])}" for part, own in others.items() if own]
        if of and setting not in names:
            here = " and ".join(f"{part}={parts[part].name}" for part, own in others.items() if own)
            return f"{problem}: it is a setting of {' and of '.join(of)}, but here {here}.{hint}{LIST}"
        return f"{problem}.{did_you_mean(setting, names) or hint}{LIST}"


def _owner(parts: Mapping[str, Choice], key: str) -> str | None:
    """``recipe``, or the part with this setting, written ``strength`` or ``correction.strength``."""
    if key in Recipe.__dataclass_fields__:
        return "recipe"
    part_named, _, setting = key.rpartition(".")
    for part, choice in parts.items():
        if part_named in ("", part) and is_importable(part, choice.name) and setting in settings_of(part, choice.name):
            return part
    return None


def with_defaults(part: str, choice: Choice) -> dict[str, Any]:
    """The settings of a part, with its defaults unless that would execute a file."""
    defaults = settings_of(part, choice.name) if is_importable(part, choice.name) else {}
    return {**defaults, **choice.settings}
