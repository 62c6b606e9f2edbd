"""Objects that register webhooks at the API server, and the CA bundles in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission.webhook_configurations import Service, Url, configurations, definition_key
from ocf.runtime.admission.webhooks import Webhooks

__all__ = ["Registration", "registrations"]


class Registration(Protocol):
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
        key: Its key.
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
    """A CustomResourceDefinition with a conversion webhook; without one, nothing is written.

    Args:
        key: Its key.
    """

    key: ObjectKey

    def client_configs(self, live: Manifest) -> list[Mapping[str, Any]]:
        conversion = live["spec"].get("conversion") or {}
        return [conversion["webhook"].get("clientConfig") or {}] if conversion.get("strategy") == "Webhook" else []

    def with_bundle(self, live: Manifest, bundle: str) -> Manifest:
        del live
        return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}


def registrations(webhooks: Webhooks, address: Service | Url) -> list[Registration]:
    """Return the objects that register webhooks.

    Args:
        webhooks: The webhooks.
        address: The address of their server.
    """
    configured = [
        _Configuration(ObjectKey.of(manifest), tuple(entry["name"] for entry in manifest["webhooks"]))
        for manifest in configurations(webhooks, address)
    ]
    return [*configured, *(_Definition(definition_key(resource)) for resource in webhooks.conversions)]
