"""Options of the webhook server of a process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import field_manager
from ocf.runtime.admission import Webhooks
from ocf.runtime.admission.asked_on_miss import AskedOnMiss
from ocf.runtime.admission.certificate_source import CertificateSource
from ocf.runtime.admission.policies import policy_manifests
from ocf.runtime.admission.registration import registered
from ocf.runtime.admission.secret_certificates import SecretCertificates, certificate_rules, secret_key
from ocf.runtime.admission.webhook_configurations import (
    Service,
    Url,
    configurations,
    conversion_of,
    definition_key,
    findings,
    own_namespaces,
    with_conversion,
)
from ocf.runtime.operator.operator import Operator
from ocf.runtime.rbac.policy_rule import PolicyRule
from ocf.schema.rest_mapping import rest_mapping

if TYPE_CHECKING:
    from ocf.runtime.admission.server import WebhookServer

__all__ = ["WebhookOptions", "serving_webhooks"]

_PORT: Final = 9443
_TIMEOUT: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Options of the webhook server, and of the webhook configurations.

    Args:
        address: The address at which API servers call the webhooks: a Service in the cluster, or a URL.
        certificates: The source of the server's certificate, for instance `FileCertificates`; None stores it in a
            Secret, and writes the `caBundle` of the configurations.
        namespace: Namespace of that Secret; empty for the namespace of the Service.
        secret: Name of the Secret; empty for the name of the configurations with `-webhook-certificates`.
        name: Name of the configurations; empty for the name of the first operator that has webhooks.
        timeout: How long API servers wait for a response, 1 to 30 seconds.
        port: The port to listen on; 0 takes any free port.
        host: The address to listen on.
        register: Whether the process applies the configurations, and the admission policies, and deletes them when it
            ends, for development. In a cluster they are installed as manifests, and stay. Conversion webhooks are
            written into the definitions, which must exist, and stay.

    Raises:
        BuildError: If there is no namespace for the Secret.

    Example:
        >>> WebhookOptions(address=Url("https://127.0.0.1:9443"))
        Traceback (most recent call last):
        ocf.errors.BuildError: webhooks at a URL need a namespace for the Secret with their certificate, or certificates
    """

    address: Service | Url
    certificates: CertificateSource | None = None
    namespace: str = ""
    secret: str = ""
    name: str = ""
    timeout: timedelta = _TIMEOUT
    port: int = _PORT
    host: str = "0.0.0.0"  # noqa: S104 (API servers come from outside of the pod)
    register: bool = False

    def __post_init__(self) -> None:
        if self.certificates is None and not self.secret_namespace:
            raise BuildError(
                ["webhooks at a URL need a namespace for the Secret with their certificate, or certificates"]
            )

    @property
    def secret_namespace(self) -> str:
        """Namespace of the Secret with the certificate; empty if the certificates come from elsewhere."""
        return self.namespace or (self.address.namespace if isinstance(self.address, Service) else "")

    def webhooks(self, operators: Sequence[Operator[Any]]) -> Webhooks | None:
        """Return the webhooks of operators; None if they have none.

        Args:
            operators: The operators of a process.

        Raises:
            BuildError: If two webhooks of a kind have the same name, or the timeout is out of bounds.
        """
        from ocf.runtime.admission import Webhooks

        names = [operator.name for operator in operators if operator.serves_webhooks]
        if not names:
            return None
        found = [webhook for operator in operators for webhook in operator.webhooks]
        # Operators may share a kind of owners.
        converted = {resource.name: resource for operator in operators for resource in operator.conversions}
        return Webhooks(self.name or names[0], found, self.timeout, tuple(converted.values()))

    def configurations(self, *operators: Operator[Any], ca_bundle: bytes = b"") -> list[Manifest]:
        """Return the webhook configurations, to be applied; `definitions` has the conversion webhooks.

        Args:
            operators: The operators of the process.
            ca_bundle: See `ocf.runtime.admission.configurations`.
        """
        found = self.webhooks(operators)
        return _configurations(self, found, self.address, ca_bundle) if found is not None else []

    def definitions(self, *operators: Operator[Any], ca_bundle: bytes = b"") -> list[Manifest]:
        """Return the definitions of the kinds with several versions, with their conversion webhooks, to be applied.

        Args:
            operators: The operators of the process.
            ca_bundle: See `ocf.runtime.admission.configurations`.
        """
        found = self.webhooks(operators)
        conversions = found.conversions if found is not None else ()
        return [with_conversion(resource, self.address, ca_bundle=ca_bundle) for resource in conversions]

    def findings(self, *operators: Operator[Any]) -> list[str]:
        """Return what an administrator should know about the webhooks: what happens while they cannot be called.

        Args:
            operators: The operators of the process.
        """
        found = self.webhooks(operators)
        return list(findings(found, own_namespaces(self.address, _secret(self, found)))) if found is not None else []

    def policy_rules(self, *operators: Operator[Any]) -> frozenset[PolicyRule]:
        """Return the RBAC rules of the webhook server, for `ocf.runtime.rbac.roles`.

        Args:
            operators: The operators of the process.
        """
        found = self.webhooks(operators)
        policies = policy_manifests(policy for one in operators for policy in one.policies)
        needed = _registering(policies) if self.register else set()
        if found is None:
            return frozenset(needed)
        if self.certificates is None:
            needed |= certificate_rules(found, self.address, namespace=self.secret_namespace, secret=self.secret)
        if self.register:
            needed |= _registering(configurations(found, self.address))
            needed |= {
                PolicyRule("apiextensions.k8s.io", "customresourcedefinitions", "patch", one.name, namespaced=False)
                for one in found.conversions
            }
        return frozenset(needed)


