"""Matching of requests with admission webhooks and admission policies.

The webhook configurations and the labels of namespaces are read from the store; no I/O is done. Source:
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector
from ocf.schema.builtin import ApiResource
from ocf_server.registry.pending_write import Phase, Review, WriteOperation
from ocf_server.registry.registry import Registry

__all__ = ["WebhookCall", "matched_resource", "matching_call", "request_namespace", "webhooks"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_KINDS: Final = {
    Phase.MUTATING: "MutatingWebhookConfiguration",
    Phase.VALIDATING: "ValidatingWebhookConfiguration",
}


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One webhook to call for a request.

    Args:
        resource: The kind in the API version that the webhook's rule matched; objects are converted to it.
    """

    webhook: Mapping[str, Any]
    resource: ApiResource

    @property
    def name(self) -> str:
        """The webhook's name."""
        return str(self.webhook.get("name") or "")

    @property
    def seconds(self) -> float:
        """Timeout of the call."""
        return float(self.webhook.get("timeoutSeconds") or 10)

    @property
    def ignores_failure(self) -> bool:
        """Whether a request proceeds if the webhook cannot be called."""
        return self.webhook.get("failurePolicy") == "Ignore"

    @property
    def is_reinvoked(self) -> bool:
        """Whether it is called again if a later webhook changes the object."""
        return self.webhook.get("reinvocationPolicy") == "IfNeeded"


def webhooks(registry: Registry, review: Review) -> list[Mapping[str, Any]]:
    """Return the webhooks that may have to be called for a write, in the order of the calls.

    Args:
        registry: The registry with the configurations.

    Returns:
        Their entries: configurations in the order of their names, the webhooks of each in their own order.
    """
    if review.resource.group == _ADMISSION:
        # Otherwise a broken webhook could prevent the change of its own configuration.
        return []
    configurations = registry.store.objects((_ADMISSION, _KINDS[review.phase]))
    return [webhook for _, configuration in configurations for webhook in configuration.get("webhooks") or ()]


def matching_call(registry: Registry, webhook: Mapping[str, Any], review: Review) -> WebhookCall | None:
    """Return the call of a webhook for a write; None if the webhook does not match it.

    Its match conditions are not evaluated.
    """
    resource = _rule_resource(registry, webhook.get("rules") or (), webhook, review)
    return WebhookCall(webhook, resource) if resource is not None and _selected(registry, webhook, review) else None


def matched_resource(registry: Registry, match: Mapping[str, Any], review: Review) -> ApiResource | None:
    """Return the kind in the API version in which the match resources of a policy or binding select a write.

    Args:
        match: The `matchConstraints` of a policy, or the `matchResources` of a binding; without rules it selects every
            resource.

    Returns:
        The kind; None if the write is not selected.
    """
    if not _selected(registry, match, review):
        return None
    if _rule_resource(registry, match.get("excludeResourceRules") or (), match, review) is not None:
        return None
    rules = match.get("resourceRules")
    return _rule_resource(registry, rules, match, review) if rules else review.resource


def request_namespace(review: Review) -> str:
    """Return the namespace of a request; a request for an existing namespace has that namespace."""
    if _is_namespace(review.resource) and review.operation is not WriteOperation.CREATE:
        return review.name
    return review.namespace


def _is_namespace(resource: ApiResource) -> bool:
    return (resource.group, resource.kind) == ("", "Namespace")


def _rule_resource(
    registry: Registry, rules: Sequence[Mapping[str, Any]], criteria: Mapping[str, Any], review: Review
) -> ApiResource | None:
    """Return the kind in the API version that a rule matches; None if no rule matches."""
    if any(_rule_matches(rule, review.resource, review) for rule in rules):
        return review.resource
    if criteria.get("matchPolicy") == "Exact":
        return None
    # Equivalent is the default: a rule for another version of the kind matches too, and the object is converted to it.
    others = [other for other in registry.versions(review.resource) if other is not review.resource]
    pairs = ((rule, other) for rule in rules for other in others)
    return next((other for rule, other in pairs if _rule_matches(rule, other, review)), None)


def _rule_matches(rule: Mapping[str, Any], resource: ApiResource, review: Review) -> bool:
    scope = rule.get("scope") or "*"
    return (
        _named(rule.get("operations"), review.operation)
        and _named(rule.get("apiGroups"), resource.group)
        and _named(rule.get("apiVersions"), resource.version)
        and any(_covers(pattern, resource, review) for pattern in rule.get("resources") or ())
        and (scope == "*" or (scope == "Namespaced") is resource.namespaced)
        and (not rule.get("resourceNames") or review.name in rule["resourceNames"])
    )


def _named(names: Any, name: str) -> bool:
    return any(item in ("*", name) for item in names or ())


def _covers(pattern: str, resource: ApiResource, review: Review) -> bool:
    plural, _, part = pattern.partition("/")
    wanted = review.options.subresource or ""
    return plural in ("*", resource.plural) and (part in ("*", wanted) if part else not wanted)


def _selected(registry: Registry, webhook: Mapping[str, Any], review: Review) -> bool:
    return _labels_match(webhook.get("namespaceSelector"), _namespace_labels(registry, review)) and _object_matches(
        webhook.get("objectSelector"), review
    )


def _namespace_labels(registry: Registry, review: Review) -> Mapping[str, str] | None:
    """Return the labels that a namespace selector is matched with; None if the resource is cluster-scoped."""
    if _is_namespace(review.resource):
        # A new namespace is not in the store yet, and a changed one not with its new labels.
        return _labels(review.object or review.old)
    if not review.resource.namespaced:
        return None
    return _labels(registry.store.get(("", "Namespace"), ("", review.namespace)))


def _object_matches(selector: Any, review: Review) -> bool:
    # Either may match: an update must not escape a webhook by dropping the label.
    objects = [found for found in (review.object, review.old) if found is not None]
    return any(_labels_match(selector, _labels(found)) for found in objects)


def _labels(manifest: Manifest | None) -> Mapping[str, str]:
    labels: Mapping[str, str] = (manifest or {}).get("metadata", {}).get("labels") or {}
    return labels


def _labels_match(selector: Any, labels: Mapping[str, str] | None) -> bool:
    if not selector or labels is None:
        return True
    try:
        return LabelSelector.of(selector).matches(labels)
    except ManifestError:
        return False
