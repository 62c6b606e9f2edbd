"""What the embedded cluster refuses, and what a real server does there.

Each marker is a row of the list in `docs/clusters.md`, which `scripts/write_refusals.py` writes.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.errors import BadRequestError, NotFoundError, TooManyRequestsError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Place

ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NOBODY: Final = {"url": "https://127.0.0.1:9/"}
BY_WEBHOOK: Final = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": NOBODY},
}


def gizmos(schema: dict[str, Any] = ANYTHING, *, group: str = "gizmos.example.com", **spec: Any) -> dict[str, Any]:
    """Return a definition of a kind that no other test has."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gizmos.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gizmo", "plural": "gizmos"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            **spec,
        },
    }


@pytest.mark.refused("evaluate x-kubernetes-validations", "leave the rules out, or test them against a real API server")
async def test_rules_in_cel_are_evaluated(place: Place, unless_refused: AbstractContextManager[None]) -> None:
    size = {"type": "object", "properties": {"size": {"type": "integer"}}}
    spec = {**size, "x-kubernetes-validations": [{"rule": "self.size > 3", "message": "it is too small"}]}
    gizmo = {
        "apiVersion": "gizmos.example.com/v1",
        "kind": "Gizmo",
        "metadata": {"name": "demo", "namespace": place.namespace},
        "spec": {"size": 1},
    }
    with unless_refused:
        await place.cluster.create(gizmos({"type": "object", "properties": {"spec": spec}}), field_manager="author")
        await served(place, "gizmos.example.com/v1")
        with place.error(422, "Invalid", None, "FieldValueInvalid spec: Invalid value: it is too small"):
            await place.cluster.create(gizmo, field_manager="author")


async def served(place: Place, api_version: str) -> None:
    """Wait until gizmos are served."""
    async with asyncio.timeout(60):
        while True:
            with suppress(NotFoundError, TooManyRequestsError):
                await place.cluster.list(api_version, "Gizmo")
                return
            await asyncio.sleep(0.05)


@pytest.mark.refused("convert custom resources by a webhook", "use conversion strategy None")
async def test_conversion_webhooks_are_taken(place: Place, unless_refused: AbstractContextManager[None]) -> None:
    with unless_refused:
        definition = gizmos(group="converted.example.com", conversion=BY_WEBHOOK)
        await place.cluster.create(definition, field_manager="author", dry_run=True)


@pytest.mark.refused("evaluate matchConditions", "use namespaceSelector, objectSelector and rules")
@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
async def test_conditions_of_webhooks_are_taken(
    place: Place, unless_refused: AbstractContextManager[None], kind: str
) -> None:
    webhook = {
        "name": "demo.conformance.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": NOBODY,
        "matchConditions": [{"name": "demo", "expression": "true"}],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "conformance"}}
    with unless_refused:
        await place.cluster.create({**head, "webhooks": [webhook]}, field_manager="author", dry_run=True)


@pytest.mark.refused("aggregate other servers", "register their kinds as CustomKind")
async def test_other_servers_are_known(place: Place, unless_refused: AbstractContextManager[None]) -> None:
    with unless_refused:
        found = await place.cluster.list("apiregistration.k8s.io/v1", "APIService")
        assert {item["metadata"]["name"] for item in found.items} >= {"v1.", "v1.apps"}


async def test_what_is_refused_is_not_stored(place: Place) -> None:
    definition = gizmos(group="other.example.com", conversion=BY_WEBHOOK)
    with suppress(BadRequestError):
        await place.cluster.create(definition, field_manager="author", dry_run=not place.refuses)

    with pytest.raises(NotFoundError):
        await place.cluster.get(ObjectKey.of(definition))
