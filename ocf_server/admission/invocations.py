"""Admission policies that apply to a write, with their bindings and parameters.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; the error texts are those
of a real API server.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.admission.matching import matched_resource, request_namespace
from ocf_server.admission.params import ParamError, collected_params, param_resource
from ocf_server.registry.pending_write import Review
from ocf_server.registry.registry import Registry

__all__ = ["ConfigError", "Invocation", "fails_closed", "invocations", "review_namespace"]

_ADMISSION: Final = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Invocation:
    """An evaluation of a policy.

    Args:
        policy: The policy.
        binding: Name of the binding.
        actions: The validation actions of the binding.
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
class ConfigError:
    """A policy or a binding that cannot be evaluated.

    Args:
        policy: The policy.
        binding: Name of the binding; empty if the policy is at fault.
        text: The error text.
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


def invocations(registry: Registry, kind: str, review: Review) -> Iterator[Invocation | ConfigError]:
    """Yield the evaluations of all bound policies that match a write, in the order of their names.

    Args:
        registry: The registry with the policies, their bindings and parameters.
        kind: The kind of the policies; that of their bindings ends with `Binding`.
        review: The write.
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
) -> Iterator[Invocation | ConfigError]:
    spec = policy["spec"]
    resource = matched_resource(registry, spec.get("matchConstraints") or {}, review)
    if resource is None:
        return
    try:
        param_kind = param_resource(registry, spec.get("paramKind"))
    except ParamError as error:
        yield ConfigError(policy, "", f"failed to configure policy: {error}")
        return
    for binding in bindings:
        used = binding["spec"]
        if matched_resource(registry, used.get("matchResources") or {}, review) is None:
            continue
        name = str(binding["metadata"]["name"])
        try:
            params = collected_params(registry, param_kind, used.get("paramRef"), request_namespace(review))
        except ParamError as error:
            yield ConfigError(policy, name, f"failed to configure binding: {error}")
            continue
        for param in params:
            yield Invocation(policy, name, tuple(used.get("validationActions") or ()), resource, param)
