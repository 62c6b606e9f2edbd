"""Types of annotations that are imported when the annotations are evaluated.

`typing.get_type_hints` evaluates an annotation with the globals of its module, so each name must be there: an import
only for type checkers (`if TYPE_CHECKING:`) is not enough. Most modules import such types like any other. This package
is for types that are expensive to load and that a module needs for its annotations alone:

* Modules like `ocf.lazy_types.kubernetes` export all types of a library; `from ocf.lazy_types.kubernetes import V1Pod`
  looks like the import of the type to type checkers and readers, and loads nothing.
* `lazy_type` and `LazyGeneric` are for the few types of this project whose modules load much more than their users.

Annotations with these names are texts, or the module has `from __future__ import annotations`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, ForwardRef

__all__ = ["LazyGeneric", "lazy_type", "lazy_types"]


def lazy_types(*modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module (PEP 562), which exports references to all types of other modules.

    Args:
        modules: The modules. A type is imported from the first of them that has its name.

    Returns:
        A function that returns the reference to a type, and raises `AttributeError` for names that do not begin with a
        capital letter, such as those that the import system looks up.

    Example:
        >>> from typing import get_type_hints
        >>> Decimal = lazy_types("fractions", "decimal")("Decimal")
        >>> def double(value: "Decimal | None") -> "Decimal": ...
        >>> get_type_hints(double)["return"]
        <class 'decimal.Decimal'>
    """

    def find(name: str) -> Any:
        if not name[:1].isupper():
            raise AttributeError(f"{name!r} is not the name of a type")
        return _reference(f"resolved({modules!r}, {name!r})")

    return find


def lazy_type(module: str, name: str) -> Any:
    """Return a reference to a type, which `typing.get_type_hints` imports.

    Args:
        module: The module that exports the type.
        name: The name of the type.

    Example:
        >>> from typing import get_type_hints
        >>> Decimal = lazy_type("decimal", "Decimal")
        >>> def double(value: "Decimal | None") -> "Decimal": ...
        >>> get_type_hints(double)["return"]
        <class 'decimal.Decimal'>
    """
    return lazy_types(module)(name)


class LazyGeneric:
    """A reference to a generic type, to be used with its arguments.

    Args:
        module: The module that exports the type.
        name: The name of the type.

    Example:
        >>> from typing import get_type_hints
        >>> Queue = LazyGeneric("queue", "Queue")
        >>> def drain(items: "Queue[int]") -> None: ...
        >>> get_type_hints(drain)["items"]
        queue.Queue[int]
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __getitem__(self, arguments: Any) -> Any:
        """Return a reference to the type with its arguments."""
        number = _number((self._module, self._name, arguments))
        return _reference(f"subscripted({number})")


_subscriptions: Final[list[tuple[str, str, Any]]] = []


def _number(subscription: tuple[str, str, Any]) -> int:
    """Return the number of a subscription: the text of a forward reference cannot hold its arguments."""
    if subscription not in _subscriptions:
        _subscriptions.append(subscription)
    return _subscriptions.index(subscription)


def _reference(call: str) -> ForwardRef:
    """Return a reference that calls a function of this module: it is evaluated with the globals of another one."""
    return ForwardRef(f"__import__({__name__!r}, fromlist=['lazy_types']).{call}")


def resolved(modules: tuple[str, ...], name: str) -> Any:
    """Import a type from the first module that has it; called when a reference is evaluated."""
    for module in modules:
        found = getattr(import_module(module), name, None)
        if found is not None:
            return found
    raise AttributeError(f"no type {name!r} in {' or '.join(modules)}")


def subscripted(number: int) -> Any:
    """Import a type and give it its arguments; called when a reference is evaluated."""
    module, name, arguments = _subscriptions[number]
    return resolved((module,), name)[arguments]
