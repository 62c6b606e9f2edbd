"""The definition of caches: names, version, columns, and every field with its limits and its default."""

import runpy
import sys
from typing import Any, Final

import pytest

from examples.memcached.admission import webhooks
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from ocf.objects import Manifest, dump_document
from ocf.runtime.admission import Step, Webhook

DEFINITION: Final = Memcached.definition()
(VERSION,) = DEFINITION["spec"]["versions"]
EXPORTER = "prom/memcached-exporter:v0.15.4"

FIELDS: Final[dict[str, Manifest]] = {
    "replicas": {"type": "integer", "minimum": 0, "maximum": 64},
    "image": {"type": "string", "default": "memcached:1.6"},
    "suspended": {"type": "boolean", "default": False},
    "memcached.maxMemoryMB": {"type": "integer", "minimum": 16, "maximum": 65536, "default": 64},
    "memcached.maxConnections": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 1024},
    "memcached.threads": {"type": "integer", "minimum": 1, "maximum": 128, "default": 4},
    "memcached.maxItemSize": {"type": "string", "pattern": "^[0-9]+(k|m)$", "default": "1m"},
    "memcached.verbosity": {"type": "integer", "minimum": 0, "maximum": 2, "default": 0},
    "memcached.extraArgs": {"type": "array"},
    "highAvailability.antiAffinityPreset": {"type": "string", "enum": ["soft", "hard"], "default": "soft"},
    "highAvailability.topologySpreadConstraints": {"type": "array"},
    "highAvailability.podDisruptionBudget.enabled": {"type": "boolean", "default": False},
    "highAvailability.podDisruptionBudget.minAvailable": {"x-kubernetes-int-or-string": True},
    "highAvailability.podDisruptionBudget.maxUnavailable": {"x-kubernetes-int-or-string": True},
    "highAvailability.gracefulShutdown.enabled": {"type": "boolean", "default": False},
    "highAvailability.gracefulShutdown.preStopDelaySeconds": {"minimum": 1, "maximum": 300, "default": 10},
    "highAvailability.gracefulShutdown.terminationGracePeriodSeconds": {"minimum": 1, "maximum": 600, "default": 30},
    "monitoring.enabled": {"type": "boolean", "default": False},
    "monitoring.exporterImage": {"type": "string", "default": EXPORTER},
    "monitoring.exporterResources.limits": {"type": "object"},
    "monitoring.serviceMonitor.additionalLabels": {"type": "object"},
    "monitoring.serviceMonitor.interval": {"type": "string", "default": "30s"},
    "monitoring.serviceMonitor.scrapeTimeout": {"type": "string", "default": "10s"},
    "security.podSecurityContext.runAsNonRoot": {"type": "boolean"},
    "security.containerSecurityContext.readOnlyRootFilesystem": {"type": "boolean"},
    "security.sasl.enabled": {"type": "boolean", "default": False},
    "security.sasl.credentialsSecretRef.name": {"type": "string"},
    "security.tls.enabled": {"type": "boolean", "default": False},
    "security.tls.certificateSecretRef.name": {"type": "string"},
    "security.tls.enableClientCert": {"type": "boolean", "default": False},
    "security.networkPolicy.enabled": {"type": "boolean", "default": False},
    "security.networkPolicy.allowedSources": {"type": "array"},
    "autoscaling.enabled": {"type": "boolean", "default": False},
    "autoscaling.minReplicas": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
    "autoscaling.maxReplicas": {"type": "integer", "minimum": 1},
    "autoscaling.metrics": {"type": "array"},
    "autoscaling.behavior.scaleDown.stabilizationWindowSeconds": {"type": "integer"},
    "service.annotations": {"type": "object"},
    "resources.requests": {"type": "object"},
}


def field(path: str) -> dict[str, Any]:
    found: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name in path.split("."):
        found = found["properties"][name]
    return found


def test_operator_and_webhooks_name_the_kind_as_its_definition_does() -> None:
    owner = memcached_operator.owner
    assert (owner.api_version, owner.kind, owner.model) == ("memcached.c5c3.io/v1alpha1", "Memcached", Memcached)
    (webhook,) = webhooks().webhooks
    assert webhook.path(Step.VALIDATE) == Webhook.of(Memcached, DEFINITION).path(Step.VALIDATE)
    assert (webhook.kind, webhook.version) == (Memcached.__name__, VERSION["name"])


def test_names_and_version() -> None:
    assert DEFINITION["metadata"]["name"] == "memcacheds.memcached.c5c3.io"
    assert (DEFINITION["spec"]["names"]["kind"], DEFINITION["spec"]["scope"]) == ("Memcached", "Namespaced")
    assert (VERSION["name"], VERSION["served"], VERSION["storage"]) == ("v1alpha1", True, True)
    assert VERSION["subresources"] == {"status": {}}


def test_columns() -> None:
    assert [(each["name"], each["jsonPath"], each["type"]) for each in VERSION["additionalPrinterColumns"]] == [
        ("Replicas", ".spec.replicas", "integer"),
        ("Ready", ".status.readyReplicas", "integer"),
        ("Age", ".metadata.creationTimestamp", "date"),
    ]


@pytest.mark.parametrize("path", FIELDS)
def test_a_field_its_limits_and_its_default(path: str) -> None:
    found = field(path)

    assert FIELDS[path].items() <= found.items()
    assert ("default" in FIELDS[path]) == ("default" in found) or path.endswith("Ref.name")


def test_no_field_of_ours_is_required() -> None:
    sections = {path.rpartition(".")[0] for path in FIELDS} - {""}

    assert not [path for path in sections if "required" in field(path) and "behavior" not in path]
    assert "required" not in VERSION["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_the_status() -> None:
    status = VERSION["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]

    assert set(status) == {"conditions", "readyReplicas", "observedGeneration", "serverList"}
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "examples.memcached.definition", raising=False)
    runpy.run_module("examples.memcached.definition", run_name="__main__")

    assert capsys.readouterr().out == dump_document(DEFINITION)
