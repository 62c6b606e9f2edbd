"""Types of libraries for annotations, imported when the annotations are evaluated.

`typing.get_type_hints` evaluates an annotation with the globals of its module, so each name must be there: an import
only for type checkers (`if TYPE_CHECKING:`) is not enough. `from ocf.lazy_types.kubernetes import V1Pod` looks like the
import of the type to type checkers and readers, and loads nothing. It is for types of libraries that are expensive to
load, in annotations of exported names. Annotations with these names are texts, or the module has
`from __future__ import annotations`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, ForwardRef

__all__ = ["lazy_types"]


def lazy_types(*modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module (PEP 562), which exports references to all types of other modules.

    A type is imported from the first of the modules that has its name. Names that do not begin with a capital letter,
    such as those that the import system looks up, are an `AttributeError`.

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
        # The text calls `resolved` by an import: a reference is evaluated with the globals of another module.
        return ForwardRef(f"__import__({__name__!r}, fromlist=['resolved']).resolved({modules!r}, {name!r})")

    return find


def resolved(modules: tuple[str, ...], name: str) -> Any:
    """Import a type from the first module that has it; called when a reference is evaluated."""
    for module in modules:
        found = getattr(import_module(module), name, None)
        if found is not None:
            return found
    raise AttributeError(f"no type {name!r} in {' or '.join(modules)}")
