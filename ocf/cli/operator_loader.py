"""Getting from a module, a folder or a file to the operator in it."""

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
"""The module of a package in which its operator is looked for, unless it is in the package itself."""


def load_operator(target: str) -> Operator[Any]:
    """Import an operator by name.

    Args:
        target: `package.module`, `package/module.py` or `package`, perhaps with `:name`. Without a name the module has
            to hold one operator, or is a package with one in its module `operator`. What is named may also be a
            function without arguments that returns an operator.

    Raises:
        ConfigError: If there is none, or more than one to choose from.
    """
    place, colon, name = target.partition(":")
    if not place or (colon and not name):
        raise ConfigError(f'"{target}" names no operator: write MODULE or MODULE:NAME, for example shop.operator')
    module = import_by_name(_dotted(place))
    if colon:
        return _require_operator(target, find_attribute(target, module, name))
    return _single_operator(target, module)


def _dotted(place: str) -> str:
    """Return the name of a module that is given by its path, as shells complete it."""
    if "/" not in place and not place.endswith(".py"):
        return place
    if Path(place).is_absolute():
        raise ConfigError(
            f"{place} is an absolute path: change to the folder that its packages are in, and leave it out"
        )
    return ".".join(part for part in Path(place).with_suffix("").parts if part != ".")


def _single_operator(target: str, module: ModuleType) -> Operator[Any]:
    found = _operators(module)
    if not found and hasattr(module, "__path__"):
        module = import_by_name(f"{module.__name__}.{_DEFAULT_MODULE}")
        found = _operators(module)
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise ConfigError(f"{target}: there is no operator in module {module.__name__}; name a function: {target}:NAME")
    raise ConfigError(f"{target}: there are {len(found)} operators, {', '.join(found)}; choose one: {target}:NAME")


def _operators(module: ModuleType) -> dict[str, Operator[Any]]:
    """Return the operators of a module by name; one with several names counts once."""
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
        raise ConfigError(f"{target} is no operator, but {type(found).__name__}")
    return found
