"""Targets of commands: an operator, or the function that returns the components of an owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.component_loader import (
    components_of,
    find_attribute,
    import_by_name,
    one_line,
    owner_name,
    source_location,
)
from ocf.cli.output import echo
from ocf.errors import ConfigError
from ocf.lazy_types.signatures import signature_of

if TYPE_CHECKING:
    from types import ModuleType

    from ocf.component import Component
    from ocf.objects import Manifest
    from ocf.runtime.operator import Operator

__all__ = ["ComponentSource", "load_components", "load_operator", "operator_components", "require_no_context"]

_DEFAULT_MODULE: Final = "operator"
"""The module of a package that is searched for the operator, unless the package itself has one."""


@dataclass(frozen=True, slots=True)
class ComponentSource:
    """The code that returns the components of an owner.

    Args:
        target: The name given by the user, for messages.
        function: The function that takes an owner; None for that of the operator.
        operator: The operator; None if the module of the function has no operator with this function.
    """

    target: str
    function: Callable[[Any], object] | None
    operator: Operator[Any] | None

    @property
    def definitions(self) -> Sequence[Manifest]:
        """The CustomResourceDefinitions of the operator; empty without one."""
        return self.operator.all_definitions if self.operator is not None else ()

    def note_pause(self, owner: Manifest, consequence: str) -> None:
        """Print a note if an owner is paused, or if a value that could be meant to pause it does not.

        Args:
            consequence: What the pause means for the output of the command, as it follows "paused by …;".
        """
        from ocf.component.model.ownership import DEFAULT_OPERATOR
        from ocf.component.pause import find_pause, invalid_pause, pause_path

        name, field = DEFAULT_OPERATOR, ""
        if self.operator is not None:
            name, field = self.operator.name, self.operator.pause_field
        pause = find_pause(owner, name, pause_path(field))
        problem = invalid_pause(owner, name, pause_path(field))
        if pause is not None:
            echo(f"note: {owner_name(owner)} is paused by {pause}; {consequence}", color="yellow", err=True)
        elif problem:
            echo(f"note: {owner_name(owner)}: {problem}", color="yellow", err=True)

    async def components(self, owner: Manifest) -> Sequence[Component]:
        """Return the components of an owner."""
        if self.function is not None:
            return components_of(self.target, self.function, owner)
        if self.operator is None:
            return ()
        return await operator_components(self.operator, owner)


def load_operator(target: str) -> Operator[Any]:
    """Import an operator by name.

    Args:
        target: `package.module`, `package/module.py` or `package`, optionally with `:name`. Without a name, the module
            must have exactly one operator, or be a package with one in its module `operator`. The name may also be that
            of a function without parameters that returns an operator, or of the function of an operator of the module
            that returns the components of an owner.
    """
    module, found = _find(target)
    return _operator_of(module, found) or _require_operator(target, found)


def load_components(target: str) -> ComponentSource:
    """Import the code that returns the components of an owner.

    Args:
        target: An operator, as for `load_operator`; or `module:function`, a function that takes an owner and returns
            its components.
    """
    module, found = _find(target)
    if callable(found) and _accepts(found, None):
        return ComponentSource(target, found, _operator_of(module, found))
    operator = _require_operator(target, found)
    require_no_context(operator, "name a function that takes the owner alone, MODULE:FUNCTION")
    return ComponentSource(target, None, operator)


def require_no_context(operator: Operator[Any], way_out: str) -> None:
    """Check that the components of an operator depend on nothing but the owner."""
    if operator.callbacks.takes_context:
        raise ConfigError(f"the components of operator {operator.name} depend on a cluster: {way_out}")


async def operator_components(operator: Operator[Any], owner: Manifest, *, way_out: str = "") -> Sequence[Component]:
    """Return the components that an operator makes for an owner.

    Args:
        operator: The operator; its function takes no context.
        way_out: How the user can avoid an error, for the message; empty for nothing.
    """
    try:
        return await operator.callbacks.components(operator.owner.read(owner), None)
    except Exception as error:
        more = f"; {way_out}" if way_out else ""
        problem = f"{one_line(error)}{source_location(error)}{more}"
        raise ConfigError(f"components of {owner_name(owner)}: {problem}") from error


def _find(target: str) -> tuple[ModuleType, Any]:
    """Return the module of a target, and the object in it that is named, or its only operator."""
    module_path, colon, name = target.partition(":")
    if not module_path or (colon and not name):
        raise ConfigError(f'invalid target "{target}": write MODULE or MODULE:NAME, for example shop.operator')
    module = import_by_name(_dotted(module_path))
    if colon:
        return module, find_attribute(target, module, name)
    return module, _single_operator(target, module)


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


def _operator_of(module: ModuleType, function: object) -> Operator[Any] | None:
    """Return the operator of a module whose components a function returns; None if there is not exactly one."""
    found = [operator for operator in _operators(module).values() if operator.components is function]
    return found[0] if len(found) == 1 else None


def _accepts(function: Callable[..., object], *arguments: object) -> bool:
    """Return whether a function can be called with positional arguments; True if its signature is unknown."""
    try:
        signature_of(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _require_operator(target: str, found: Any) -> Operator[Any]:
    from ocf.runtime.operator import Operator

    if not isinstance(found, Operator) and callable(found) and _accepts(found):
        try:
            found = found()
        except Exception as error:
            raise ConfigError(f"{target} failed: {one_line(error)}{source_location(error)}") from error
    if not isinstance(found, Operator):
        raise ConfigError(f"{target} is not an operator, got {type(found).__name__}")
    return found
