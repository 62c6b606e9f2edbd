"""Matching of requests with admission webhooks.

The webhook configurations and the labels of namespaces are read from the store; no I/O is done. Source:
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.embedded.registry.pending_write import Phase, Review
from ocf.embedded.registry.registry import Registry
from ocf.errors import ManifestError
from ocf.objects import LabelSelector, Manifest
from ocf.schema.builtin import ApiResource

__all__ = ["WebhookCall", "matching_calls"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_KINDS: Final = {
    Phase.MUTATING: "MutatingWebhookConfiguration",
    Phase.VALIDATING: "ValidatingWebhookConfiguration",
}


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One webhook to call for a request.

    Args:
        webhook: Its entry in the configuration.
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


def matching_calls(registry: Registry, review: Review) -> list[WebhookCall]:
    """Return the webhooks to call for a write, in the order of the calls.

    Args:
        registry: The registry with the configurations and the namespaces.
        review: The write.

    Returns:
        The webhooks: configurations in the order of their names, the webhooks of each in their own order.
    """
    if review.resource.group == _ADMISSION:
        # Otherwise a broken webhook could prevent the change of its own configuration.
        return []
    return list(_calls(registry, review))


def _calls(registry: Registry, review: Review) -> Iterator[WebhookCall]:
    for _, configuration in registry.store.objects((_ADMISSION, _KINDS[review.phase])):
        for webhook in configuration.get("webhooks") or ():
            resource = _matching(registry, webhook, review)
            if resource is not None and _selected(registry, webhook, review):
                yield WebhookCall(webhook, resource)


def _matching(registry: Registry, webhook: Mapping[str, Any], review: Review) -> ApiResource | None:
    """Return the kind in the API version that a rule matches; None if no rule matches."""
    candidates = [review.resource]
    if webhook.get("matchPolicy") != "Exact":
        candidates += [other for other in registry.versions(review.resource) if other is not review.resource]
    for resource in candidates:
        if any(_rule_matches(rule, resource, review) for rule in webhook.get("rules") or ()):
            return resource
    return None


def _rule_matches(rule: Mapping[str, Any], resource: ApiResource, review: Review) -> bool:
    scope = rule.get("scope") or "*"
    return (
        _named(rule.get("operations"), review.operation)
        and _named(rule.get("apiGroups"), resource.group)
        and _named(rule.get("apiVersions"), resource.version)
        and any(_covers(pattern, resource, review) for pattern in rule.get("resources") or ())
        and (scope == "*" or (scope == "Namespaced") is resource.namespaced)
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
    if (review.resource.group, review.resource.kind) == ("", "Namespace"):
        return _labels(review.object or review.old)
    if not review.resource.namespaced:
        return None
    return _labels(registry.store.get(("", "Namespace"), ("", review.namespace)))


def _object_matches(selector: Any, review: Review) -> bool:
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
