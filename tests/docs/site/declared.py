"""Reasons of events and conditions that the code declares: a walk of the modules that post or set them."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

__all__ = ["CONDITIONS", "EVENTS", "literals", "reasons"]

_REASON: Final = re.compile(r"^([A-Z][a-z]+)+$")


EVENTS: Final[Mapping[str, Mapping[str, int | str]]] = {
    "component": {"event": 1, "_record": 1, "owner_event": 1, "_record_loss": 0, "_log_loss": 0, "hold_back": 0},
    "runtime": {"Event": "reason", "owner_event": 1, "event": 0, "happened_to_process": 3},
    "autoscaling/algorithm": {"HpaEvent": 1, "warn": 0, "Failure": 0, "_failed": 1},
    "controllers/hpa": {"HpaEvent": 1, "warn": 0},
    "controllers/nodegroup": {"event": 1},
}
"""By package the functions that post an event, with the position or the keyword of the reason."""

CONDITIONS: Final[Mapping[str, Mapping[str, int | str]]] = {
    "autoscaling/algorithm": {"set": 2, "Failure": 0, "_failed": 1},
    "controllers/hpa": {"set": 2},
    "controllers/nodegroup": {"failed_status": 1, "_bound": 1},
}
"""By package the functions that set a condition, likewise."""


def reasons(package: str, calls: Mapping[str, int | str]) -> set[str]:
    """Return the reasons that the calls in a package name.

    An argument may be a literal, a constant of the module, or a local variable, of which every value counts.

    Args:
        package: The folder below `ocf`.
        calls: The functions.
    """
    root = Path(str(import_module("ocf").__file__)).parent
    found: set[str] = set()
    for path in sorted((root / package).rglob("*.py")):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in _functions(tree):
            for argument in _arguments(function, calls):
                found |= set(_values(argument, function, import_module(name)))
    return {each for each in found if _REASON.match(each)}


def literals(module: ModuleType) -> set[str]:
    """Return the literals of a module that have the form of a reason."""
    tree = ast.parse(inspect.getsource(module))
    found = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
    return {each for each in found if isinstance(each, str) and _REASON.match(each)}


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _arguments(function: ast.AST, calls: Mapping[str, int | str]) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            where = calls.get(name)
            if isinstance(where, int) and len(node.args) > where:
                yield node.args[where]
            yield from (each.value for each in node.keywords if each.arg == where and where is not None)


def _values(argument: ast.expr, function: ast.AST, module: ModuleType) -> Iterator[str]:
    """Yield the possible values of an argument."""
    if isinstance(argument, ast.IfExp):
        yield from _values(argument.body, function, module)
        yield from _values(argument.orelse, function, module)
    elif isinstance(argument, ast.Constant):
        yield str(argument.value)
    elif isinstance(argument, ast.Name) and hasattr(module, argument.id):
        yield str(getattr(module, argument.id))
    elif isinstance(argument, ast.Name):
        for target, value in _assignments(function):
            if target == argument.id:
                yield from _values(value, ast.Module([], []), module)


def _assignments(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names: Any = target.elts if isinstance(target, ast.Tuple) else [target]
                values: Any = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                if len(names) == len(values):
                    yield from ((getattr(name, "id", ""), value) for name, value in zip(names, values, strict=True))
