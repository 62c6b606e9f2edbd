"""Operators from a module, a folder or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.component_loader import find_attribute, import_by_name, one_line, source_location
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

    from ocf.runtime.operator import Operator

__all__ = ["load_operator"]

_DEFAULT_MODULE: Final = "operator"
"""The module of a package that is searched for the operator, unless the package itself has one."""


def load_operator(target: str) -> Operator[Any]:
    """Import an operator by name.

    Args:
        target: `package.module`, `package/module.py` or `package`, optionally with `:name`. Without a name, the module
            must have exactly one operator, or be a package with one in its module `operator`. The name may also be that
            of a function without parameters that returns an operator.

    Raises:
        ConfigError: If there is no operator, or more than one without a name.
    """
    module_path, colon, name = target.partition(":")
    if not module_path or (colon and not name):
        raise ConfigError(f'invalid operator "{target}": write MODULE or MODULE:NAME, for example shop.operator')
    module = import_by_name(_dotted(module_path))
    if colon:
        return _require_operator(target, find_attribute(target, module, name))
    return _single_operator(target, module)


def _dotted(module_path: str) -> str:
    """Return the name of a module that is given by its path."""
    if "/" not in module_path and not module_path.endswith(".py"):
        return module_path
    if Path(module_path).is_absolute():
        raise ConfigError(
            f"{module_path} is an absolute path: change to the folder of its packages, and use a relative path"
        )
    return ".".join(part for part in Path(module_path).with_suffix("").parts if part != ".")


def _single_operator(target: str, module: ModuleType) -> Operator[Any]:
    found = _operators(module)
    if not found and hasattr(module, "__path__"):
        module = import_by_name(f"{module.__name__}.{_DEFAULT_MODULE}")
        found = _operators(module)
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise ConfigError(f"{target}: module {module.__name__} has no operator; name a function: {target}:NAME")
    raise ConfigError(
        f"{target}: module {module.__name__} has {len(found)} operators, {', '.join(found)}; name one: {target}:NAME"
    )


def _operators(module: ModuleType) -> dict[str, Operator[Any]]:
    """Return the operators of a module by name; an operator with several names counts once."""
    from ocf.runtime.operator import Operator

    found: dict[int, tuple[str, Operator[Any]]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Operator):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _require_operator(target: str, found: Any) -> Operator[Any]:
    from ocf.runtime.operator import Operator

    if not isinstance(found, Operator) and callable(found):
        try:
            found = found()
        except Exception as error:
            raise ConfigError(f"{target} failed: {one_line(error)}{source_location(error)}") from error
    if not isinstance(found, Operator):
        raise ConfigError(f"{target} is not an operator, got {type(found).__name__}")
    return found
