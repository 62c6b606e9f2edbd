"""Validation of updates of custom resources: invalid values that do not change are allowed (validation ratcheting).

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting
and the code of the API server (`CorrelatedObject` in `k8s.io/apiserver/pkg/cel/common`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ocf.errors import FieldProblem
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import MISSING
from ocf_server.apiextensions.embedded_objects import embedded_problems
from ocf_server.apiextensions.object_validation import duplicate_faults, value_faults

__all__ = ["custom_update_problems"]


class _Pair(NamedTuple):
    """A value, the value that it replaces, and their schema."""

    before: Any
    after: Any
    schema: Mapping[str, Any]


def custom_update_problems(
    manifest: Mapping[str, Any], live: Mapping[str, Any], schema: Mapping[str, Any], subresource: str | None
) -> list[FieldProblem]:
    """Validate an update of a custom resource.

    A violation is ignored if a value that contains it equals its previous value. Items have a previous value only in
    lists of the type `map`. Duplicate items are ignored if the live object has any.

    Args:
        subresource: Subresource of the request; for the status, only the status is validated.

    Returns:
        The violations; empty if the update is valid.

    Example:
        >>> schema = {"properties": {"size": {"minimum": 1}, "colour": {}}}
        >>> custom_update_problems({"size": 0, "colour": "red"}, {"size": 0}, schema, None)
        []
    """
    whole = _Pair(live, manifest, schema)
    if subresource == "status":
        below = _properties(schema).get("status")
        faults = []
        if below is not None and "status" in manifest:
            before = live.get("status", MISSING)
            faults = value_faults(manifest["status"], below, path="status", name="", before=before)
        steps: tuple[str | int, ...] = ("status",)
    else:
        faults, steps = value_faults(manifest, schema, before=live), ()
    # Duplicate items in a field that did not change are in the live object, too, which then allows all of them.
    duplicates = duplicate_faults(manifest, schema, before=live)
    if duplicates and duplicate_faults(live, schema):
        duplicates = []
    remaining = [fault for fault in faults if not _is_unchanged(whole, (*steps, *fault.place))]
    problems = (fault.problem for fault in remaining)
    # Embedded objects are validated even if they do not change.
    return [*problems, *embedded_problems(manifest, schema), *(fault.problem for fault in duplicates)]


def _is_unchanged(pair: _Pair, place: tuple[str | int, ...]) -> bool:
    """Return whether a value on the way to a place, or at it, equals its previous value."""
    return any(equal_json(each.before, each.after) for each in _pairs(pair, place))


def _pairs(pair: _Pair, place: tuple[str | int, ...]) -> Iterator[_Pair]:
    """Yield the values on the way to a place that have a previous value."""
    yield pair
    for step in place:
        below = _property(pair, step) if isinstance(step, str) else _item(pair, step)
        if below is None:
            return
        pair = below
        yield pair


def _property(pair: _Pair, name: str) -> _Pair | None:
    if not isinstance(pair.before, dict) or name not in pair.before or name not in pair.after:
        return None
    schema = _properties(pair.schema).get(name, pair.schema.get("additionalProperties"))
    return _Pair(pair.before[name], pair.after[name], schema) if isinstance(schema, dict) else None


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema.get("properties") or {}


def _item(pair: _Pair, index: int) -> _Pair | None:
    names = pair.schema.get("x-kubernetes-list-map-keys")
    if pair.schema.get("x-kubernetes-list-type") != "map" or not names or not isinstance(pair.before, list):
        return None
    after = pair.after[index]
    wanted = _keys(after, names)
    matching = (item for item in pair.before if wanted is not None and equal_json(_keys(item, names), wanted))
    before = next(matching, None)
    return None if before is None else _Pair(before, after, pair.schema["items"])


def _keys(item: Any, names: Sequence[str]) -> list[Any] | None:
    """Return the keys of an item; None if it lacks one."""
    complete = isinstance(item, dict) and all(name in item for name in names)
    return [item[name] for name in names] if complete else None
