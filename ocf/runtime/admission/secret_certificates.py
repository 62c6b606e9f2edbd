"""`SecretCertificates`: certificates that an operator keeps by itself, in a Secret that its replicas share.

Nobody has to lead. Every replica decides by itself and writes on the condition that nobody wrote since it looked: the
Secret by its resourceVersion, and a configuration by that which it had before the Secret was read. So the bundle of a
configuration never falls back behind a Secret that somebody has acted upon.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.concepts import Clock, SystemClock
from ocf.errors import AlreadyExistsError, ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission.certificate_source import ServingCertificate
from ocf.runtime.admission.key_pairs import KeyPair, authorities
from ocf.runtime.admission.rotation import Renewal, RotationPolicy, StoredCertificates, Trust, offered, plan
from ocf.runtime.admission.webhook_configurations import Service, Url, configurations
from ocf.runtime.admission.webhooks import Webhooks
from ocf.runtime.rbac import PolicyRule
from ocf.schema.rest_mapping import rest_mapping

__all__ = ["SecretCertificates", "certificate_rules"]

_MOST_TRIES: Final = 5


class SecretCertificates:
    """Certificates in a Secret; their authorities are written into the configurations of the webhooks.

    The Secret is made by whoever comes first. Deleting it is how to ask for a renewal.

    Args:
        cluster: Where Secret and configurations are. Not a cached one: what is read must be as new as what was read
            before.
        webhooks: Whose configurations; those that are not there (yet) are passed over.
        address: Where the server is for API servers; the certificate is for that host.
        namespace: Where the Secret is.
        secret: Its name; empty for the name of the webhooks with `-webhook-certificates`.
        clock: What time it is.
        renewal: When certificates are renewed.

    Example:
        >>> from ocf.embedded import EmbeddedCluster
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
        self._key = _secret_key(webhooks, namespace, secret)
        self._entries = _entries(webhooks, address)
        self._clock = clock or SystemClock()
        self._renewal = renewal or Renewal()
        self._policy = RotationPolicy((address.host,), self._renewal.lifetime)
        self._manager = f"{webhooks.name}-webhook-certificates"[:128]
        self._shown: KeyPair | None = None
        self._trusted_since: dict[bytes, timedelta] = {}

    @property
    def interval(self) -> timedelta:
        """How often to look."""
        return self._renewal.interval

    @property
    def policy_rules(self) -> frozenset[PolicyRule]:
        """What it takes to keep them, for `ocf.runtime.rbac.roles`."""
        return _privileges(self._key, self._entries)

    async def refresh(self) -> ServingCertificate:
        """Renew what is due, have it trusted, and return what to show.

        Raises:
            ApiError: If the cluster cannot be asked, or refuses.
        """
        for _ in range(_MOST_TRIES - 1):
            with suppress(AlreadyExistsError, ConflictError, NotFoundError):  # another replica was faster
                return await self._refreshed()
        return await self._refreshed()

    async def _refreshed(self) -> ServingCertificate:
        # In this order: whoever changes the Secret after it was read here also changes what was read before it.
        live = [found for key in self._entries if (found := await self._found(key))]
        secret = await self._found(self._key)
        stored = StoredCertificates.read(secret.get("data") or {}) if secret else None
        now = self._clock.now()
        kept = plan(stored, self._shown, self._trust(live), now, self._policy)
        if kept != stored:
            await self._store(secret, kept)
        trust = self._trust([await self._published(found, kept.bundle) for found in live])
        self._shown = offered(kept, self._shown, trust, now)
        return ServingCertificate(self._shown, self._problem(self._shown, trust))

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

    async def _published(self, live: Manifest, bundle: bytes) -> Manifest:
        """Write the bundle into a configuration, where it is not there yet."""
        text = base64.b64encode(bundle).decode()
        ours = self._ours(live)
        if all((entry.get("clientConfig") or {}).get("caBundle") == text for entry in ours):
            return live
        metadata = {"name": live["metadata"]["name"], "resourceVersion": live["metadata"]["resourceVersion"]}
        change = {
            "apiVersion": live["apiVersion"],
            "kind": live["kind"],
            "metadata": metadata,
            "webhooks": [{"name": entry["name"], "clientConfig": {"caBundle": text}} for entry in ours],
        }
        return await self._cluster.apply(change, field_manager=self._manager, force=True)

    def _ours(self, live: Manifest) -> list[Mapping[str, Any]]:
        names = self._entries[_configuration_key(live)]
        return [entry for entry in live.get("webhooks") or () if entry.get("name") in names]

    def _trust(self, live: Sequence[Manifest]) -> Trust:
        """Say what is trusted, and remember since when."""
        bundles = [_authorities(entry) for found in live for entry in self._ours(found)]
        everywhere = frozenset.intersection(*bundles) if bundles else frozenset()
        elapsed = self._clock.elapsed()
        self._trusted_since = {one: self._trusted_since.get(one, elapsed) for one in everywhere}
        settled = (one for one, since in self._trusted_since.items() if elapsed - since >= self._renewal.settling)
        return Trust(bundles, frozenset(settled))

    def _problem(self, pair: KeyPair, trust: Trust) -> str:
        if trust.holds(pair):
            return ""
        names = " and ".join(f"{key.kind} {key.name}" for key in self._entries)
        return f"the caBundle of {names} does not hold the certificate's authority"


def certificate_rules(
    webhooks: Webhooks, address: Service | Url, *, namespace: str, secret: str = ""
) -> frozenset[PolicyRule]:
    """Return what it takes to keep certificates in a Secret.

    Args:
        webhooks: Whose configurations.
        address: Where the server is for API servers.
        namespace: Where the Secret is.
        secret: As of `SecretCertificates`.
    """
    return _privileges(_secret_key(webhooks, namespace, secret), _entries(webhooks, address))


def _secret_key(webhooks: Webhooks, namespace: str, secret: str) -> ObjectKey:
    return ObjectKey("v1", "Secret", secret or f"{webhooks.name}-webhook-certificates", namespace)


def _entries(webhooks: Webhooks, address: Service | Url) -> dict[ObjectKey, list[str]]:
    """Return the names of the entries of each configuration."""
    found = configurations(webhooks, address)
    return {_configuration_key(manifest): [entry["name"] for entry in manifest["webhooks"]] for manifest in found}


def _privileges(key: ObjectKey, configured: Iterable[ObjectKey]) -> frozenset[PolicyRule]:
    ours = partial(PolicyRule, "", "secrets", namespace=key.namespace)
    secret = {ours("create"), ours("get", name=key.name), ours("update", name=key.name)}
    resources = ((rest_mapping(found.api_version, found.kind, ()), found.name) for found in configured)
    return frozenset(secret).union(
        PolicyRule(one.group, one.plural, verb, name, one.namespaced)
        for one, name in resources
        for verb in ("get", "patch")
    )


def _configuration_key(manifest: Manifest) -> ObjectKey:
    return ObjectKey(manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"], "")


def _authorities(entry: Mapping[str, Any]) -> frozenset[bytes]:
    try:
        bundle = base64.b64decode((entry.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except (binascii.Error, ValueError):
        return frozenset()
    return frozenset(authorities(bundle))
