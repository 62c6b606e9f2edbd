"""Recommended labels of the objects of a component, which follow from its owner.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from ocf.objects import ObjectKey
from ocf.objects.manifest import split_api_version

__all__ = ["recommended_labels", "selector_labels"]

_NAME: Final = "app.kubernetes.io/name"
_INSTANCE: Final = "app.kubernetes.io/instance"
_COMPONENT: Final = "app.kubernetes.io/component"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
# The pods of two components of an owner, and those of two owners, must differ. Nothing that changes is in a selector,
# because that of a workload is immutable.
_SELECTING: Final = (_NAME, _INSTANCE, _COMPONENT)
_LONGEST_VALUE: Final = 63
_DIGEST: Final = 8


def recommended_labels(owner: ObjectKey, component: str) -> dict[str, str]:
    """Return the labels of the objects of a component.

    Example:
        >>> recommended_labels(ObjectKey("example.com/v1", "Shop", "corner", "town"), "web")["app.kubernetes.io/name"]
        'shop'
    """
    group, _ = split_api_version(owner.api_version)
    labels = {
        _NAME: owner.kind.lower(),
        _INSTANCE: _label_value(owner.name),
        _COMPONENT: component,
        # The group is known wherever a component is rendered, unlike the name of the process.
        _MANAGED_BY: _label_value(group),
    }
    return {key: value for key, value in labels.items() if value}


def selector_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return those of the labels of a component that select its pods."""
    return {key: labels[key] for key in _SELECTING if key in labels}


def _label_value(name: str) -> str:
    """Return a name of up to 253 characters as the value of a label, which has at most 63, without a collision."""
    if len(name) <= _LONGEST_VALUE:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST_VALUE - _DIGEST - 1]}-{digest}"
