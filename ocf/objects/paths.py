"""Field paths: parsing, formatting, and access to fields of an object.

A path is a tuple of keys and list positions. Changing a field never changes the given object: the dicts along the path
are copied, all other values are shared.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from ocf.errors import ConfigError
from ocf.objects.manifest import Manifest

__all__ = ["FieldPath", "format_path", "get_field", "parse_path", "with_field", "without_field"]

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys (strings) and list positions (from 0), starting at the top of the object."""


def format_path(path: Sequence[str | int]) -> str:
    """Return a path as text.

    Args:
        path: Keys and list positions.

    Returns:
        Keys joined by dots, positions in brackets.

    Example:
        >>> format_path(("spec", "metrics", 0, "type"))
        'spec.metrics[0].type'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def parse_path(text: str) -> tuple[str, ...]:
    """Parse a path of keys.

    Args:
        text: Keys joined by dots, `spec.replicas`; list positions are not supported.

    Raises:
        ConfigError: If a key is empty or contains a bracket.

    Example:
        >>> parse_path("spec.replicas")
        ('spec', 'replicas')
    """
    keys = tuple(text.split("."))
    if not all(keys) or any(mark in text for mark in "[]"):
        raise ConfigError(f'"{text}" is not a field path: write keys joined by dots, for example "spec.replicas"')
    return keys


def get_field(value: Any, path: Sequence[str | int], default: Any = None) -> Any:
    """Return the value at a path.

    Args:
        value: A manifest or any part of one.
        path: Keys and list positions.
        default: Returned if the path does not exist.

    Returns:
        The value itself, not a copy.

    Example:
        >>> get_field({"spec": {"replicas": 3}}, ("spec", "replicas"))
        3
    """
    for part in path:
        # A tuple, because each evaluation of `dict | list` makes a new union.
        if not isinstance(value, (dict, list)):
            return default
        try:
            value = value[part]  # type: ignore[index]  # a key that does not fit a list is a TypeError, caught here
        except (KeyError, IndexError, TypeError):
            return default
    return value


def with_field(manifest: Manifest, path: Sequence[str], value: Any) -> Manifest:
    """Return an object with one field set; missing parents are created.

    Args:
        manifest: The object; it is not changed.
        path: Keys, at least one.
        value: The new value.

    Returns:
        A manifest that shares all values outside the path.

    Example:
        >>> with_field({"kind": "Scale"}, ("spec", "replicas"), 2)
        {'kind': 'Scale', 'spec': {'replicas': 2}}
    """
    key, *rest = path
    if not rest:
        return {**manifest, key: value}
    child = manifest.get(key)
    return {**manifest, key: with_field(child if isinstance(child, dict) else {}, rest, value)}


def without_field(manifest: Manifest, path: Sequence[str]) -> Manifest:
    """Return an object without one field; its parents are kept, even if empty.

    Args:
        manifest: The object; it is not changed.
        path: Keys, at least one.

    Returns:
        A manifest that shares all values outside the path; the same object if the field is absent.

    Example:
        >>> without_field({"spec": {"replicas": 2, "paused": True}}, ("spec", "replicas"))
        {'spec': {'paused': True}}
    """
    key, *rest = path
    if key not in manifest:
        return manifest
    if not rest:
        return {name: item for name, item in manifest.items() if name != key}
    child = manifest[key]
    if not isinstance(child, dict):
        return manifest
    changed = without_field(child, rest)
    return manifest if changed is child else {**manifest, key: changed}
