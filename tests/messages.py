"""Every message of the package, from its source: ``python -m tests.messages`` prints them with file and line.

Errors are found where an exception is made, whether it is raised there or returned; the rest where text is printed.
An expression within a message is shown in braces, as it stands in the source.
"""

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "debiaspl"

PRINTS = {"say", "print", "echo", "warn", "plain", "_warn", "tell"}
MOST = 16
"""Versions of one message with alternatives in it."""

WITHOUT_TEXT = {"Exit", "StopIteration", "SystemExit", "KeyError", "AssertionError", "BrokenPipeError"}
"""Exceptions whose argument is not a message to a user."""


@dataclass(frozen=True)
class Message:
    file: str
    line: int
    kind: str
    """Name of the exception, or ``print``, or ``help``."""
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.text}"


def messages(files: Iterable[Path] | None = None) -> list[Message]:
    """Errors, printed text and help texts in these files, by default of the whole package."""
    files = sorted(PACKAGE.rglob("*.py")) if files is None else files
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    exceptions = _exceptions(trees.values())
    found = []
    for path, tree in trees.items():
        name = str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else path.name
        found += [Message(name, *rest) for rest in _in_scope(tree, exceptions, {})]
    return list(dict.fromkeys(found))


def _exceptions(trees: Iterable[ast.Module]) -> set[str]:
    """Names of exception classes: Python's own, and those that the files derive from them."""
    names = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while True:
        more = {one.name for one in classes if any(_last(base) in names for base in one.bases)} - names
        if not more:
            return names - WITHOUT_TEXT
        names |= more


def _last(node: ast.expr) -> str:
    """The name a class or function is called by, without its module."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _in_scope(scope: ast.AST, exceptions: set[str], outer: dict[str, list[ast.expr]]) -> Iterator[tuple[int, str, str]]:
    """``line, kind, text`` of what is said in a module or function, and in the functions within it."""
    inner, nodes = [], []
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner.append(node)
            waiting += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            waiting += [argument.annotation for argument in node.args.args if argument.annotation is not None]
        else:
            nodes.append(node)
            waiting += ast.iter_child_nodes(node)
    known = dict(outer)
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = [*known.get(node.targets[0].id, []), node.value]
    for node in nodes:
        for call, kind in _said(node, exceptions):
            for text in _texts(call, known):
                if " " in text:
                    yield call.lineno, kind, text
    for function in inner:
        yield from _in_scope(function, exceptions, known)


def _said(node: ast.AST, exceptions: set[str]) -> Iterator[tuple[ast.expr, str]]:
    """Expressions that are shown to a user, each with its kind."""
    if isinstance(node, ast.Call):
        name = _last(node.func)
        if name in exceptions:
            yield from ((argument, name) for argument in node.args)
        elif name in PRINTS:
            yield from ((argument, "print") for argument in node.args)
        yield from ((keyword.value, "help") for keyword in node.keywords if keyword.arg == "help")
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = _last(node.exc.func)
        if name not in exceptions | WITHOUT_TEXT:  # a function that makes the exception
            yield from ((argument, name) for argument in node.exc.args)


def _texts(node: ast.expr, known: dict[str, list[ast.expr]], depth: int = 0) -> list[str]:
    """The texts that an expression may have; what only a run can tell is shown in braces."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return _joined([_texts(value, known, depth) for value in values])
        case ast.FormattedValue(value=value):
            return _texts(value, known, depth)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([_texts(left, known, depth), _texts(right, known, depth)])
        case ast.IfExp(body=body, orelse=orelse):
            return [*_texts(body, known, depth), *_texts(orelse, known, depth)]
        case ast.Name(id=name) if name in known and depth < 3:
            texts = [text for value in known[name] for text in _texts(value, known, depth + 1)]
            return texts if any(" " in text for text in texts) else [f"{{{name}}}"]
        case _:
            return [f"{{{ast.unparse(node)}}}"]


def _joined(parts: list[list[str]]) -> list[str]:
    return ["".join(chosen) for chosen in islice(product(*parts), MOST)]


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for message in messages():
        if not wanted or any(message.file.startswith(start) for start in wanted):
            print(message)