@asynccontextmanager
async def serving_webhooks(
    cluster: Cluster,
    webhooks: Webhooks,
    options: WebhookOptions,
    *,
    registry: CollectorRegistry | None = None,
    cache: Cluster | None = None,
) -> AsyncIterator[WebhookServer]:
    """Serve webhooks for as long as the block runs, to a cluster without a cache; certificates use the system clock.

    Functions get `cache`, whose misses are asked of the cluster; without one, the cluster.
    `ocf.runtime.admission.serving` lists the errors.
    """
    from ocf.runtime.admission import serving

    certificates = options.certificates or SecretCertificates(
        cluster, webhooks, options.address, namespace=options.secret_namespace, secret=options.secret
    )
    served = serving(
        webhooks,
        certificates=certificates,
        host=options.host,
        port=options.port,
        registry=registry,
        cluster=AskedOnMiss(cache, cluster) if cache is not None else cluster,
    )
    async with served as server:
        if not options.register:
            yield server
            return
        # The configurations need the CA from the start: without it API servers would reject all objects.
        address, authority = _reached(options, server), server.pair.authority
        await _register_conversions(cluster, webhooks, address, authority)
        manifests = _configurations(options, webhooks, address, authority)
        manager, shared = field_manager(f"{webhooks.name}-webhooks"), isinstance(address, Service)
        async with registered(cluster, manifests, field_manager=manager, shared=shared):
            await server.refresh()  # reads the CA bundle that was just written
            yield server


def _configurations(
    options: WebhookOptions, webhooks: Webhooks, address: Service | Url, ca_bundle: bytes
) -> list[Manifest]:
    return configurations(webhooks, address, ca_bundle=ca_bundle, secret=_secret(options, webhooks))


def _secret(options: WebhookOptions, webhooks: Webhooks) -> ObjectKey | None:
    """Return the key of the Secret with the certificates; None if they are elsewhere."""
    in_secret = options.certificates is None
    return secret_key(webhooks, options.secret_namespace, options.secret) if in_secret else None


def _reached(options: WebhookOptions, server: WebhookServer) -> Service | Url:
    """Return the address of a server with its actual port."""
    if options.port or isinstance(options.address, Service):
        return options.address
    place = urlsplit(options.address.base)
    return Url(place._replace(netloc=f"{place.netloc}:{urlsplit(server.url).port}").geturl())


async def _register_conversions(cluster: Cluster, webhooks: Webhooks, address: Service | Url, authority: bytes) -> None:
    """Write the conversion webhooks into the definitions.

    They stay when the process ends: without them the API server would drop the fields that another version does not
    have from each object that it reads or writes, instead of rejecting the request.
    """
    for resource in webhooks.conversions:
        key = definition_key(resource)
        change = {
            "apiVersion": key.api_version,
            "kind": key.kind,
            "metadata": {"name": key.name},
            "spec": {"conversion": conversion_of(resource, address, authority)},
        }
        await cluster.apply(change, field_manager=field_manager(f"{webhooks.name}-webhooks"), force=True)


def _registering(manifests: Sequence[Manifest]) -> set[PolicyRule]:
    found = set()
    for manifest in manifests:
        kind = rest_mapping(manifest["apiVersion"], manifest["kind"], ())
        one = partial(PolicyRule, kind.group, kind.plural, namespaced=False)
        name = manifest["metadata"]["name"]
        found |= {one("create"), one("get", name), one("patch", name), one("delete", name)}
    return found
