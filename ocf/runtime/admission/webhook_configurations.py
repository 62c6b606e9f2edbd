"""Manifests that register webhooks: webhook configurations, and definitions with a conversion webhook."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.runtime.admission.webhooks import OWN_OBJECTS, Step, Webhook, Webhooks
from ocf.runtime.crds import VersionedResource

__all__ = [
    "Service",
    "Url",
    "configurations",
    "conversion_of",
    "conversion_path",
    "definition_key",
    "findings",
    "left_out",
    "own_namespaces",
    "with_conversion",
]

_API: Final = "admissionregistration.k8s.io/v1"
_KINDS: Final = {Step.DEFAULT: "MutatingWebhookConfiguration", Step.VALIDATE: "ValidatingWebhookConfiguration"}


@dataclass(frozen=True, slots=True)
class Service:
    """The Service in front of the webhook server.

    Args:
        port: Its port, 1 to 65535.
    """

    name: str
    namespace: str
    port: int = 443

    @property
    def host(self) -> str:
        """The host name that the server's certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"

    def client_config(self, path: str) -> dict[str, Any]:
        """Return where a path of the server is."""
        place = {"name": self.name, "namespace": self.namespace, "path": path, "port": self.port}
        return {"service": place}


@dataclass(frozen=True, slots=True)
class Url:
    """URL of a webhook server outside of the cluster, for development.

    Args:
        base: The URL without a path, such as `https://127.0.0.1:9443`.
    """

    base: str

    @property
    def host(self) -> str:
        """The host name or IP address that the server's certificate must be for."""
        return urlsplit(self.base).hostname or ""

    def client_config(self, path: str) -> dict[str, Any]:
        """Return where a path of the server is."""
        return {"url": f"{self.base.rstrip('/')}{path}"}


def configurations(
    webhooks: Webhooks, address: Service | Url, *, ca_bundle: bytes = b"", secret: ObjectKey | None = None
) -> list[Manifest]:
    """Return the configurations of webhooks, to be applied.

    Each webhook is called for what its `Match` selects. What a process writes before it can be called is left out: the
    Secret with its certificates, and the definitions with its conversion webhooks. So are, unless the match says
    otherwise, the namespaces of Kubernetes and that of the operator for kinds that are built in.

    Args:
        address: The address of their server.
        ca_bundle: Certificates (PEM) of the CAs of the server's certificate; empty if another component writes them,
            such as `SecretCertificates` or cert-manager.
        secret: The Secret with the server's certificates; None if they are elsewhere.

    Returns:
        A MutatingWebhookConfiguration, if any webhook has defaulters, and a ValidatingWebhookConfiguration.

    Example:
        >>> webhooks = Webhooks("shops", [Webhook("example.com", "v1", "Shop", "shops")])
        >>> (validating,) = configurations(webhooks, Service("shops-webhook", "ops"))
        >>> validating["webhooks"][0]["clientConfig"]["service"]["path"]
        '/validate/example.com/shops'
    """
    own = [*([secret] if secret is not None else []), *map(definition_key, webhooks.conversions)]
    namespaces = own_namespaces(address, secret)

    def entry(webhook: Webhook[Any], step: Step) -> dict[str, Any]:
        config = {**address.client_config(webhook.path(step)), **_bundle(ca_bundle)}
        called = {"name": webhook.qualified_name(step), "clientConfig": config}
        return {
            **called,
            **_called_for(webhook, step, namespaces),
            "timeoutSeconds": int(webhooks.timeout_of(webhook).total_seconds()),
            "admissionReviewVersions": ["v1"],
            **_conditions(webhook, own),
        }

    written = ((step, [entry(one, step) for one in _asked(webhooks, step)]) for step in Step)
    return [
        {"apiVersion": _API, "kind": _KINDS[step], "metadata": {"name": webhooks.name}, "webhooks": entries}
        for step, entries in written
        if entries
    ]


def with_conversion(resource: VersionedResource, address: Service | Url, *, ca_bundle: bytes = b"") -> Manifest:
    """Return the definition of a resource with its conversion webhook, to be applied.

    Args:
        address: The address of the webhook server.
        ca_bundle: See `configurations`.

    Returns:
        The CustomResourceDefinition; without a webhook if the resource has only one version.

    Raises:
        ManifestError: If a structural schema cannot express a model.

    Example:
        >>> from pydantic import BaseModel
        >>> from ocf.runtime.crds import CRDVersion, VersionedResource
        >>> class Quota(BaseModel):
        ...     limit: int = 1
        >>> versions = [CRDVersion("v1", Quota), CRDVersion("v2", Quota, stored=True)]
        >>> definition = with_conversion(VersionedResource("example.com", versions), Service("quotas", "ops"))
        >>> definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"]
        '/convert/example.com/quotas'
    """
    definition = resource.definition()
    if not resource.has_conversions:
        return definition
    return {**definition, "spec": {**definition["spec"], "conversion": conversion_of(resource, address, ca_bundle)}}


