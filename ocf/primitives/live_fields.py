"""Fields of live objects, for status handlers that take a manifest or a model of the client.

Resources give most default handlers the manifest: a model of the whole object would be built only for the few fields
that they read. An author's function may call the same handlers with the model.
"""

from __future__ import annotations

from typing import Any

from ocf.errors import FieldProblem, ManifestError
from ocf.objects import format_path

__all__ = ["live_count", "live_field"]


def live_field(value: Any, *path: str) -> Any:
    """Return a field of a live object, whether its model declares it or keeps it as an unknown one.

    Args:
        value: A manifest, a model, or a part of one.
        path: Names of the fields in API spelling.

    Returns:
        The value; None if it does not exist.

    Example:
        >>> from kubernetes.client import V1Service
        >>> live_field(V1Service(api_version="v1"), "apiVersion")
        'v1'
        >>> live_field({"spec": {"type": "LoadBalancer"}}, "spec", "type")
        'LoadBalancer'
    """
    for name in path:
        value = value.get(name) if isinstance(value, dict) else _field(value, name)
    return value


def live_count(value: Any, *path: str, unset: int = 0) -> int:
    """Return a field of a live object that holds a count.

    Args:
        value: A manifest, a model, or a part of one.
        path: Names of the fields in API spelling.
        unset: Returned if the field does not exist.

    Raises:
        ManifestError: If the field holds anything but a whole number.

    Example:
        >>> live_count({"status": {"readyReplicas": 3}}, "status", "readyReplicas")
        3
    """
    found = live_field(value, *path)
    if found is None:
        return unset
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    problem = f"must be a whole number, not of type {type(found).__name__}"
    raise ManifestError("live object", [FieldProblem(format_path(path), problem)])


def _field(value: Any, name: str) -> Any:
    """Return a field of a model; None for a value that has no fields."""
    for attribute, info in getattr(type(value), "model_fields", {}).items():
        if (info.serialization_alias or attribute) == name:
            return getattr(value, attribute)
    return (getattr(value, "model_extra", None) or {}).get(name)
