"""Packages of other projects whose `__init__` imports all of their submodules, and runs only when it is needed."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

__all__ = ["defer_init"]


def defer_init(package: str) -> None:
    """Run the `__init__` of a package when an attribute is read that is not a submodule, and not when it is imported.

    `kubernetes/__init__.py` imports OAuth, a websocket client and a second HTTP client, which takes half as long as
    everything else that an operator imports; of the package, an operator uses `kubernetes.client` only. Importing a
    submodule, and reading it as an attribute, works as before.

    A package that has been imported already is not changed.

    Args:
        package: The name of a top-level package; it need not be installed.

    Source of the semantics: https://docs.python.org/3/reference/import.html#the-meta-path and
    https://docs.python.org/3/reference/datamodel.html#customizing-module-attribute-access

    Example:
        >>> defer_init("kubernetes")
        >>> import kubernetes
        >>> kubernetes.config.__name__, bool(kubernetes.__version__)
        ('kubernetes.config', True)
    """
    if not any(isinstance(finder, _Finder) and finder.package == package for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(package))


class _Finder:
    """Finds one package as the other finders do, with a loader that defers its `__init__`."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.package:
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _DeferredInit(spec.loader.name, spec.loader.path)
        return spec


class _DeferredInit(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        execute = super().exec_module

        def find(name: str) -> object:
            submodule = f"{module.__name__}.{name}"
            if not name.startswith("__"):
                try:
                    return import_module(submodule)
                except ModuleNotFoundError as error:
                    if error.name != submodule:
                        raise
            execute(module)
            vars(module).pop("__getattr__", None)
            return getattr(module, name)

        vars(module)["__getattr__"] = find
