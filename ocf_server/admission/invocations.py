"""Admission policies that apply to a write, with their bindings and parameters.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; the error texts are those
of a real API server.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.objects.selectors import LabelSelector
from ocf.schema.builtin import ApiResource
from ocf_server.admission.matching import matched_resource, request_namespace
from ocf_server.registry.pending_write import Review
from ocf_server.registry.registry import Registry, kind_of

__all__ = [
    "Invocation",
    "Misconfiguration",
    "fails_closed",
    "invocations",
    "review_namespace",
]


class _ParamError(Exception):
    """Parameters cannot be found; the text is that of a real API server."""


def _param_resource(registry: Registry, kind: Mapping[str, Any] | None) -> ApiResource | None:
    """Return the kind of a policy's parameters.

    Args:
        kind: The `paramKind` of the policy.

    Returns:
        The kind; None if the policy has no parameters.

    Raises:
        _ParamError: If the kind is not served.
    """
    if kind is None:
        return None
    try:
        return registry.resource(kind["apiVersion"], kind["kind"])
    except ApiError:
        group, version = split_api_version(kind["apiVersion"])
        shown = f"{group}/{version}, Kind={kind['kind']}"
        raise _ParamError(f"failed to find resource referenced by paramKind: '{shown}'") from None


def _collected_params(
    registry: Registry, resource: ApiResource | None, reference: Mapping[str, Any] | None, namespace: str
) -> list[Manifest | None]:
    """Return the parameters with which a policy is evaluated for a request.

    Args:
        resource: The kind of the parameters; None if the policy has none.
        reference: The `paramRef` of the binding.
        namespace: Namespace of the request; empty if it is cluster-scoped.

    Returns:
        The objects; None for an evaluation without parameters. The policy is evaluated once for each of them.

    Raises:
        _ParamError: If the reference cannot be resolved, or no object is found and the binding demands one.
    """
    if resource is None or reference is None:
        return [None]
    found = _found(registry, resource, reference, _param_namespace(resource, reference, namespace))
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise _ParamError("no params found for policy binding with `Deny` parameterNotFoundAction")
    # No parameter is found and none demanded: the policy is not evaluated at all.
    return [*found]


def _param_namespace(resource: ApiResource, reference: Mapping[str, Any], namespace: str) -> str:
    wanted = str(reference.get("namespace") or "")
    if not resource.namespaced:
        if wanted:
            raise _ParamError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not wanted and not namespace:
        raise _ParamError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return wanted or namespace


def _found(registry: Registry, resource: ApiResource, reference: Mapping[str, Any], namespace: str) -> list[Manifest]:
    if reference.get("name"):
        one = registry.read(resource, (namespace, reference["name"]))
        return [] if one is None else [one]
    selector = LabelSelector.of(reference.get("selector") or {})
    stored = registry.store.objects(kind_of(resource), namespace)
    shown = (registry.shown(manifest, resource) for _, manifest in stored)
    return [manifest for manifest in shown if selector.matches(manifest["metadata"].get("labels") or {})]


_ADMISSION: Final = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Invocation:
    """An evaluation of a policy.

    Args:
        resource: The kind in the API version that the policy matches; objects are converted to it.
        param: The parameter; None without one.
    """

    policy: Manifest
    binding: str
    actions: tuple[str, ...]
    resource: ApiResource
    param: Manifest | None

    @property
    def name(self) -> str:
        """The name of the policy."""
        return str(self.policy["metadata"]["name"])

    @property
    def is_reinvoked(self) -> bool:
        """Whether a mutating policy is run again if the object may have changed since."""
        return str(self.policy["spec"].get("reinvocationPolicy")) == "IfNeeded"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The names of policy, binding and parameter."""
        metadata: Mapping[str, Any] = (self.param or {}).get("metadata") or {}
        return self.name, self.binding, str(metadata.get("namespace")), str(metadata.get("name"))


@dataclass(frozen=True, slots=True)
class Misconfiguration:
    """A policy or a binding that cannot be evaluated.

    Args:
        binding: Name of the binding; empty if the policy is at fault.
    """

    policy: Manifest
    binding: str
    text: str


def fails_closed(policy: Manifest) -> bool:
    """Return whether a policy that cannot be evaluated denies the request."""
    return str(policy["spec"].get("failurePolicy")) != "Ignore"


def review_namespace(registry: Registry, review: Review) -> Manifest | None:
    """Return the namespace of a write; None if its kind is cluster-scoped."""
    return registry.store.get(("", "Namespace"), ("", review.namespace)) if review.resource.namespaced else None


def invocations(registry: Registry, kind: str, review: Review) -> Iterator[Invocation | Misconfiguration]:
    """Yield the evaluations of all bound policies that match a write, in the order of their names.

    Args:
        registry: The registry with the policies, their bindings and parameters.
        kind: The kind of the policies; that of their bindings ends with `Binding`.
    """
    if review.resource.group == _ADMISSION and "AdmissionPolicy" in review.resource.kind:
        # Otherwise a broken policy could prevent its own change. Webhook configurations are not exempt.
        return
    bindings = [binding for _, binding in registry.store.objects((_ADMISSION, f"{kind}Binding"))]
    for (_, name), policy in registry.store.objects((_ADMISSION, kind)):
        bound = [binding for binding in bindings if binding["spec"]["policyName"] == name]
        if bound:
            yield from _bound(registry, policy, bound, review)


def _bound(
    registry: Registry, policy: Manifest, bindings: list[Manifest], review: Review
) -> Iterator[Invocation | Misconfiguration]:
    spec = policy["spec"]
    resource = matched_resource(registry, spec.get("matchConstraints") or {}, review)
    if resource is None:
        return
    try:
        param_kind = _param_resource(registry, spec.get("paramKind"))
    except _ParamError as error:
        yield Misconfiguration(policy, "", f"failed to configure policy: {error}")
        return
    for binding in bindings:
        used = binding["spec"]
        if matched_resource(registry, used.get("matchResources") or {}, review) is None:
            continue
        name = str(binding["metadata"]["name"])
        try:
            params = _collected_params(registry, param_kind, used.get("paramRef"), request_namespace(review))
        except _ParamError as error:
            yield Misconfiguration(policy, name, f"failed to configure binding: {error}")
            continue
        for param in params:
            yield Invocation(policy, name, tuple(used.get("validationActions") or ()), resource, param)
