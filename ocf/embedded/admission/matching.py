"""Which admission webhooks a request concerns.

Pure: the configurations and the namespaces are read off the store. Source:
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

__all__ = ["WebhookCall", "calls"]

_ADMISSION: Final = "admissionregistration.k8s.io"
_KINDS: Final = {
    Phase.MUTATING: "MutatingWebhookConfiguration",
    Phase.VALIDATING: "ValidatingWebhookConfiguration",
}


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One webhook that is to be asked.

    Args:
        webhook: Its entry in the configuration.
        resource: The kind in the version in which it wants to see the object.
    """

    webhook: Mapping[str, Any]
    resource: ApiResource

    @property
    def name(self) -> str:
        """The webhook's name."""
        return str(self.webhook.get("name") or "")

    @property
    def seconds(self) -> float:
        """How long it may take."""
        return float(self.webhook.get("timeoutSeconds") or 10)

    @property
    def is_ignored_when_failing(self) -> bool:
        """Whether a request goes on although the webhook cannot be asked."""
        return self.webhook.get("failurePolicy") == "Ignore"

    @property
    def is_asked_again(self) -> bool:
        """Whether it wants to be asked again when later ones changed the object."""
        return self.webhook.get("reinvocationPolicy") == "IfNeeded"


def calls(core: Registry, review: Review) -> list[WebhookCall]:
    """Return the webhooks that a review concerns, in the order in which they are asked.

    Args:
        core: The server, which holds the configurations and the namespaces.
        review: What is about to happen.

    Returns:
        The webhooks: configurations by name, each in its own order.
    """
    if review.resource.group == _ADMISSION:
        # Nobody may lock himself out of changing the configurations.
        return []
    return list(_calls(core, review))


def _calls(core: Registry, review: Review) -> Iterator[WebhookCall]:
    for _, configuration in core.store.objects((_ADMISSION, _KINDS[review.phase])):
        for webhook in configuration.get("webhooks") or ():
            resource = _matching(core, webhook, review)
            if resource is not None and _selected(core, webhook, review):
                yield WebhookCall(webhook, resource)


def _matching(core: Registry, webhook: Mapping[str, Any], review: Review) -> ApiResource | None:
    """Return the kind in the version that a rule names, if one does."""
    candidates = [review.resource]
    if webhook.get("matchPolicy") != "Exact":
        candidates += [other for other in core.versions(review.resource) if other is not review.resource]
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


def _selected(core: Registry, webhook: Mapping[str, Any], review: Review) -> bool:
    return _labels_match(webhook.get("namespaceSelector"), _namespace_labels(core, review)) and _object_matches(
        webhook.get("objectSelector"), review
    )


def _namespace_labels(core: Registry, review: Review) -> Mapping[str, str] | None:
    """Return the labels that a namespace selector looks at; None where there are none to look at."""
    if (review.resource.group, review.resource.kind) == ("", "Namespace"):
        return _labels(review.object or review.old)
    if not review.resource.namespaced:
        return None
    return _labels(core.store.get(("", "Namespace"), ("", review.namespace)))


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
