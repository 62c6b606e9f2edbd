"""Targets of commands: operators, or the function that returns the components of an owner."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterator, Sequence
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

    from ocf.component import Component, ReconcileContext
    from ocf.objects import Manifest
    from ocf.runtime.operator import Operator

__all__ = [
    "ComponentSource",
    "load_components",
    "load_operators",
    "module_name",
    "operator_components",
    "operator_sources",
    "reject_together",
]

_DEFAULT_MODULE: Final = "operator"
"""The module of a package that is searched for the operator, unless the package itself has one."""


@dataclass(frozen=True, slots=True)
class ComponentSource:
    """The code that returns the components of an owner.

    Args:
        target: The name given by the user, for messages.
        function: The function that takes an owner, an owner and the context, or nothing; None for that of the operator.
        operator: The operator; None if no operator near the function has it.
        way_out: How the user can avoid an error of the code, for the message; empty for nothing.
    """

    target: str
    function: Callable[..., object] | None
    operator: Operator[Any] | None
    way_out: str = ""

    @property
    def definitions(self) -> Sequence[Manifest]:
        """The CustomResourceDefinitions of the operator; empty without one."""
        return self.operator.all_definitions if self.operator is not None else ()

    def reconciles(self, owner: Manifest) -> bool:
        """Return whether an object is of the kind of the operator's owners; without an operator, any object may be."""
        return self.operator is None or (owner["apiVersion"], owner["kind"]) == self.operator.owner_kind

    def note_unreconciled(self, owner: Manifest, consequence: str) -> None:
        """Print a note if an owner is not selected or paused, or if a value that could be meant to pause it does not.

        Args:
            consequence: What a pause means for the output of the command, as it follows "paused by …;".
        """
        from ocf.component.model.ownership import DEFAULT_OPERATOR
        from ocf.component.pause import find_pause, invalid_pause, pause_path

        name, field = DEFAULT_OPERATOR, ""
        if self.operator is not None:
            name, field = self.operator.name, self.operator.pause_field
            if not self.operator.selects(owner):
                unselected = f"{owner_name(owner)} is not selected by the operator {name}, which does not reconcile it"
                echo(f"note: {unselected}", color="yellow", err=True)
        pause = find_pause(owner, name, pause_path(field))
        problem = invalid_pause(owner, name, pause_path(field))
        if pause is not None:
            echo(f"note: {owner_name(owner)} is paused by {pause}; {consequence}", color="yellow", err=True)
        elif problem:
            echo(f"note: {owner_name(owner)}: {problem}", color="yellow", err=True)

    @property
    def takes_owner(self) -> bool:
        """Whether the components are those of an owner; otherwise the function returns them in every state."""
        from ocf.lazy_types.signatures import required_parameters

        return self.function is None or required_parameters(self.function) > 0

    @property
    def takes_context(self) -> bool:
        """Whether the components are computed with the context of a reconcile, so that they may read a cluster."""
        if self.function is not None:
            from ocf.runtime.operator.callbacks import takes_context

            return takes_context(self.function)
        return self.operator is not None and self.operator.callbacks.takes_context

    async def components(self, owner: Manifest, context: ReconcileContext | None = None) -> Sequence[Component]:
        """Return the components of an owner.

        Args:
            context: The context of the reconcile; None only if the code does not take it.
        """
        if self.function is not None:
            return await components_of(self.target, self.function, owner, context)
        if self.operator is None:
            return ()
        return await operator_components(self.operator, owner, context, way_out=self.way_out)


def load_operators(target: str) -> tuple[Operator[Any], ...]:
    """Import operators by name.

    Args:
        target: `package.module`, `package/module.py` or `package`, optionally with `:name`. Without a name, it is all
            operators of the module, in their order there, or those of the module `operator` of a package that has none.
            The name is that of an operator, of a list of operators, of a function without parameters that returns one
            or a list, or of the function of an operator that returns the components of an owner.
    """
    module, found = _find(target)
    operator = _operator_of(module, found)
    return (operator,) if operator is not None else _require_operators(target, module, found)


def load_components(target: str, function: str = "") -> tuple[ComponentSource, ...]:
    """Import the code that returns the components of an owner: one source per operator.

    Args:
        target: Operators, as for `load_operators`; or `module:function`, a function that returns components.
        function: `module:function` of the components, in place of the functions of the operators; empty for none.
    """
    if function:
        return operator_sources(load_operators(target), function)
    module, found = _find(target)
    if callable(found) and (_accepts(found, None) or _accepts(found, None, None)):
        return (ComponentSource(target, found, _operator_of(module, found)),)
    return operator_sources(_require_operators(target, module, found))


def operator_sources(
    operators: Sequence[Operator[Any]], function: str = "", *, way_out: str = ""
) -> tuple[ComponentSource, ...]:
    """Return one source for each operator.

    Args:
        function: `module:function` of the components, in place of the functions of the operators; empty for none.
        way_out: How the user can avoid an error of the code, for the message; empty for nothing.
    """
    call = _component_function(function) if function else None
    return tuple(ComponentSource(function or f"operator {one.name}", call, one, way_out) for one in operators)


