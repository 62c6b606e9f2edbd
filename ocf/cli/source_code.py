"""The code of operators that changes while they run: its files, and loading it anew.

Everything that was imported from these files is forgotten before they are imported again, so that no class or function
of a former version is left in a module that did not change itself.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import REGISTRY
from prometheus_client.registry import Collector

from ocf.cli.operator_loader import load_operators, module_name
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.runtime.operator import Operator

__all__ = ["LoadedCode", "SourceCode", "next_files"]

_PERIOD: Final = 0.25
"""Seconds between two looks at the files; a change is taken once a look finds it complete."""
_CODE: Final = frozenset({".py"})
_DATA: Final = frozenset({".json", ".toml", ".yaml", ".yml"})
_SKIPPED: Final = frozenset({"__pycache__", "node_modules"})
_OURS: Final = frozenset({"__main__", "ocf", "ocf_server"})
_PACKAGES: Final = frozenset({"dist-packages", "site-packages"})
_INSTALLED: Final = tuple(
    Path(each)
    for each in (*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")), site.USER_SITE)
    if each
)

Stamp = tuple[int, int, int]
"""Time of the last change, size and number of a file: an editor may write a file in place, or replace it."""
Files = Mapping[Path, Stamp]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedCode:
    """A version of the code, as it was loaded.

    Args:
        modules: By name.
        collectors: What it has registered in the default registry of Prometheus.
    """

    operators: tuple[Operator[Any], ...]
    modules: Mapping[str, ModuleType]
    collectors: Collection[Collector]


class SourceCode:
    """The files of a target of `ocf dev` and of everything that it imports, except of what is installed.

    Args:
        target: The operators, as for `load_operators`.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._roots = {Path.cwd()}
        self._folders: set[Path] = set()
        """Folders that a module was loaded from, by any version."""
        self._others = frozenset(_registered())

    def load(self) -> LoadedCode:
        """Load the operators from the files as they are now; after an error, the modules are those of before.

        Raises:
            ConfigError: If the code cannot be imported, or has no operators.
        """
        # By the second and the size of a file Python finds that its compiled form is current, and so would miss a save.
        sys.dont_write_bytecode = True
        before = self._loaded()
        self._forget()
        # A finder remembers the content of folders, so that it would not see a new file.
        importlib.invalidate_caches()
        try:
            operators = load_operators(self._target)
            self._add_root()
            loaded = self._loaded(operators)
        except BaseException:
            self._folders |= _folders(self._modules().values())
            self.use(before)
            raise
        self._folders |= _folders(loaded.modules.values())
        return loaded

    def use(self, code: LoadedCode) -> None:
        """Make the modules of a version those of the process, for what its functions import when they are called."""
        self._forget()
        sys.modules.update(code.modules)
        for each in code.collectors:
            REGISTRY.register(each)

    def files(self) -> Files:
        """Return the files whose change may change the code.

        These are the Python files beside the packages and modules, and the Python, YAML, JSON and TOML files in the
        packages.
        """
        return {path: stamp for root in self._roots for path, stamp in _files(root, self._folders)}

    def _add_root(self) -> None:
        """Find the folder of the target's package: with an editable install it may be anywhere."""
        name = module_name(self._target).partition(".")[0]
        place = next(_places(sys.modules[name]), None)
        if place is None or _is_installed(place):
            raise ConfigError(
                f"--reload: the module {name} is installed, got {place}; change to the folder of its files, or install "
                "it as an editable package"
            )
        is_package = hasattr(sys.modules[name], "__path__")
        folder = place.parent if is_package and place.name == "__init__.py" else place
        self._roots.add(folder.parent)

    def _loaded(self, operators: tuple[Operator[Any], ...] = ()) -> LoadedCode:
        return LoadedCode(operators, self._modules(), [each for each in _registered() if each not in self._others])

    def _modules(self) -> dict[str, ModuleType]:
        return {name: each for name, each in [*sys.modules.items()] if self._is_own(name, each)}

    def _is_own(self, name: str, module: ModuleType) -> bool:
        if name.partition(".")[0] in _OURS:
            return False
        return any(_is_below(place, self._roots) and not _is_installed(place) for place in _places(module))

    def _forget(self) -> None:
        for name in self._modules():
            del sys.modules[name]
        for each in _registered():
            if each not in self._others:
                REGISTRY.unregister(each)


async def next_files(read: Callable[[], Files], known: Files, stop: asyncio.Event) -> Files | None:
    """Wait until files differ from known ones, and are not being written.

    Args:
        read: Returns the files as they are now.
        known: The files as they were.
        stop: Ends the wait.

    Returns:
        The files as they are now; None if it was stopped.
    """
    last = known
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_PERIOD):
                await stop.wait()
        found = read()
        if found == last != known:
            return found
        last = found
    return None


def _registered() -> list[Collector]:
    # A module that declares a metric is loaded again, but a name can be registered once only; what is registered can be
    # found in no other way.
    return [*REGISTRY._collector_to_names]  # noqa: SLF001


def _places(module: ModuleType) -> Iterator[Path]:
    """Yield the file of a module, or the folders of a package without `__init__.py`."""
    # Not by `getattr`, which loads a lazy module.
    found = getattr(module, "__dict__", {})
    file = found.get("__file__")
    if isinstance(file, str):
        yield Path(os.path.abspath(file))  # noqa: PTH100 (a link in the folder belongs to it, so it is not resolved)
    elif file is None and "__path__" in found:
        # Its folders follow those of the package above, which may have been forgotten.
        with suppress(KeyError):
            yield from [Path(each) for each in found["__path__"]]


def _folders(modules: Iterable[ModuleType]) -> set[Path]:
    return {place.parent if place.suffix else place for module in modules for place in _places(module)}


def _is_below(place: Path, folders: Iterable[Path]) -> bool:
    return any(place.is_relative_to(folder) for folder in folders)


def _is_installed(place: Path) -> bool:
    return not _PACKAGES.isdisjoint(place.parts) or _is_below(place, _INSTALLED)


def _files(folder: Path, loaded: Collection[Path], *, in_package: bool = False) -> Iterator[tuple[Path, Stamp]]:
    """Yield the files of a folder, of packages and their folders below, and of those that modules were loaded from."""
    suffixes = _CODE | _DATA if in_package else _CODE
    for each in _entries(folder):
        path = Path(each.path)
        if each.name.startswith(".") or each.name in _SKIPPED or _is_installed(path):
            continue
        try:
            # A link could lead to a folder above.
            if each.is_dir(follow_symlinks=False) or path in loaded:
                is_package = in_package or path in loaded or (path / "__init__.py").is_file()
                if is_package or any(one.is_relative_to(path) for one in loaded):
                    yield from _files(path, loaded, in_package=is_package)
            elif path.suffix in suffixes:
                found = each.stat()
                yield path, (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            # It was removed meanwhile.
            continue


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []
