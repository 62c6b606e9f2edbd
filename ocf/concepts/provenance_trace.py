"""Provenance trace: finds out which step of a rendering set which field.

The object after each step is compared with the object before it; every difference is attributed to that step. This
works for all edits, including edits through `raw`, and takes no time unless provenance is requested. Entries of lists
are matched by their keys (`ocf.objects.list_alignment`): inserting an entry does not mark its neighbours as changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from ocf.concepts.provenance import FieldOrigin, Setting, Source
from ocf.objects import Manifest
from ocf.objects.list_alignment import aligned, entry_labels
from ocf.objects.paths import FieldPath, format_path
from ocf.objects.redaction import redacted

__all__ = ["ProvenanceTrace"]

_Place: TypeAlias = tuple[str, ...]
_History: TypeAlias = tuple[Setting, ...]


class _Node:
    """A part of the current object: a map, a list, or a field with its history."""

    __slots__ = ("children", "history", "value")

    def __init__(
        self, value: Any, children: dict[str, _Node] | list[_Node] | None = None, history: _History = ()
    ) -> None:
        self.value = value
        self.children = children
        self.history = history


class ProvenanceTrace:
    """Trace of one object.

    Example:
        >>> from ocf.concepts.provenance import Source, SourceKind
        >>> trace = ProvenanceTrace()
        >>> _ = trace.step({"spec": {"size": 1, "mode": "slow"}}, Source(SourceKind.BASE))
        >>> trace.step({"spec": {"size": 2, "mode": "slow"}}, Source(SourceKind.MUTATION, "large"))
        True
        >>> [(origin.path, origin.value, str(origin.source)) for origin in trace.fields]
        [('spec.size', 2, 'mutation large'), ('spec.mode', 'slow', 'base')]
    """

    def __init__(self) -> None:
        self._root = _Node({}, {})
        self._removed: dict[_Place, _History] = {}

    def step(self, manifest: Manifest, source: Source) -> bool:
        """Record the object after a step.

        Args:
            manifest: The object; its secrets are not stored.
            source: Source of the step.

        Returns:
            Whether the step changed the object.
        """
        shown = redacted(manifest)
        changed = not _same(self._root.value, shown)
        self._root = _Step(source, self._removed).updated(self._root, shown, ())
        return changed

    @property
    def fields(self) -> tuple[FieldOrigin, ...]:
        """The fields of the current object."""
        return tuple(_fields(self._root, ())) if self._root.value else ()

    @property
    def removed(self) -> tuple[FieldOrigin, ...]:
        """The fields that a step removed."""
        return tuple(FieldOrigin(_named(place), history) for place, history in self._removed.items())


class _Step:
    """One step: builds the new tree from the old one and records removed fields."""

    def __init__(self, source: Source, removed: dict[_Place, _History]) -> None:
        self._source = source
        self._removed = removed

    def updated(self, node: _Node, after: Any, place: _Place) -> _Node:
        if isinstance(node.children, dict) and after and isinstance(after, dict):
            return self._updated_map(node.children, after, place)
        if isinstance(node.children, list) and after and isinstance(after, list):
            return self._updated_list(node.value, node.children, after, place)
        if node.children is None and not _is_branch(after):
            if _same(node.value, after):
                return node
            return _Node(after, history=(*node.history, Setting(self._source, after)))
        # An empty map that receives entries is not removed.
        if node.value or type(node.value) is not type(after):
            self._remove(node, place)
        return self._new(after, place)

    def _updated_map(self, children: dict[str, _Node], after: dict[str, Any], place: _Place) -> _Node:
        for key, child in children.items():
            if key not in after:
                self._remove(child, (*place, f".{key}"))
        kept = {
            key: self.updated(children[key], value, (*place, f".{key}"))
            if key in children
            else self._new(value, (*place, f".{key}"))
            for key, value in after.items()
        }
        return _Node(after, kept)

    def _updated_list(self, before: list[Any], children: list[_Node], after: list[Any], place: _Place) -> _Node:
        olds = aligned(before, after)
        for position, label in enumerate(entry_labels(before)):
            if position not in olds:
                self._remove(children[position], (*place, f"[{label}]"))
        kept = [
            self._new(value, (*place, f"[{label}]"))
            if old is None
            else self.updated(children[old], value, (*place, f"[{label}]"))
            for old, value, label in zip(olds, after, entry_labels(after), strict=True)
        ]
        return _Node(after, kept)

    def _new(self, value: Any, place: _Place) -> _Node:
        if isinstance(value, dict) and value:
            return _Node(value, {key: self._new(item, (*place, f".{key}")) for key, item in value.items()})
        if isinstance(value, list) and value:
            labels = entry_labels(value)
            pairs = zip(value, labels, strict=True)
            return _Node(value, [self._new(item, (*place, f"[{label}]")) for item, label in pairs])
        return _Node(value, history=(*self._removed.pop(place, ()), Setting(self._source, value)))

    def _remove(self, node: _Node, place: _Place) -> None:
        if node.children is None:
            self._removed[place] = (*node.history, Setting(self._source, removed=True))
        elif isinstance(node.children, dict):
            for key, child in node.children.items():
                self._remove(child, (*place, f".{key}"))
        else:
            for child, label in zip(node.children, entry_labels(node.value), strict=True):
                self._remove(child, (*place, f"[{label}]"))


def _is_branch(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, where 1 is not true and the order of keys is ignored."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(_same(value, there) for value, there in zip(one, other, strict=True))
    return bool(one == other)


def _fields(node: _Node, path: FieldPath) -> Iterator[FieldOrigin]:
    if node.children is None:
        yield FieldOrigin(format_path(path), node.history)
    elif isinstance(node.children, dict):
        for key, child in node.children.items():
            yield from _fields(child, (*path, key))
    else:
        for position, child in enumerate(node.children):
            yield from _fields(child, (*path, position))


def _named(place: _Place) -> str:
    return "".join(place).removeprefix(".")
