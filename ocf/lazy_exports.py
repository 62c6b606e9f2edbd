"""Exports of a package that are imported on first use, so that a program loads only the modules that it needs."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports"]


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package (PEP 562), which imports an exported name on first use.

    A name must differ from that of its module: importing the module sets the attribute of the package to the module.

    Args:
        package: The name of the package, its `__name__`.
        modules: For each name the module that defines it, relative to the package.

    Returns:
        A function that returns the value of a name, and raises `AttributeError` for any other name.

    Example:
        >>> find = lazy_exports("ocf.objects", {"format_time": "timestamps"})
        >>> find("format_time").__module__
        'ocf.objects.timestamps'
        >>> find("parse")
        Traceback (most recent call last):
        AttributeError: module 'ocf.objects' has no attribute 'parse'
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
