"""The parts that a recipe names, and how they are built from their settings and the data of the run."""

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from torch import nn

from debiaspl._checks import did_you_mean
from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS, Algorithm
from debiaspl.augment import CropColor, Hide, RandAugment
from debiaspl.data import PROTOCOLS
from debiaspl.debias import CORRECTIONS, PLUS, CompositeBuilder, Correction
from debiaspl.encoders import NETWORKS
from debiaspl.models import LinearNetwork
from debiaspl.models.own import FOR_NETWORKS, OwnBuilder, allow, file_of, is_own, own_builder, own_name

STRONG: dict[str, Callable[..., Any]] = {
    "fixmatch": partial(RandAugment, **asdict(RandAugment.fixmatch())),
    "benchmark": partial(RandAugment, **asdict(RandAugment.benchmark())),
    "cropcolor": CropColor,
    "hide": Hide,
}

LINEAR = "linear"
"""The network for vectors, not for images."""

PARTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "protocol": PROTOCOLS,
    "network": {**NETWORKS, LINEAR: LinearNetwork},
    "algorithm": {**ALGORITHMS, **HINTED, **STARTS},
    "correction": CORRECTIONS,
    "strong": STRONG,
}

OwnCode = str | nn.Module | Callable[..., nn.Module]
"""A user's own network: a file and its function, a module, or a function that returns one."""
Builder = TypeVar("Builder", bound=Callable[..., Any])

OWN: dict[str, type] = {"algorithm": Algorithm, "correction": Correction}
"""Parts that can come from a user's own file, as PATH.py:ClassName, and the class that they must extend."""

_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", tuple: "a list"}
"""Types of defaults that say which values a setting takes."""

# Arguments that the run passes to parts that declare them, which cannot be set.
SUPPLIED = (
    *("num_classes", "num_features", "num_unlabeled", "class_counts", "channels", "correction"),
    *("classes", "unlabeled_ids", "hints", "image_size"),
)


def find(kind: str, name: str) -> Any:
    """The builder of the part of this kind and name. If it names a file, that file is executed, unless it is loaded."""
    if kind in OWN and names_file(name):
        if PLUS in name.rpartition(":")[2] or (PLUS in name and not file_of(name).is_file()):
            raise ValueError(f"{kind} is {name}, but a class in a file cannot be combined with others. Name it alone.")
        return _checked(kind, name, load(name, OWN[kind]))
    if kind == "network" and is_own(name):
        return _own_network(name)
    names = name.split(PLUS) if kind == "correction" else [name]
    if unknown := [one for one in names if one not in PARTS[kind]]:
        raise ValueError(f"there is no {kind} named {unknown[0]!r}.{_hint(kind, unknown[0])}")
    return PARTS[kind][name] if len(names) == 1 else CompositeBuilder(name, CORRECTIONS)


def _hint(kind: str, name: str) -> str:
    """What may have been meant. It fits every place where a name is given: --set, --methods, or an argument."""
    if name.endswith(".py") and (kind in OWN or kind == "network"):
        return f" For your own file, name its content too: {name}:{'ClassName' if kind in OWN else 'build'}."
    hint = did_you_mean(name, PARTS[kind])
    if kind not in OWN:
        return f"{hint} There are {listed(PARTS[kind])}."
    there = f" For a list: debiaspl list {kind}s." if hint else f" There are {listed(PARTS[kind])}."
    return f"{hint}{there} Your own is named by its file and class: mine.py:ClassName."


def is_importable(kind: str, name: str) -> bool:
    """Whether ``find`` would execute nothing: the part belongs to debiaspl, or its file is already loaded."""
    if kind == "network":
        return not is_own(name) or own_builder(name) is not None
    return kind not in OWN or not names_file(name) or file_of(name) in _loaded


def settings_of(kind: str, name: str) -> dict[str, Any]:
    """The settings of a part, with their defaults: the arguments of its builder, except those that the run passes."""
    return {key: item.default for key, item in _arguments(find(kind, name)).items() if key not in SUPPLIED}


def check_settings(kind: str, name: str, settings: Mapping[str, Any]) -> None:
    """Raise for settings that the part does not have, or values of another type than the default."""
    defaults = settings_of(kind, name)
    if unknown := sorted(set(settings) - set(defaults)):
        raise ValueError(f"{kind} {name!r} has no setting {', '.join(unknown)}. It has {listed(defaults)}.")
    for key, value in settings.items():
        check_type(key, value, defaults[key])


