"""Pruning of fields that the schema of a custom resource does not declare.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
and `pruning` and `objectmeta` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.schema.builtin import struct
from ocf_server.api.status_errors import go_value
from ocf_server.apiextensions.embedded_objects import decoded_metadata
from ocf_server.codec.decoding import DecodeError, unknown_fields

__all__ = ["prune", "undeclared"]

_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})
_KEEP: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


class _Key(str):
    """Key of a map, in contrast to the name of a field."""

    __slots__ = ()


_Place: TypeAlias = "tuple[_Place, str | int] | None"
"""Place of a value: that of the value around it, and the name, key or index in it."""


@dataclass(slots=True)
class _Dropped:
    """Places that were dropped.

    Args:
        paths: Those that pruning drops.
        in_metadata: Those in the metadata of embedded objects, which the API server decodes after it has pruned.
        faults: Why embedded objects cannot be decoded.
    """

    paths: list[_Place] = field(default_factory=list)
    in_metadata: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def prune(manifest: Manifest, schema: Mapping[str, Any], *, sent: bool = False) -> Manifest:
    """Return a custom resource without its undeclared fields.

    Args:
        manifest: The object; it is not changed.
        sent: Whether a client sent it. An embedded object that cannot be decoded is an error then; in etcd it may be.

    Returns:
        The object without undeclared fields; it shares parts with the given one.

    Raises:
        DecodeError: If a client sent an embedded object whose metadata cannot be decoded.

    Example:
        >>> schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
        >>> prune({"kind": "Web", "spec": {"colour": "red"}, "extra": 1}, schema)
        {'kind': 'Web', 'spec': {}}
    """
    found = _Dropped()
    kept: Manifest = _pruned_fields(manifest, schema, None, found, root=True)
    if sent and found.faults:
        raise DecodeError(found.faults[0])
    return kept


def undeclared(manifest: Manifest, schema: Mapping[str, Any]) -> list[str]:
    """Return the paths that `prune` drops: sorted, and those in the metadata of embedded objects last."""
    found = _Dropped()
    _pruned_fields(manifest, schema, None, found, root=True)
    return [*sorted(_text(place) for place in found.paths), *sorted(found.in_metadata)]


def _text(place: _Place, *, keyed: bool = False) -> str:
    """Return the path of a place; with `keyed`, the keys of maps are in brackets."""
    if place is None:
        return ""
    before, step = _text(place[0], keyed=keyed), place[1]
    if isinstance(step, int) or (keyed and isinstance(step, _Key)):
        return f"{before}[{step}]"
    return f"{before}.{step}" if before else step


def _pruned(
    value: Any, schema: Mapping[str, Any] | None, place: _Place, dropped: _Dropped, *, keep: bool = False
) -> Any:
    """Return a value without undeclared fields.

    Args:
        schema: Its schema; None for a value of which nothing is declared: its fields are dropped.
        keep: Whether undeclared fields are kept, because the schema of a list above says so.
    """
    if isinstance(value, dict):
        return _pruned_fields(value, schema or {}, place, dropped, keep=keep)
    if not isinstance(value, list):
        return value
    items = None if schema is None else schema.get("items")
    items = items if isinstance(items, dict) else None
    keep = keep or bool(schema and schema.get(_KEEP))
    if keep and items is None:
        return value
    return [_pruned(item, items, (place, index), dropped, keep=keep) for index, item in enumerate(value)]


def _pruned_fields(
    value: dict[str, Any],
    schema: Mapping[str, Any],
    place: _Place,
    dropped: _Dropped,
    *,
    root: bool = False,
    keep: bool = False,
) -> dict[str, Any]:
    embedded = schema.get(_EMBEDDED)
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    keep = keep or bool(schema.get(_KEEP))
    out: dict[str, Any] = {}
    for name, item in value.items():
        if (root or embedded) and name in _HEAD:
            # The head of the object itself has been decoded.
            out[name] = _decoded_head(name, item, (place, name), dropped) if embedded and not root else item
        elif (below := known.get(name)) is not None:
            out[name] = _pruned(item, below, (place, name), dropped) if isinstance(item, dict | list) else item
        elif extra is not None:
            # `true` declares the key, and nothing of what it contains.
            out[name] = _pruned(item, extra if isinstance(extra, dict) else None, (place, _Key(name)), dropped)
        elif keep:
            out[name] = item
        else:
            dropped.paths.append((place, name))
    return out


def _decoded_head(name: str, value: Any, place: _Place, dropped: _Dropped) -> Any:
    """Return the version, the kind or the metadata of an embedded object as they are decoded."""
    if name != "metadata":
        if not isinstance(value, str):
            dropped.faults.append(f"{_text(place, keyed=True)}: Invalid value: {go_value(value)}: must be a string")
        return value
    path = _text(place, keyed=True)
    try:
        kept = decoded_metadata(value)
    except DecodeError as error:
        dropped.faults.append(f"{path}: Invalid value: {go_value(value)}: {error}")
        return value
    sent = value or {}
    dropped.in_metadata.extend(unknown_fields(sent, struct("meta.v1.ObjectMeta"), path))
    return {name: item for name, item in kept.items() if name in sent}
