"""Parameters of admission policies: the kind that a policy names, and the objects that a binding refers to."""

from collections.abc import Mapping
from typing import Any

from ocf.errors import ApiError
from ocf.objects import LabelSelector, Manifest, split_api_version
from ocf.schema.builtin import ApiResource
from ocf_server.registry.registry import Registry, kind_of

__all__ = ["ParamError", "collected_params", "param_resource"]


class ParamError(Exception):
    """Parameters cannot be found; the text is that of a real API server."""


def param_resource(registry: Registry, kind: Mapping[str, Any] | None) -> ApiResource | None:
    """Return the kind of a policy's parameters.

    Args:
        registry: The registry of the server.
        kind: The `paramKind` of the policy.

    Returns:
        The kind; None if the policy has no parameters.

    Raises:
        ParamError: If the kind is not served.
    """
    if kind is None:
        return None
    try:
        return registry.resource(kind["apiVersion"], kind["kind"])
    except ApiError:
        group, version = split_api_version(kind["apiVersion"])
        shown = f"{group}/{version}, Kind={kind['kind']}"
        raise ParamError(f"failed to find resource referenced by paramKind: '{shown}'") from None


def collected_params(
    registry: Registry, resource: ApiResource | None, reference: Mapping[str, Any] | None, namespace: str
) -> list[Manifest | None]:
    """Return the parameters with which a policy is evaluated for a request.

    Args:
        registry: The registry of the server.
        resource: The kind of the parameters; None if the policy has none.
        reference: The `paramRef` of the binding.
        namespace: Namespace of the request; empty if it is cluster-scoped.

    Returns:
        The objects; None for an evaluation without parameters. The policy is evaluated once for each of them.

    Raises:
        ParamError: If the reference cannot be resolved, or no object is found and the binding demands one.
    """
    if resource is None or reference is None:
        return [None]
    found = _found(registry, resource, reference, _param_namespace(resource, reference, namespace))
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ParamError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [*found]


def _param_namespace(resource: ApiResource, reference: Mapping[str, Any], namespace: str) -> str:
    wanted = str(reference.get("namespace") or "")
    if not resource.namespaced:
        if wanted:
            raise ParamError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not wanted and not namespace:
        raise ParamError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return wanted or namespace


def _found(registry: Registry, resource: ApiResource, reference: Mapping[str, Any], namespace: str) -> list[Manifest]:
    if reference.get("name"):
        one = registry.read(resource, (namespace, reference["name"]))
        return [] if one is None else [one]
    selector = LabelSelector.of(reference.get("selector") or {})
    stored = registry.store.objects(kind_of(resource), namespace)
    shown = (registry.shown(manifest, resource) for _, manifest in stored)
    return [manifest for manifest in shown if selector.matches(manifest["metadata"].get("labels") or {})]