def check_type(name: str, value: Any, default: Any) -> None:
    """Raise unless a setting has the type of its default."""
    kind = type(default)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if kind in _EXPECTED and (not fits or (isinstance(value, bool) and kind is not bool)):
        raise ValueError(f"{name} is {value!r}, expected {_EXPECTED[kind]}.")
    if kind is tuple and default:
        for item in value:
            check_type(name, item, default[0])


def build(kind: str, name: str, settings: Mapping[str, Any], **known: Any) -> Any:
    """A part with its settings; of ``known`` it only gets the arguments that its constructor declares."""
    check_settings(kind, name, settings)
    builder = find(kind, name)
    named = _arguments(builder)
    return builder(**{key: value for key, value in known.items() if key in named}, **settings)


@lru_cache(maxsize=256)
def _arguments(builder: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Arguments by name; if a constructor passes ``**others`` to its parent, also those of the parent."""
    if isinstance(builder, CompositeBuilder | OwnBuilder):
        return builder.arguments
    named: dict[str, inspect.Parameter] = {}
    for source in inspect.getmro(builder) if isinstance(builder, type) else (builder,):
        parameters = inspect.signature(source).parameters.values()
        named = {one.name: one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)} | named
        if all(item.kind != item.VAR_KEYWORD for item in parameters):
            break
    return named


def allowed_network(network: OwnCode) -> OwnBuilder:
    """Let this process build a network that a user has named or passed."""
    if not isinstance(network, str):
        if not callable(network):
            raise TypeError(f"network is {network!r}, expected a torch.nn.Module, what makes one, or mine.py:build.")
        return _checked("network", own := own_name(network), allow(own, network))
    if not is_own(network):
        raise ValueError(f"network is {network!r}, expected your own: PATH.py:build.{_hint('network', network)}")
    return _own_network(network)


def _own_network(name: str) -> OwnBuilder:
    """What builds a user's own network; its file is executed, unless it is loaded."""
    if (known := own_builder(name)) is not None:
        return known
    if not names_file(name):
        raise ValueError(f"{name} is a network that was passed in Python. Pass it again: train(..., network=...).")
    return _checked("network", name, allow(name, load(name, None)))


def _checked(kind: str, name: str, builder: Builder) -> Builder:
    """A user's own part, after checking that a run can build it."""
    named = _arguments(builder)
    if kind == "algorithm" and "correction" not in named:
        raise ValueError(f"{name} has no argument correction. Write: def __init__(self, correction=None, **others).")
    passed = FOR_NETWORKS if kind == "network" else SUPPLIED
    if without := [key for key, item in named.items() if key not in passed and item.default is item.empty]:
        raise ValueError(f"{name} has no default for {', '.join(without)}. A run passes only {listed(passed)}.")
    return builder


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"


_loaded: dict[Path, ModuleType] = {}


def names_file(name: str) -> bool:
    return name.rpartition(":")[0].endswith(".py")


def load(name: str, base: type | None) -> Any:
    """What ``PATH.py:Name`` is: a class that extends ``base``, or, without one, what builds a network. Its file is
    executed once per process."""
    path, _, wanted = name.rpartition(":")
    file = file_of(name)
    if file not in _loaded:
        _loaded[file] = _execute(file, path)
    contents = vars(_loaded[file])
    part: Any = contents.get(wanted)

    def fits(value: object) -> bool:
        return callable(value) if base is None else isinstance(value, type) and issubclass(value, base)

    if not fits(part):
        wants = f"extends {base.__module__.rpartition('.')[0]}.{base.__name__}" if base else "is a function or class"
        fitting = {key: value for key, value in contents.items() if fits(value)}
        own = listed(key for key, value in fitting.items() if getattr(value, "__module__", "") == contents["__name__"])
        raise ValueError(f"{path} has no {wanted!r} that {wants}; it has {own}.")
    if inspect.isabstract(part):
        missing = ", ".join(f"{method}()" for method in sorted(part.__abstractmethods__))
        raise ValueError(f"{name} does not define {missing}, as debiaspl/algorithms/fixmatch.py does.")
    return part


def went_through(error: BaseException) -> bool:
    """Whether an error was raised in a user's own file, here or in a worker process: then show the traceback."""
    return any(f'File "{file}"' in text for text in traceback.format_exception(error) for file in _loaded)


def _execute(file: Path, path: str) -> ModuleType:
    if not file.is_file():
        raise ValueError(f"there is no file {path} in {Path.cwd()}. Expected PATH.py:Name, relative to it.")
    # A unique module name, so that a file called torch.py or random.py replaces nothing.
    name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up their module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        where = f"line {lines[-1]}: " if lines else ""  # a SyntaxError names its line itself
        raise ValueError(f"{path} could not be loaded: {where}{type(error).__name__}: {error}") from error
    return module
