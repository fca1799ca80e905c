"""Parts from a user's own file, named ``PATH.py:Name``. Loading a file executes it: this only happens if the user
names the file or builds a run, never when a run folder, which may be untrusted, is read."""

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from debiaspl.models.own import file_of

_loaded: dict[Path, ModuleType] = {}


def names_file(name: str) -> bool:
    """Whether the name of a part refers to something in a file."""
    return name.rpartition(":")[0].endswith(".py")


def is_loaded(name: str) -> bool:
    """Whether this process has already loaded the file; nothing is executed."""
    return file_of(name) in _loaded


def load_class(name: str, base: type) -> type:
    """The class ``PATH.py:ClassName``; its file is executed once per process."""
    path, contents, wanted = _contents(name)
    part: Any = contents.get(wanted)
    if not _extends(part, base):
        own = [key for key, value in contents.items() if getattr(value, "__module__", "") == contents["__name__"]]
        classes = ", ".join(key for key in own if _extends(contents[key], base)) or "none"
        extends = f"{base.__module__.rpartition('.')[0]}.{base.__name__}"
        raise ValueError(f"{path} has no class {wanted!r} that extends {extends}; it has {classes}.")
    if inspect.isabstract(part):
        missing = ", ".join(f"{method}()" for method in sorted(part.__abstractmethods__))
        raise ValueError(f"{name} does not define {missing}. For an example see debiaspl/algorithms/supervised.py.")
    loaded: type = part
    return loaded


def load_builder(name: str) -> Callable[..., Any]:
    """The function or class ``PATH.py:name`` that builds a network; its file is executed once per process."""
    path, contents, wanted = _contents(name)
    if not callable(contents.get(wanted)):
        own = [key for key, value in contents.items() if getattr(value, "__module__", "") == contents["__name__"]]
        raise ValueError(
            f"{path} has no function or class {wanted!r}; it has {', '.join(own) or 'none'}. Expected one that returns "
            "a network: def build(num_classes)."
        )
    builder: Callable[..., Any] = contents[wanted]
    return builder


def _contents(name: str) -> tuple[str, dict[str, Any], str]:
    """The path, what the file defines, and the name in it."""
    path, _, wanted = name.rpartition(":")
    file = file_of(name)
    if file not in _loaded:
        _loaded[file] = _execute(file, path)
    return path, vars(_loaded[file]), wanted


def went_through(error: BaseException) -> bool:
    """Whether an error was raised in a user's own file, here or in a worker process: then show the traceback."""
    text = "".join(traceback.format_exception(error))
    return any(f'File "{file}"' in text for file in _loaded)


def _extends(value: object, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


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
        raise ValueError(f"{path} could not be loaded: {_explained(error, file)}") from error
    return module


def _explained(error: BaseException, file: Path) -> str:
    """The error and the line of the user's file at which it happened."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    return f"{f'line {lines[-1]}: ' if lines else ''}{type(error).__name__}: {error}"
