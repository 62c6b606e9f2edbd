"""Any object, field by field: for kinds that nobody has a model of.

Without a model nothing is known about the fields, so a path is a row of keys, and each but the last leads to a map. A
path that leads through something else is an error, because writing there would destroy what somebody meant.
"""

from __future__ import annotations

import math
from types import NoneType
from typing import TYPE_CHECKING, Any

from ocf.editors.model_values import require
from ocf.errors import ConfigError
from ocf.objects import format_path

if TYPE_CHECKING:
    from ocf.objects import FieldPath, Manifest

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
        """The live content, for what has no method here; what is written to it stays as written."""
        return self._raw

    def set_field(self, value: Any, *path: str) -> None:
        """Set a field; maps on the way to it are made.

        Args:
            value: A JSON value; a copy is stored.
            path: Keys from the top of the object.

        Raises:
            ConfigError: If the path is empty, leads through something that is no map, or the value is none of JSON.
        """
        *parents, name = _checked(path)
        self._map(tuple(parents))[name] = own_json(value, path)

    def remove_field(self, *path: str) -> None:
        """Drop a field; one that is not there is passed over, and so is one that no path leads to.

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
        """Set one entry of a map of texts, such as labels; the map is made if it is not there.

        Args:
            key: Key of the entry.
            value: Its new value.
            path: Where the map is.

        Raises:
            ConfigError: If key or value is no text, or if there is something else than a map of texts.
        """
        where = format_path(_checked(path))
        require(f"key of {where}", key, str)
        require(f"{where}[{key}]", value, str)
        self._texts(path)
        self._map(path)[key] = value

    def remove_map_entry(self, key: str, *path: str) -> None:
        """Drop one entry of a map of texts; the map goes with its last entry.

        Args:
            key: Key of the entry; one that is not there is passed over.
            path: Where the map is.

        Raises:
            ConfigError: If there is something else than a map of texts.
        """
        texts = self._texts(_checked(path))
        if texts is None or key not in texts:
            return
        del texts[key]
        if not texts:
            self.remove_field(*path)

    def _map(self, path: FieldPath) -> dict[str, Any]:
        """Return the map at a place, made if it is not there; what is no map is met before anything is made."""
        found: Any = self._raw
        for depth, key in enumerate(path, 1):
            found = _demand_map(found.setdefault(key, {}), path[:depth])
        made: dict[str, Any] = found
        return made

    def _texts(self, path: FieldPath) -> dict[str, str] | None:
        """Return the map of texts at a place; None if there is nothing."""
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


# Of a value only the type is told: nobody knows which fields of an unknown kind are secret.
def _demand_map(found: Any, path: FieldPath) -> Any:
    if not isinstance(found, dict):
        raise ConfigError(f"{format_path(path)}: must be a map, not of type {type(found).__name__}")
    return found


def own_json(value: Any, path: FieldPath) -> Any:
    """Copy a JSON value, and refuse anything else.

    Args:
        value: What somebody gave.
        path: Where it is meant to be, for messages.

    Returns:
        An equal value that shares nothing with it.

    Raises:
        ConfigError: Naming the first part of it that is none of JSON.
    """
    if isinstance(value, dict):
        return {require(f"key in {format_path(path)}", key, str): own_json(v, (*path, key)) for key, v in value.items()}
    if isinstance(value, list):
        return [own_json(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, str | int | NoneType) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ConfigError(f"{format_path(path)}: must be a JSON value, not of type {type(value).__name__}")
