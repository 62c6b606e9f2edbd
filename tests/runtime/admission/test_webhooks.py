"""What is declared, and the configurations that follow."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from ocf.errors import BuildError
from ocf.objects import Manifest
from ocf.runtime.admission import Match, Operation, Service, Url, Webhook, Webhooks, configurations
from ocf.runtime.admission.routes import routes
from ocf_server import EmbeddedCluster

SHOPS: Webhook[Manifest] = Webhook("example.com", "v1", "Shop", "shops")


@pytest.mark.parametrize(
    ("address", "config"),
    [
        pytest.param(
            Service("shops-webhook", "ops"),
            {
                "service": {
                    "name": "shops-webhook",
                    "namespace": "ops",
                    "path": "/validate/example.com/shops",
                    "port": 443,
                }
            },
            id="service",
        ),
        pytest.param(
            Url("https://127.0.0.1:9443/"), {"url": "https://127.0.0.1:9443/validate/example.com/shops"}, id="url"
        ),
    ],
)
def test_a_configuration_says_everything(webhooks: Webhooks, address: Service | Url, config: Any) -> None:
    mutating, validating = configurations(webhooks, address, ca_bundle=b"PEM")
    assert validating == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "shops"},
        "webhooks": [
            {
                "name": "validate.shops.example.com",
                "clientConfig": {**config, "caBundle": base64.b64encode(b"PEM").decode()},
                "rules": [
                    {
                        "apiGroups": ["example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["shops"],
                        "scope": "*",
                    }
                ],
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": 10,
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    assert mutating["kind"] == "MutatingWebhookConfiguration"
    assert mutating["webhooks"][0]["name"] == "default.shops.example.com"


def test_without_defaulters_nothing_is_mutated() -> None:
    (validating,) = configurations(Webhooks("shops", [SHOPS]), Url("https://x"))
    assert validating["kind"] == "ValidatingWebhookConfiguration"
    assert "caBundle" not in validating["webhooks"][0]["clientConfig"]


def test_deletes_are_asked_of_validators_only() -> None:
    match = Match(operations=[Operation.CREATE, Operation.DELETE])
    webhook: Webhook[Manifest] = Webhook("", "v1", "Pod", "pods", None, [lambda _: None], match=match)
    mutating, validating = configurations(Webhooks("pods", [webhook]), Url("https://x"))
    assert "DELETE" not in mutating["webhooks"][0]["rules"][0]["operations"]
    assert "DELETE" in validating["webhooks"][0]["rules"][0]["operations"]
    assert validating["webhooks"][0]["name"] == "validate.pods.core.k8s.io"


async def test_the_embedded_cluster_takes_them(webhooks: Webhooks) -> None:
    cluster = EmbeddedCluster()
    for manifest in configurations(webhooks, Service("shops-webhook", "ops")):
        created = await cluster.create(manifest, field_manager="t")
        assert created["webhooks"][0]["rules"] == manifest["webhooks"][0]["rules"]


@pytest.mark.parametrize(
    ("name", "given", "timeout", "problem"),
    [
        pytest.param("", [SHOPS], 10, "need a name", id="no name"),
        pytest.param("x", [], 10, "expected at least one webhook, got none", id="no webhook"),
        pytest.param("x", [SHOPS, SHOPS], 10, "shops.example.com has two webhooks without a name", id="twice"),
        pytest.param("x", [SHOPS], 31, "between 1 and 30 seconds, got 31", id="too patient"),
        pytest.param("x", [SHOPS], 0.5, "between 1 and 30 seconds, got 0.5", id="too hasty"),
        pytest.param("x", [SHOPS], 1.5, "a whole number of seconds, got 1.5", id="a part of a second"),
    ],
)
def test_what_is_refused(name: str, given: list[Webhook[Any]], timeout: float, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Webhooks(name, given, timedelta(seconds=timeout))


def test_the_version_must_be_there(definition: Manifest) -> None:
    with pytest.raises(BuildError, match='no version "v2", only v1'):
        Webhook.of(BaseModel, definition, version="v2")


def test_a_path_of_the_server_is_one_webhook_and_one_step(webhooks: Webhooks) -> None:
    assert {path: route.name for path, route in routes(webhooks).items()} == {
        "/default/example.com/shops": "default.shops.example.com",
        "/validate/example.com/shops": "validate.shops.example.com",
    }
