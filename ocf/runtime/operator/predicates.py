"""Predicates: which changes of an object need a reconcile, by what it was and what it is now.

A predicate sees modifications only. An object that is made or deleted, that begins to be deleted, or whose finalizers
or owner references change always needs one: a deletion that no reconcile sees is held for ever.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.cluster.cache.serialization import unpack
from ocf.cluster.protocol import EventType
from ocf.errors import BuildError, ConfigError
from ocf.objects import Manifest
from ocf.objects.paths import get_field, parse_path
from ocf.runtime.running_function import name_of

if TYPE_CHECKING:
    from ocf.cluster.cache.subscriptions import CacheChange

__all__ = [
    "Predicate",
    "annotations_changed",
    "any_of",
    "field_changed",
    "is_urgent",
    "labels_changed",
    "needs_reconcile",
    "spec_changed",
]

Predicate: TypeAlias = Callable[[Manifest, Manifest], bool]
"""Returns whether a change of an object from the first state to the second one needs a reconcile."""

# What each write changes, and the generation, which follows from the rest.
_BOOKKEEPING: Final = frozenset({"generation", "managedFields", "resourceVersion"})
_NOT_SPEC: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_LIFECYCLE: Final = ("deletionTimestamp", "finalizers", "ownerReferences")


def spec_changed(old: Manifest, new: Manifest) -> bool:
    """Return whether anything but metadata and status has changed: a spec, the data of a Secret, the rules of a role.

    The generation is not compared: a ConfigMap has none, and where a definition has no status subresource, a change of
    the status increments it.

    Args:
        old: The object before the change.
        new: The object after it.

    Example:
        >>> old = {"metadata": {"resourceVersion": "1"}, "data": {"a": "1"}}
        >>> spec_changed(old, {"metadata": {"resourceVersion": "2"}, "data": {"a": "2"}})
        True
        >>> spec_changed(old, {**old, "metadata": {"resourceVersion": "2", "labels": {"a": "b"}}})
        False
    """
    return _without(old, _NOT_SPEC) != _without(new, _NOT_SPEC)


def labels_changed(old: Manifest, new: Manifest) -> bool:
    """Return whether the labels have changed.

    Args:
        old: The object before the change.
        new: The object after it.
    """
    return bool(_metadata(old, "labels") != _metadata(new, "labels"))


def annotations_changed(old: Manifest, new: Manifest) -> bool:
    """Return whether the annotations have changed.

    Args:
        old: The object before the change.
        new: The object after it.
    """
    return bool(_metadata(old, "annotations") != _metadata(new, "annotations"))


def field_changed(*fields: str) -> Predicate:
    """Return a predicate: whether a field has changed, appeared or gone.

    Args:
        fields: Keys joined by dots, such as `status.readyReplicas`; one of several suffices.

    Raises:
        ConfigError: If one is not a field path.
        BuildError: If there is none.

    Example:
        >>> ready = field_changed("status.readyReplicas")
        >>> ready({"status": {"readyReplicas": 1}}, {"status": {"readyReplicas": 1, "replicas": 2}})
        False
    """
    if not fields:
        raise BuildError(['field_changed needs a field, such as "status.readyReplicas"'])
    paths = [parse_path(field) for field in fields]
    return lambda old, new: any(get_field(old, path) != get_field(new, path) for path in paths)


def any_of(*predicates: Predicate) -> Predicate:
    """Return a predicate: whether one of several says that a change needs a reconcile.

    Args:
        predicates: The predicates.

    Raises:
        BuildError: If there is none.
    """
    if not predicates:
        raise BuildError(["any_of needs a predicate, such as spec_changed"])
    return lambda old, new: any(_answer(predicate, old, new) for predicate in predicates)


def needs_reconcile(predicate: Predicate, old: Manifest, new: Manifest) -> bool:
    """Return whether a modification needs a reconcile; a change of the object's lifecycle always does.

    Raises:
        ConfigError: If the predicate returns anything but True or False.
    """
    if any(_metadata(old, name) != _metadata(new, name) for name in _LIFECYCLE):
        return True
    return _answer(predicate, old, new)


def _answer(predicate: Predicate, old: Manifest, new: Manifest) -> bool:
    # A function without a `return` would keep every change away, and nothing would show it.
    answer: object = predicate(old, new)
    if inspect.iscoroutine(answer):
        answer.close()
    if not isinstance(answer, bool):
        raise ConfigError(f"{name_of(predicate)} must return True or False, got {type(answer).__name__}")
    return answer


def is_urgent(change: CacheChange) -> bool:
    """Return whether more than the status of an object has changed."""
    if change.type is not EventType.MODIFIED or change.old is None:
        return True
    return _without_status(unpack(change.old)) != _without_status(unpack(change.entry))


def _without_status(live: Manifest) -> Manifest:
    return {**_without(live, {"status"}), "metadata": _without(live["metadata"], _BOOKKEEPING)}


def _without(value: Manifest, names: frozenset[str] | set[str]) -> Manifest:
    return {name: one for name, one in value.items() if name not in names}


def _metadata(live: Manifest, name: str) -> Any:
    return (live.get("metadata") or {}).get(name) or None
