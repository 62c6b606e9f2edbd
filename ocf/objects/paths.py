"""Field paths: how a place inside an object is written, read and changed.

A path is a tuple of keys and list positions. Changing a field never touches the object it is given: the dicts along
the path are copied, everything beside it is shared.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from ocf.errors import ConfigError
from ocf.objects.manifest import Manifest

__all__ = ["FieldPath", "format_path", "get_field", "parse_path", "with_field", "without_field"]

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys (text) and list positions (from 0), from the object inwards."""


def format_path(path: Sequence[str | int]) -> str:
    """Write a path as users read it.

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
    """Read a path of keys.

    Args:
        text: Keys joined by dots, `spec.replicas`; list positions are not part of this form.

    Returns:
        The keys.

    Raises:
        ConfigError: If a key is empty or contains a bracket.

    Example:
        >>> parse_path("spec.replicas")
        ('spec', 'replicas')
    """
    keys = tuple(text.split("."))
    if not all(keys) or any(mark in text for mark in "[]"):
        raise ConfigError(f'"{text}" is no field path: write keys joined by dots, for example "spec.replicas"')
    return keys


def get_field(value: Any, path: Sequence[str | int], default: Any = None) -> Any:
    """Read the value at a path.

    Args:
        value: A manifest or any part of one.
        path: Keys and list positions.
        default: Returned where the path leads nowhere.

    Returns:
        The value itself, not a copy.

    Example:
        >>> get_field({"spec": {"replicas": 3}}, ("spec", "replicas"))
        3
    """
    for part in path:
        if not isinstance(value, dict | list):
            return default
        try:
            value = value[part]  # type: ignore[index]  # a key that does not fit a list is a TypeError, caught here
        except (KeyError, IndexError, TypeError):
            return default
    return value


def with_field(manifest: Manifest, path: Sequence[str], value: Any) -> Manifest:
    """Return the object with one field set; missing parents are made.

    Args:
        manifest: The object; left as it is.
        path: Keys, at least one.
        value: The new value.

    Returns:
        A manifest that shares everything beside the path.

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
    """Return the object without one field; its parents stay, even empty.

    Args:
        manifest: The object; left as it is.
        path: Keys, at least one.

    Returns:
        A manifest that shares everything beside the path; the same object where the field is absent.

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
