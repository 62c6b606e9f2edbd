"""Signatures and annotations of users' code, read without evaluating names that are imported for type checkers only.

From Python 3.14 on, annotations are evaluated when they are read (PEP 649), and such a name is then an error; before,
it was one where the function was defined.
"""

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["annotated_names", "required_parameters", "signature_of"]


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function; an annotation that cannot be evaluated is a text or a `ForwardRef`.

    Raises:
        TypeError: If it is not a function.
        ValueError: If its signature is unknown, as that of some built-in functions.

    Example:
        >>> def components(owner: "Shop", version: str = "1.0") -> None: ...
        >>> signature_of(components).parameters["owner"].annotation
        'Shop'
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def required_parameters(function: Callable[..., Any]) -> int:
    """Return the number of required positional parameters of a function; 1 if its signature is unknown."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in kinds and one.default is inspect.Parameter.empty for one in parameters)


def annotated_names(kind: type) -> Iterable[str]:
    """Return the names that a class annotates itself, in order.

    Args:
        kind: The class; names that its bases annotate are not among them.

    Example:
        >>> class Shop:
        ...     name: "Name"
        >>> list(annotated_names(Shop))
        ['name']
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(kind, format=Format.FORWARDREF)
    return inspect.get_annotations(kind)