def _component_function(target: str) -> Callable[..., object]:
    """Return the function that `--components` names."""
    if not all(target.partition(":")):
        raise ConfigError(f'--components: invalid function "{target}": write MODULE:FUNCTION')
    _, found = _find(target)
    if not callable(found):
        raise ConfigError(f"--components: {target} is not a function, got {_description(found)}")
    function: Callable[..., object] = found
    return function


async def operator_components(
    operator: Operator[Any], owner: Manifest, context: ReconcileContext | None = None, *, way_out: str = ""
) -> Sequence[Component]:
    """Return the components that an operator makes for an owner.

    Args:
        context: The context of the reconcile; None only if the operator's function does not take it.
        way_out: How the user can avoid an error, for the message; empty for nothing.
    """
    try:
        return await operator.callbacks.components(operator.owner.read(owner), context)
    except Exception as error:
        more = f"; {way_out}" if way_out else ""
        problem = f"{one_line(error)}{source_location(error)}{more}"
        raise ConfigError(f"components of {owner_name(owner)}: {problem}") from error


def reject_together(components: Sequence[Component], owner: Manifest) -> None:
    """Check that a reconcile of an owner would accept its components together."""
    from ocf.component.reconcile_components import reject_duplicates, reject_shared

    try:
        reject_duplicates(components)
        reject_shared(components)
    except ConfigError as error:
        raise ConfigError(f"components of {owner_name(owner)}: {error}") from error


def _find(target: str) -> tuple[ModuleType, Any]:
    """Return the module of a target, and the object in it that is named, or all of its operators."""
    _, colon, name = target.partition(":")
    module = import_by_name(module_name(target))
    if colon:
        return module, find_attribute(target, module, name)
    return module, _all_operators(target, module)


def module_name(target: str) -> str:
    """Return the name of the module of a target, which may be given by its path."""
    module_path, colon, name = target.partition(":")
    if not module_path or (colon and not name):
        raise ConfigError(f'invalid target "{target}": write MODULE or MODULE:NAME, for example shop.operator')
    if "/" not in module_path and not module_path.endswith(".py"):
        return module_path
    if Path(module_path).is_absolute():
        raise ConfigError(
            f"{module_path} is an absolute path: change to the folder of its packages, and use a relative path"
        )
    return ".".join(part for part in Path(module_path).with_suffix("").parts if part != ".")


def _all_operators(target: str, module: ModuleType) -> tuple[Operator[Any], ...]:
    found = _operators(module)
    if not found and hasattr(module, "__path__"):
        module = import_by_name(f"{module.__name__}.{_DEFAULT_MODULE}")
        found = _operators(module)
    if not found:
        raise ConfigError(f"{target}: module {module.__name__} has no operator; name a function: {target}:NAME")
    return tuple(found.values())


def _operators(module: ModuleType) -> dict[str, Operator[Any]]:
    """Return the operators of a module by name; an operator with several names counts once."""
    from ocf.runtime.operator import Operator

    found: dict[int, tuple[str, Operator[Any]]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Operator):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _operator_of(module: ModuleType, function: object) -> Operator[Any] | None:
    """Return the operator whose components a function returns; None if there is not exactly one.

    It is looked for in the module of the function, in its package, and in the module `operator` of that.
    """
    if not callable(function):
        return None
    for place in _near(module):
        found = [operator for operator in _operators(place).values() if operator.components is function]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _near(module: ModuleType) -> Iterator[ModuleType]:
    yield module
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    for name in (package, f"{package}.{_DEFAULT_MODULE}") if package else ():
        # A module is looked for without an import of what does not exist.
        if name != module.__name__ and importlib.util.find_spec(name) is not None:
            yield import_by_name(name)


def _accepts(function: Callable[..., object], *arguments: object) -> bool:
    """Return whether a function can be called with positional arguments; True if its signature is unknown."""
    try:
        signature_of(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _require_operators(target: str, module: ModuleType, found: Any) -> tuple[Operator[Any], ...]:
    from ocf.runtime.operator import Operator

    if callable(found) and not isinstance(found, Operator | type) and _accepts(found):
        try:
            found = found()
        except Exception as error:
            raise ConfigError(f"{target} failed: {one_line(error)}{source_location(error)}") from error
    several: list[object] = [*found] if isinstance(found, list | tuple) else [found]
    operators = tuple(one for one in several if isinstance(one, Operator))
    if not operators or len(operators) < len(several):
        names = ", ".join(_operators(module))
        way_out = (
            f"name one of {names}" if names else "declare one, operator = Operator(name=..., owner=..., components=...)"
        )
        raise ConfigError(f"{target} is not an operator, got {_description(found)}; {way_out}")
    return operators


def _description(found: object) -> str:
    if isinstance(found, type):
        return f"the class {found.__name__}"
    if inspect.isroutine(found):
        return f"the function {found.__name__}{signature_of(found)}"
    return f"an object of type {type(found).__name__}"
