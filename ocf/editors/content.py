"""Editor of an object of any kind, for kinds without a model.

Without a model nothing is known about the fields, so a path is a sequence of keys, and every key but the last must lead
to a map. A path through any other value is an error, because writing there would replace that value.
"""

from __future__ import annotations

import math
from types import NoneType
from typing import Any, Final

from ocf.editors.model_values import require
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.paths import FieldPath, format_path

__all__ = ["UnstructuredContentEditor", "own_json"]


class UnstructuredContentEditor:
    """Edits the fields of an object.

    Args:
        raw: The live content; every edit changes it.

    Example:
        >>> content = UnstructuredContentEditor({})
        >>> content.set_field([{"port": "metrics"}], "spec", "endpoints")
        >>> content.ensure_map_entry("app", "web", "spec", "selector", "matchLabels")
        >>> content.raw
        {'spec': {'endpoints': [{'port': 'metrics'}], 'selector': {'matchLabels': {'app': 'web'}}}}
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Manifest) -> None:
        self._raw = raw

    @property
    def raw(self) -> Manifest:
        """The live content, for edits without a method; values written to it are kept unchanged."""
        return self._raw

    def set_field(self, value: Any, *path: str) -> None:
        """Set a field and create the maps that lead to it.

        Args:
            value: A JSON value; a copy is stored.
            path: Keys from the top of the object.

        Raises:
            ConfigError: If the path is empty or leads through a value that is not a map, or the value is not a JSON
                value.
        """
        *parents, name = _checked(path)
        self._map(tuple(parents))[name] = own_json(value, path)

    def remove_field(self, *path: str) -> None:
        """Remove a field if it exists.

        Args:
            path: Keys from the top of the object.

        Raises:
            ConfigError: If the path is empty.
        """
        *parents, name = _checked(path)
        found: Any = self._raw
        for key in parents:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict):
            found.pop(name, None)

    def ensure_map_entry(self, key: str, value: str, *path: str) -> None:
        """Set one entry of a map of strings, such as labels; the map is created if it is missing.

        Args:
            key: Key of the entry.
            value: Value of the entry.
            path: Path of the map.

        Raises:
            ConfigError: If the key or the value is not a string, or the path leads to anything but a map of strings.
        """
        where = format_path(_checked(path))
        require(f"key of {where}", key, str)
        require(f"{where}[{key}]", value, str)
        self._texts(path)
        self._map(path)[key] = value

    def remove_map_entry(self, key: str, *path: str) -> None:
        """Remove one entry of a map of strings if it exists; the map is removed with its last entry.

        Args:
            key: Key of the entry.
            path: Path of the map.

        Raises:
            ConfigError: If the path leads to anything but a map of strings.
        """
        texts = self._texts(_checked(path))
        if texts is None or key not in texts:
            return
        del texts[key]
        if not texts:
            self.remove_field(*path)

    def _map(self, path: FieldPath) -> dict[str, Any]:
        """Return the map at a path, created if missing; an invalid path is detected before anything is created."""
        found: Any = self._raw
        for depth, key in enumerate(path, 1):
            found = _demand_map(found.setdefault(key, {}), path[:depth])
        made: dict[str, Any] = found
        return made

    def _texts(self, path: FieldPath) -> dict[str, str] | None:
        """Return the map of strings at a path; None if it is missing."""
        found: Any = self._raw
        for depth, key in enumerate(path, 1):
            if key not in found:
                return None
            found = _demand_map(found[key], path[:depth])
        strange = [key for key, value in found.items() if not isinstance(value, str)]
        if strange:
            raise ConfigError(f"{format_path((*path, strange[0]))}: must be a text in a map of texts")
        texts: dict[str, str] = found
        return texts


def _checked(path: tuple[str, ...]) -> tuple[str, ...]:
    if not path:
        raise ConfigError("a path needs at least one key")
    for key in path:
        require("key of a path", key, str)
    return path


# Messages contain only the type of a value, because any field of an unknown kind may be secret.
def _demand_map(found: Any, path: FieldPath) -> Any:
    if not isinstance(found, dict):
        raise ConfigError(f"{format_path(path)}: must be a map, not of type {type(found).__name__}")
    return found


def own_json(value: Any, path: FieldPath) -> Any:
    """Return a copy of a JSON value.

    Args:
        value: The value to copy.
        path: Path of the value, for messages.

    Raises:
        ConfigError: If a part of it is not a JSON value; the message contains the path of the first such part.
    """
    if isinstance(value, dict):
        return {
            _own_key(key, path): item if item.__class__ in _SCALARS else own_json(item, (*path, key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            item if item.__class__ in _SCALARS else own_json(item, (*path, index)) for index, item in enumerate(value)
        ]
    if isinstance(value, str | int | NoneType) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ConfigError(f"{format_path(path)}: must be a JSON value, not of type {type(value).__name__}")


def _own_key(key: object, path: FieldPath) -> str:
    return key if isinstance(key, str) else require(f"key in {format_path(path)}", key, str)


# Most values are such scalars; a call for each of them would take half of the time. A float may not be finite.
_SCALARS: Final = frozenset({str, int, bool, NoneType})
