"""Types of annotations that are imported when the annotations are evaluated.

A module that imports a type only for type checkers, since it is expensive to load or would make a cycle, names it here
for everything else. Then `typing.get_type_hints` finds it, as frameworks and documentation tools need it.
"""

from importlib import import_module
from typing import Any, Final, ForwardRef

__all__ = ["LazyGeneric", "lazy_type"]


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
    return ForwardRef(f"__import__({__name__!r}, fromlist=['lazy_type']).resolved({module!r}, {name!r})")


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
        return ForwardRef(f"__import__({__name__!r}, fromlist=['lazy_type']).subscripted({number})")


_subscriptions: Final[list[tuple[str, str, Any]]] = []


def _number(subscription: tuple[str, str, Any]) -> int:
    """Return the number of a subscription: the text of a forward reference cannot hold its arguments."""
    if subscription not in _subscriptions:
        _subscriptions.append(subscription)
    return _subscriptions.index(subscription)


def resolved(module: str, name: str) -> Any:
    """Import a type; called when a reference is evaluated."""
    return getattr(import_module(module), name)


def subscripted(number: int) -> Any:
    """Import a type and give it its arguments; called when a reference is evaluated."""
    module, name, arguments = _subscriptions[number]
    return resolved(module, name)[arguments]