def conversion_of(resource: VersionedResource, address: Service | Url, ca_bundle: bytes) -> dict[str, Any]:
    """Return the field `spec.conversion` of a definition.

    Args:
        ca_bundle: See `configurations`.
    """
    config = {**address.client_config(conversion_path(resource)), **_bundle(ca_bundle)}
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


def conversion_path(resource: VersionedResource) -> str:
    """Return the path of a conversion webhook on the server: `/convert/example.com/shops`."""
    return f"/convert/{resource.group}/{resource.plural}"


def definition_key(resource: VersionedResource) -> ObjectKey:
    """Return the key of the definition of a resource."""
    return ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", resource.name, "")


def _asked(webhooks: Webhooks, step: Step) -> list[Webhook[Any]]:
    return [webhook for webhook in webhooks.webhooks if step in webhook.steps]


def own_namespaces(address: Service | Url, secret: ObjectKey | None) -> list[str]:
    """Return the namespaces of an operator: that of its Service and that of the Secret with its certificates."""
    found = [address.namespace if isinstance(address, Service) else "", secret.namespace if secret is not None else ""]
    return [*dict.fromkeys(filter(None, found))]


def left_out(webhook: Webhook[Any], own: Sequence[str]) -> list[str]:
    """Return the namespaces in which a webhook is not called.

    Args:
        own: Those of the operator.
    """
    found = webhook.match.left_out(webhook.group, own)
    # A selector of namespaces matches every object that has none; a Namespace is selected by its own labels.
    return [] if found and webhook.is_cluster_scoped and not _is_namespace(webhook) else found


def findings(webhooks: Webhooks, own: Sequence[str]) -> Iterator[str]:
    """Yield what an administrator should know about webhooks: what happens while they cannot be called.

    Args:
        own: The namespaces of the operator.
    """
    for webhook in webhooks.webhooks:
        names = " and ".join(map(webhook.qualified_name, webhook.steps))
        requests = _requests(webhook)
        if webhook.failure_policy == "Ignore":
            yield (
                f"{names}: failure policy Ignore, so {requests} pass without this webhook while "
                "no process of the operator responds; apiserver_admission_webhook_fail_open_count counts them"
            )
        elif webhook.is_builtin:
            yield (
                f"{names}: failure policy Fail, so {requests} fail {_place(webhook, own)} "
                "while no process of the operator responds"
            )


def _requests(webhook: Webhook[Any]) -> str:
    """Return for which requests a webhook is called, but for their namespaces."""
    match = webhook.match
    operations = ", ".join(dict.fromkeys(one for step in webhook.steps for one in webhook.operations(step)))
    limits = []
    if match.conditions:
        limits.append(f"that match its conditions ({', '.join(match.conditions)})")
    if match.objects or (match.namespaces and _is_namespace(webhook)):
        limits.append("whose labels it selects")
    return " ".join([f"{operations} of {webhook.plural}", " and ".join(limits)]).rstrip()


def _place(webhook: Webhook[Any], own: Sequence[str]) -> str:
    without = left_out(webhook, own)
    if _is_namespace(webhook):
        place = "for all"
    elif webhook.is_cluster_scoped and not without:
        return "in the whole cluster"
    else:
        place = "in the namespaces that it selects" if webhook.match.namespaces else "in all namespaces"
    return f"{place} but {', '.join(without)}" if without else f"{place}, those of Kubernetes and the operator included"


def _is_namespace(webhook: Webhook[Any]) -> bool:
    return (webhook.group, webhook.plural) == ("", "namespaces")


def _conditions(webhook: Webhook[Any], own: Sequence[ObjectKey]) -> dict[str, Any]:
    """Return the conditions of a webhook, with the one that leaves out objects of the process itself."""
    found = webhook.match.match_conditions()
    kinds = ((split_api_version(key.api_version)[0], key.kind, key) for key in own)
    if named := [key for group, kind, key in kinds if (group, kind) == (webhook.group, webhook.kind)]:
        # kube-apiserver leaves out an empty namespace, and a name that is to be generated; reading them would be an
        # error.
        names = [
            f'request.name == "{key.name}"' + (f' && request.namespace == "{key.namespace}"' if key.namespace else "")
            for key in named
        ]
        expression = f"!(has(request.name) && ({' || '.join(names)}))"
        found.append({"name": OWN_OBJECTS, "expression": expression})
    return {"matchConditions": found} if found else {}


def _called_for(webhook: Webhook[Any], step: Step, own: Sequence[str]) -> dict[str, Any]:
    match = webhook.match
    rule = match.rule(webhook.group, webhook.version, webhook.plural)
    namespaces = match.namespace_selector(left_out(webhook, own))
    reinvoked = webhook.reinvoke and step is Step.DEFAULT
    return {
        "rules": [{**rule, "operations": [str(operation) for operation in webhook.operations(step)]}],
        **({"namespaceSelector": namespaces} if namespaces else {}),
        **({"objectSelector": dict(match.objects)} if match.objects else {}),
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": match.policy,
        **({"reinvocationPolicy": "IfNeeded"} if reinvoked else {}),
        "sideEffects": "NoneOnDryRun" if webhook.side_effects else "None",
    }


def _bundle(ca_bundle: bytes) -> dict[str, str]:
    return {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}
