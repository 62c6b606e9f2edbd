"""Bundles for OLM: what the validators of operator-sdk find, as recorded, and what they cannot find."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ocf.manifests import Format, render
from ocf.objects import load_document
from tests.manifests.bundles import BUNDLES, RECORDED, digest, files
from tests.manifests.support import installation


def recorded(name: str) -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text(encoding="utf-8"))[name])


def service_version(**options: Any) -> dict[str, Any]:
    written = render(installation(**options), Format.OLM).generated
    return dict(load_document(written["manifests/shops.clusterserviceversion.yaml"]))


@pytest.mark.parametrize("name", BUNDLES)
def test_the_validators_have_seen_this_bundle(name: str) -> None:
    """After a change, validate and record it anew: `python -m scripts.record.olm`."""
    assert digest(files(name)) == recorded(name)["digest"]


def levels(name: str) -> list[str]:
    return [found["level"] for found in recorded(name)["findings"]]


@pytest.mark.parametrize("name", [name for name in BUNDLES if not name.startswith("broken")])
def test_the_validators_find_no_error(name: str) -> None:
    assert "Error" not in levels(name)


@pytest.mark.parametrize("name", [name for name in BUNDLES if not name.startswith("broken")])
def test_the_only_warning_is_about_privileges_for_events(name: str) -> None:
    """Rules name no version, and the validator takes any rule for events for one for the version that was removed."""
    assert [found["detail"] for found in recorded(name)["findings"] if "for events: " not in found["detail"]] == []


@pytest.mark.parametrize("name", [name for name in BUNDLES if name.startswith("broken")])
def test_the_validators_find_what_is_missing(name: str) -> None:
    assert "Error" in levels(name)


def test_namespaces_are_those_that_olm_selects() -> None:
    (deployment,) = service_version()["spec"]["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each for each in container["env"]}

    path = env["WATCH_NAMESPACES"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.annotations['olm.targetNamespaces']"


def test_an_operator_of_cluster_scoped_owners_supports_all_namespaces_only() -> None:
    def supported(**options: Any) -> list[str]:
        return [mode["type"] for mode in service_version(**options)["spec"]["installModes"] if mode["supported"]]

    assert supported(cluster_scoped=True) == ["AllNamespaces"]
    assert "OwnNamespace" in supported()


def test_the_conversion_webhook_is_declared_to_olm_which_writes_it_into_the_definition() -> None:
    files = render(installation(converting=True, webhooks=False), Format.OLM).generated
    spec = load_document(files["manifests/shops.clusterserviceversion.yaml"])["spec"]

    assert spec["webhookdefinitions"] == [
        {
            "type": "ConversionWebhook",
            "generateName": "convert.shops.example.com",
            "deploymentName": "shops",
            "containerPort": 443,
            "targetPort": 9443,
            "webhookPath": "/convert/example.com/shops",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "conversionCRDs": ["shops.example.com"],
        }
    ]
    assert [mode["type"] for mode in spec["installModes"] if mode["supported"]] == ["AllNamespaces"]
    assert "conversion" not in load_document(files["manifests/shops.example.com.crd.yaml"])["spec"]


def test_privileges_for_objects_without_a_namespace_are_for_the_cluster() -> None:
    install = service_version(cluster_scoped=True)["spec"]["install"]["spec"]

    def resources(scope: str) -> set[str]:
        return {name for each in install[scope] for rule in each["rules"] for name in rule["resources"]}

    assert resources("clusterPermissions") == {"shops", "shops/status", "shops/finalizers"}
    assert resources("permissions") == {"configmaps", "events", "leases"}


def test_the_certificate_of_the_webhooks_comes_from_olm() -> None:
    """OLM mounts it and writes the `caBundle`, so the operator needs no Secret of its own."""
    version = service_version()["spec"]
    (deployment,) = version["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    granted = json.dumps(version["install"]["spec"]["permissions"])

    assert env["WEBHOOK_CERTIFICATES"] == "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 (where OLM mounts it)
    assert "secrets" not in granted
    assert [each["targetPort"] for each in version["webhookdefinitions"]] == [9443, 9443]
