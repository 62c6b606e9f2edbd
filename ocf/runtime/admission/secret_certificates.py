"""Self-managed certificates in a Secret that the replicas of an operator share.

No leader is needed. Every replica decides by itself, and its writes use optimistic concurrency: those of the Secret by
its resourceVersion, those of a configuration (or a definition with a conversion webhook) by the resourceVersion read
before the Secret. So the bundle of a configuration is never older than a Secret that a replica has used.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, Final, Protocol

from ocf.cluster import Cluster
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.concepts import Clock, SystemClock
from ocf.errors import AlreadyExistsError, ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import field_manager
from ocf.runtime.admission.certificate_source import ServingCertificate
from ocf.runtime.admission.key_pairs import KeyPair, authorities
from ocf.runtime.admission.rotation import Renewal, RotationPolicy, StoredCertificates, Trust, choose_pair, plan
from ocf.runtime.admission.webhook_configurations import Service, Url, configurations, definition_key
from ocf.runtime.admission.webhooks import Webhooks
from ocf.runtime.rbac import PolicyRule
from ocf.schema.rest_mapping import rest_mapping

__all__ = ["SecretCertificates", "certificate_rules", "secret_key"]


class _Registration(Protocol):
    """An object that registers webhooks."""

    @property
    def key(self) -> ObjectKey:
        """Its key."""
        ...

    def client_configs(self, live: Manifest) -> list[Mapping[str, Any]]:
        """Return the `clientConfig` of each of the webhooks in the live object."""
        ...

    def with_bundle(self, live: Manifest, bundle: str) -> Manifest:
        """Return the fields to apply, so that each `clientConfig` has a CA bundle (PEM in base64)."""
        ...


@dataclass(frozen=True, slots=True)
class _Configuration:
    """A webhook configuration.

    Args:
        names: The names of the webhooks; others in the same configuration are left alone.
    """

    key: ObjectKey
    names: tuple[str, ...]

    def client_configs(self, live: Manifest) -> list[Mapping[str, Any]]:
        return [entry.get("clientConfig") or {} for entry in self._entries(live)]

    def with_bundle(self, live: Manifest, bundle: str) -> Manifest:
        config = {"caBundle": bundle}
        return {"webhooks": [{"name": entry["name"], "clientConfig": config} for entry in self._entries(live)]}

    def _entries(self, live: Manifest) -> list[Mapping[str, Any]]:
        return [entry for entry in live.get("webhooks") or () if entry.get("name") in self.names]


@dataclass(frozen=True, slots=True)
class _Definition:
    """A CustomResourceDefinition with a conversion webhook; without one, nothing is written."""

    key: ObjectKey

    def client_configs(self, live: Manifest) -> list[Mapping[str, Any]]:
        conversion = live["spec"].get("conversion") or {}
        return [conversion["webhook"].get("clientConfig") or {}] if conversion.get("strategy") == "Webhook" else []

    def with_bundle(self, live: Manifest, bundle: str) -> Manifest:
        del live
        return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}


def _registrations(webhooks: Webhooks, address: Service | Url) -> list[_Registration]:
    """Return the objects that register webhooks."""
    configured = [
        _Configuration(ObjectKey.of(manifest), tuple(entry["name"] for entry in manifest["webhooks"]))
        for manifest in configurations(webhooks, address)
    ]
    return [*configured, *(_Definition(definition_key(resource)) for resource in webhooks.conversions)]


_MOST_TRIES: Final = 5


class SecretCertificates:
    """Certificates in a Secret; their CAs are written into the configurations of the webhooks.

    The first replica creates the Secret. Deleting it requests a renewal.

    Args:
        cluster: The cluster of Secret and configurations, without a cache: a read must never return an older state than
            the one before.
        webhooks: The webhooks of the configurations; configurations that do not exist (yet) are skipped.
        address: The address at which API servers call the server; the certificate is for that host.
        namespace: Namespace of the Secret.
        secret: Name of the Secret; empty for the name of the webhooks with `-webhook-certificates`.
        clock: The clock; the system clock by default.
        renewal: Timing of the renewal.

    Example:
        >>> from ocf_server import EmbeddedCluster
        >>> from ocf.runtime.admission import Webhook
        >>> webhooks = Webhooks("shops", [Webhook("example.com", "v1", "Shop", "shops")])
        >>> address = Service("shops-webhook", "ops")
        >>> certificates = SecretCertificates(EmbeddedCluster(), webhooks, address, namespace="default")
        >>> import asyncio
        >>> asyncio.run(certificates.refresh()).pair.hosts
        ('shops-webhook.ops.svc',)
    """

    def __init__(
        self,
        cluster: Cluster,
        webhooks: Webhooks,
        address: Service | Url,
        *,
        namespace: str,
        secret: str = "",
        clock: Clock | None = None,
        renewal: Renewal | None = None,
    ) -> None:
        self._cluster = cluster
        self._key = secret_key(webhooks, namespace, secret)
        self._registrations = _registrations(webhooks, address)
        self._clock = clock or SystemClock()
        self._renewal = renewal or Renewal()
        self._policy = RotationPolicy((address.host,), self._renewal.lifetime)
        self._manager = field_manager(f"{webhooks.name}-webhook-certificates")
        self._shown: KeyPair | None = None
        self._trusted_since: dict[bytes, timedelta] = {}
        self._data: Mapping[str, Any] | None = None
        self._stored: StoredCertificates | None = None

    @property
    def interval(self) -> timedelta:
        """Interval between two checks."""
        return self._renewal.interval

    @property
    def policy_rules(self) -> frozenset[PolicyRule]:
        """The RBAC rules that it needs, for `ocf.runtime.rbac.roles`."""
        return _privileges(self._key, self._registrations)

    async def refresh(self) -> ServingCertificate:
        """Renew the certificates if due, publish their CAs, and return the certificate to present.

        Raises:
            ApiError: If the cluster cannot be reached, or rejects a request.
        """
        with requests_for(Purpose.CERTIFICATES):
            for _ in range(_MOST_TRIES - 1):
                with suppress(AlreadyExistsError, ConflictError, NotFoundError):  # another replica was faster
                    return await self._refreshed()
            return await self._refreshed()

    async def _refreshed(self) -> ServingCertificate:
        # In this order: a replica that changes the Secret after this read also changes the configurations read before.
        live = [(one, found) for one in self._registrations if (found := await self._found(one.key))]
        secret = await self._found(self._key)
        stored = self._read(secret) if secret else None
        now = self._clock.now()
        kept = plan(stored, self._shown, self._trust(live), now, self._policy)
        if kept != stored:
            await self._store(secret, kept)
        trust = self._trust([(one, await self._published(one, found, kept.bundle)) for one, found in live])
        self._shown = choose_pair(kept, self._shown, trust, now)
        return ServingCertificate(self._shown, self._problem(self._shown, trust))

    def _read(self, secret: Manifest) -> StoredCertificates | None:
        """Return the certificates of the Secret; data that have not changed are not parsed and verified again."""
        data = secret.get("data") or {}
        if data != self._data:
            self._data, self._stored = data, StoredCertificates.read(data)
        return self._stored

    async def _found(self, key: ObjectKey) -> Manifest | None:
        try:
            return await self._cluster.get(key)
        except NotFoundError:
            return None

    async def _store(self, secret: Manifest | None, kept: StoredCertificates) -> None:
        if secret is None:
            metadata = {"name": self._key.name, "namespace": self._key.namespace}
            manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": kept.data()}
            await self._cluster.create(manifest, field_manager=self._manager)
        else:
            await self._cluster.update({**secret, "data": kept.data()}, field_manager=self._manager)

    async def _published(self, registration: _Registration, live: Manifest, bundle: bytes) -> Manifest:
        """Write the bundle into an object that registers webhooks, unless it is there already."""
        text = base64.b64encode(bundle).decode()
        if all(config.get("caBundle") == text for config in registration.client_configs(live)):
            return live
        metadata = {"name": live["metadata"]["name"], "resourceVersion": live["metadata"]["resourceVersion"]}
        head = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
        change = {**head, **registration.with_bundle(live, text)}
        return await self._cluster.apply(change, field_manager=self._manager, force=True)

    def _trust(self, live: Sequence[tuple[_Registration, Manifest]]) -> Trust:
        """Return the trusted CAs, and record since when they are trusted."""
        bundles = [
            _authorities(config.get("caBundle") or "") for one, found in live for config in one.client_configs(found)
        ]
        everywhere = frozenset.intersection(*bundles) if bundles else frozenset()
        elapsed = self._clock.elapsed()
        self._trusted_since = {one: self._trusted_since.get(one, elapsed) for one in everywhere}
        established = (
            one for one, since in self._trusted_since.items() if elapsed - since >= self._renewal.propagation
        )
        return Trust(bundles, frozenset(established))

    def _problem(self, pair: KeyPair, trust: Trust) -> str:
        if trust.trusts(pair):
            return ""
        names = " and ".join(f"{one.key.kind} {one.key.name}" for one in self._registrations)
        return f"the caBundle of {names} does not contain the CA of the certificate"


def certificate_rules(
    webhooks: Webhooks, address: Service | Url, *, namespace: str, secret: str = ""
) -> frozenset[PolicyRule]:
    """Return the RBAC rules that certificates in a Secret need.

    Args:
        secret: See `SecretCertificates`.
    """
    return _privileges(secret_key(webhooks, namespace, secret), _registrations(webhooks, address))


def secret_key(webhooks: Webhooks, namespace: str, secret: str) -> ObjectKey:
    """Return the key of the Secret.

    Args:
        secret: See `SecretCertificates`.
    """
    return ObjectKey("v1", "Secret", secret or f"{webhooks.name}-webhook-certificates", namespace)


def _privileges(key: ObjectKey, registered: Iterable[_Registration]) -> frozenset[PolicyRule]:
    ours = partial(PolicyRule, "", "secrets", namespace=key.namespace)
    secret = {ours("create"), ours("get", name=key.name), ours("update", name=key.name)}
    resources = ((rest_mapping(one.key.api_version, one.key.kind, ()), one.key.name) for one in registered)
    return frozenset(secret).union(
        PolicyRule(one.group, one.plural, verb, name, one.namespaced)
        for one, name in resources
        for verb in ("get", "patch")
    )


# A check reads each bundle twice, and nearly always the same bundles as the check before.
@lru_cache(maxsize=64)
def _authorities(bundle_text: str) -> frozenset[bytes]:
    try:
        bundle = base64.b64decode(bundle_text, validate=True)
    except (binascii.Error, ValueError):
        return frozenset()
    return frozenset(authorities(bundle))
