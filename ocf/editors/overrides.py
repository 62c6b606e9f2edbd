"""What a user of an operator overrides in an object, merged as the API server merges patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.manifest import ObjectKey, split_api_version
from ocf.objects.models import write_parts

__all__ = ["strategic_merge"]


def strategic_merge(manifest: Manifest, patch: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a built-in kind with a strategic merge patch, as `kubectl patch` applies it.

    Maps are merged field by field, and lists that have a merge key, such as containers by name, item by item. Any other
    list replaces the one of the manifest; None removes a field, and the directives `$patch: delete`, `$patch: replace`,
    `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder` have the meaning that they have for the API server.

    Args:
        manifest: The object, with apiVersion and kind; parts of it may be models. It is not changed.
        patch: What is changed, from the top of the object on; parts of it may be models. It is not changed.

    Returns:
        The manifest, which shares nothing with either.

    Raises:
        ConfigError: If the kind is not one of Kubernetes, whose lists have merge keys, or the patch cannot be applied;
            the message names the field, and shows none of its values.

    See https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/.

    Example:
        >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
        ...     {"name": "app", "image": "app:1"}, {"name": "proxy", "image": "proxy:1"}]}}
        >>> strategic_merge(pod, {"spec": {"containers": [{"name": "app", "image": "app:2"}]}})["spec"]["containers"]
        [{'name': 'app', 'image': 'app:2'}, {'name': 'proxy', 'image': 'proxy:1'}]
    """
    from ocf.schema.builtin import builtin_resource
    from ocf.schema.strategic_merge import PatchError, strategic_patch

    document = write_parts(manifest)
    key = ObjectKey.of(document)
    resource = builtin_resource(*split_api_version(key.api_version), key.kind)
    if resource is None:
        raise ConfigError(
            f"{key}: {key.kind} of {key.api_version} is not a kind of Kubernetes, so its lists have no merge keys: "
            "change it with an editor, or by its fields"
        )
    try:
        merged: Manifest = strategic_patch(document, write_parts(patch), resource.type)
    except PatchError as error:
        place = ".".join(error.path) or "the object"
        text = str(error) % tuple(map(_shape, error.values)) if error.values else str(error)
        raise ConfigError(f"{key}: a patch cannot be merged into {place}: {text}") from None
    return merged


def _shape(value: object) -> str:
    """Return what a message shows of a value that may be confidential."""
    if isinstance(value, dict):
        return f"{{{', '.join(map(str, value))}}}"
    return f"[{len(value)} items]" if isinstance(value, list) else f"({type(value).__name__})"
