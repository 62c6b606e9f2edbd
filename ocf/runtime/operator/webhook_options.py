"""`WebhookOptions`: how a process serves the webhooks of its operators."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ocf.errors import ApiError, BuildError
from ocf.objects import ObjectKey
from ocf.runtime.admission.secret_certificates import SecretCertificates, certificate_rules
from ocf.runtime.admission.server import WebhookServer, serving
from ocf.runtime.admission.webhook_configurations import Service, Url, configurations
from ocf.runtime.rbac.rules import PolicyRule
from ocf.schema.rest_mapping import rest_mapping

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf.runtime.admission import CertificateSource, Webhooks
    from ocf.runtime.operator.operator import Operator

__all__ = ["WebhookOptions"]

_PORT: Final = 9443
_TIMEOUT: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """How the webhooks of operators are served, and how API servers know them.

    Args:
        address: Where API servers find them: a Service in the cluster, or a URL.
        certificates: Where the server's certificate comes from, `FileCertificates` for instance; None keeps it in a
            Secret, and the `caBundle` of the configurations with it.
        namespace: Where that Secret is; empty for where the Service is.
        secret: Its name; empty for the name of the configurations with `-webhook-certificates`.
        name: What the configurations are called; empty for the name of the first operator that has webhooks.
        timeout: How long API servers wait for an answer, 1 to 30 seconds.
        port: The port to listen on; 0 takes any that is free.
        host: The address to listen on.
        register: Whether the process writes the configurations, and takes them back when it ends: on a developer's
            machine. In a cluster they are manifests, and stay.

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
        if self.certificates is None and not self._namespace:
            raise BuildError(
                ["webhooks at a URL need a namespace for the Secret with their certificate, or certificates"]
            )

    @property
    def _namespace(self) -> str:
        return self.namespace or (self.address.namespace if isinstance(self.address, Service) else "")

    def webhooks(self, operators: Sequence[Operator[Any]]) -> Webhooks | None:
        """Return the webhooks of operators; None if they have none.

        Args:
            operators: The operators of a process.

        Raises:
            BuildError: If two are for the same kind, or the timeout is out of bounds.
        """
        from ocf.runtime.admission import Webhooks

        names = [operator.name for operator in operators if operator.webhooks]
        found = [webhook for operator in operators for webhook in operator.webhooks]
        return Webhooks(self.name or names[0], found, self.timeout) if found else None

    def configurations(self, *operators: Operator[Any], ca_bundle: bytes = b"") -> list[Manifest]:
        """Write the configurations by which an API server knows the webhooks, to be applied.

        Args:
            operators: The operators of the process.
            ca_bundle: As of `ocf.runtime.admission.configurations`.
        """
        found = self.webhooks(operators)
        return configurations(found, self.address, ca_bundle=ca_bundle) if found is not None else []

    def policy_rules(self, *operators: Operator[Any]) -> frozenset[PolicyRule]:
        """Return what serving the webhooks needs of the cluster, for `ocf.runtime.rbac.roles`.

        Args:
            operators: The operators of the process.
        """
        found = self.webhooks(operators)
        if found is None:
            return frozenset()
        needed: set[PolicyRule] = set()
        if self.certificates is None:
            needed |= certificate_rules(found, self.address, namespace=self._namespace, secret=self.secret)
        if self.register:
            needed |= _registering(configurations(found, self.address))
        return frozenset(needed)

    @asynccontextmanager
    async def serving(self, cluster: Cluster, webhooks: Webhooks) -> AsyncIterator[WebhookServer]:
        """Serve webhooks for as long as the block runs; whatever clock a process has, certificates have the machine's.

        Args:
            cluster: Where the Secret and the configurations are; not a cached one.
            webhooks: The webhooks.

        Yields:
            The server, as of `ocf.runtime.admission.serving`, which says what may be raised.
        """
        certificates = self.certificates or SecretCertificates(
            cluster, webhooks, self.address, namespace=self._namespace, secret=self.secret
        )
        async with serving(webhooks, certificates=certificates, host=self.host, port=self.port) as server:
            if not self.register:
                yield server
                return
            # With whom to trust, or objects would be refused until that is written.
            manifests = configurations(webhooks, self._reached(server), ca_bundle=server.pair.authority)
            async with _registered(cluster, manifests, webhooks.name):
                await server.refresh()  # sees that it is trusted
                yield server

    def _reached(self, server: WebhookServer) -> Service | Url:
        """Return where API servers find a server, whatever port it took."""
        if self.port or isinstance(self.address, Service):
            return self.address
        place = urlsplit(self.address.base)
        return Url(place._replace(netloc=f"{place.netloc}:{urlsplit(server.url).port}").geturl())


@asynccontextmanager
async def _registered(cluster: Cluster, manifests: Sequence[Manifest], name: str) -> AsyncIterator[None]:
    """Have API servers know the webhooks while the block runs; what a process before us left behind is taken over."""
    try:
        for manifest in manifests:
            await cluster.apply(manifest, field_manager=f"{name}-webhooks"[:128], force=True)
        yield
    finally:
        # Nobody answers from now on, so nobody is to be asked.
        for manifest in manifests:
            with suppress(ApiError):  # the API server may be gone already, and they with it
                await cluster.delete(ObjectKey.of(manifest))


def _registering(manifests: Sequence[Manifest]) -> set[PolicyRule]:
    found = set()
    for manifest in manifests:
        kind = rest_mapping(manifest["apiVersion"], manifest["kind"], ())
        one = partial(PolicyRule, kind.group, kind.plural, namespaced=False)
        name = manifest["metadata"]["name"]
        found |= {one("create"), one("patch", name), one("delete", name)}
    return found
