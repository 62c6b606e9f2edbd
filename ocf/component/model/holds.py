"""The finalizer of objects that the clean-up of an owner needs, and the record of them in the owner."""

from __future__ import annotations

import json

from ocf.component.model.ownership import finalizers_of
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import PREFIX
from ocf.objects.paths import get_field

__all__ = ["hold_finalizer", "record_annotation", "recorded", "with_hold"]


def hold_finalizer(operator: str) -> str:
    """Return the finalizer of an object that the clean-up of its owner needs.

    Example:
        >>> hold_finalizer("shops")
        'shops.ocf.dev/held-for-cleanup'
    """
    return f"{operator}.{PREFIX}/held-for-cleanup"


def record_annotation(operator: str) -> str:
    """Return the annotation of an owner that names the objects which are held for it.

    Example:
        >>> record_annotation("shops")
        'shops.ocf.dev/held-objects'
    """
    return f"{operator}.{PREFIX}/held-objects"


def recorded(owner: Manifest, operator: str) -> frozenset[ObjectKey]:
    """Return the objects that are held for an owner; none if a user has made the record unreadable.

    Example:
        >>> value = '[["v1", "Secret", "login", "town"]]'
        >>> owner = {"metadata": {"name": "corner", "annotations": {"shops.ocf.dev/held-objects": value}}}
        >>> [str(key) for key in recorded(owner, "shops")]
        ['v1/Secret/town/login']
    """
    text = get_field(owner, ("metadata", "annotations", record_annotation(operator)))
    if text is None:
        return frozenset()
    try:
        return frozenset(ObjectKey(*map(str, each)) for each in json.loads(text))
    except (TypeError, ValueError):
        return frozenset()


def with_hold(manifest: Manifest, operator: str) -> Manifest:
    """Return an object with the finalizer that holds it."""
    others = [name for name in finalizers_of(manifest) if name != hold_finalizer(operator)]
    return {**manifest, "metadata": {**manifest["metadata"], "finalizers": [*others, hold_finalizer(operator)]}}
