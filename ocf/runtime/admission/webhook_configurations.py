"""Manifests that register webhooks: webhook configurations, and definitions with a conversion webhook."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.runtime.admission.match import Operation
from ocf.runtime.admission.webhooks import Step, Webhook, Webhooks
from ocf.runtime.crds import VersionedResource

__all__ = ["Service", "Url", "configurations", "conversion_of", "conversion_path", "definition_key", "with_conversion"]

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

    A request is rejected if its webhook cannot be called; webhooks have no side effects, and get objects of every
    version of their kind. What a process writes before it can be called is left out: the Secret with its certificates,
    and the definitions with its conversion webhooks.

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

    def entry(webhook: Webhook[Any], step: Step) -> dict[str, Any]:
        config = {**address.client_config(webhook.path(step)), **_bundle(ca_bundle)}
        called = {"name": webhook.name(step), "clientConfig": config}
        return {**called, **_called_for(webhook, step, webhooks.timeout), **_without(webhook, own)}

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


def _without(webhook: Webhook[Any], own: Sequence[ObjectKey]) -> dict[str, Any]:
    """Return the condition that leaves out objects of the process itself; empty if the webhook is for another kind."""
    kinds = ((split_api_version(key.api_version)[0], key.kind, key) for key in own)
    named = [key for group, kind, key in kinds if (group, kind) == (webhook.group, webhook.kind)]
    if not named:
        return {}
    # kube-apiserver leaves out an empty namespace, and a name that is to be generated; reading them would be an error.
    names = [
        f'request.name == "{key.name}"' + (f' && request.namespace == "{key.namespace}"' if key.namespace else "")
        for key in named
    ]
    of_them = f"has(request.name) && ({' || '.join(names)})"
    return {"matchConditions": [{"name": "not-of-the-webhook-server", "expression": f"!({of_them})"}]}


def _called_for(webhook: Webhook[Any], step: Step, timeout: timedelta) -> dict[str, Any]:
    return {
        "rules": [
            {
                "apiGroups": [webhook.group],
                "apiVersions": [webhook.version],
                "operations": [str(operation) for operation in _operations(webhook, step)],
                "resources": [webhook.plural],
                "scope": "*",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": int(timeout.total_seconds()),
        "admissionReviewVersions": ["v1"],
    }


def _bundle(ca_bundle: bytes) -> dict[str, str]:
    return {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}


def _operations(webhook: Webhook[Any], step: Step) -> list[Operation]:
    asked = [Operation.CREATE, Operation.UPDATE]
    return [*asked, Operation.DELETE] if webhook.deletes and step is Step.VALIDATE else asked
