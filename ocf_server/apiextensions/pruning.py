"""Pruning of fields that the schema of a custom resource does not declare.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning.
"""

from collections.abc import Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.schema.builtin import struct
from ocf_server.codec.decoding import DecodeError, decode

__all__ = ["prune", "undeclared"]

_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(manifest: Manifest, schema: Mapping[str, Any]) -> Manifest:
    """Return a custom resource without its undeclared fields.

    Args:
        manifest: The object; it is not changed.

    Returns:
        The object without undeclared fields; it shares parts with the given one.

    Example:
        >>> schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
        >>> prune({"kind": "Web", "spec": {"colour": "red"}, "extra": 1}, schema)
        {'kind': 'Web', 'spec': {}}
    """
    kept: Manifest = _prune(manifest, schema, "", [], root=True)
    return kept


def undeclared(manifest: Manifest, schema: Mapping[str, Any]) -> list[str]:
    """Return the paths that `prune` drops, sorted."""
    found: list[str] = []
    _prune(manifest, schema, "", found, root=True)
    return sorted(found)


def _prune(value: Any, schema: Mapping[str, Any], path: str, dropped: list[str], *, root: bool = False) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return value
        return [_prune(item, items, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        name: kept
        for name, kept in (
            (name, _field(name, item, schema, f"{path}.{name}" if path else name, dropped, root=root))
            for name, item in value.items()
        )
        if kept is not _DROPPED
    }


_DROPPED: Final = object()


def _field(
    name: str,
    value: Any,
    schema: Mapping[str, Any],
    path: str,
    dropped: list[str],
    *,
    root: bool,
) -> Any:
    embedded = schema.get("x-kubernetes-embedded-resource")
    if name in _HEAD and (root or embedded):
        # The metadata of the object itself are a Go type, and have been decoded.
        return _metadata(value, path, dropped) if embedded and name == "metadata" else value
    known = (schema.get("properties") or {}).get(name)
    if known is not None:
        return _prune(value, known, path, dropped)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return _prune(value, extra, path, dropped)
    if extra or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    dropped.append(path)
    return _DROPPED


def _metadata(value: Any, path: str, dropped: list[str]) -> Any:
    """Prune the metadata of an embedded object."""
    if not isinstance(value, dict):
        return value
    kind = struct("meta.v1.ObjectMeta")
    dropped.extend(f"{path}.{name}" for name in value if name not in kind.fields)
    try:
        kept = decode(value, kind)
    except DecodeError:
        # Its validation reports the wrong type.
        return value
    return {name: item for name, item in kept.items() if name in value}
