"""The rights that `ocf explain` needs in a cluster, as a Role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ocf.autoscaling.linter.namespace_index import VERTICAL
from ocf.cli.explain.surroundings import SCALED_OBJECT
from ocf.cluster import ServiceAccount
from ocf.controllers.hpa.manifests import TARGETS
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.runtime.rbac import PolicyRule, roles

__all__ = ["role"]

_NAME: Final = "ocf-explain"


def role(namespace: str) -> Manifest:
    """Return a Role with the rights to read all that a sync reads, and what surrounds an autoscaler."""
    found = roles(set(_rules()), name=_NAME, account=ServiceAccount(_NAME, namespace), namespaces=[namespace])
    return found[0]


def _rules() -> Iterator[PolicyRule]:
    for api_version, resource in ((BUILT_IN[0], "horizontalpodautoscalers"), (OWN[0], "horizontalautoscalers")):
        for verb in ("get", "list"):
            yield PolicyRule(api_version.partition("/")[0], resource, verb)
    for target in TARGETS:
        yield PolicyRule(target.group, f"{target.resource}/scale", "get")
        yield PolicyRule(target.group, target.resource, "get")
    # For what surrounds the autoscaler; without these the page is shorter.
    yield PolicyRule("apps", "replicasets", "list")
    yield PolicyRule(split_api_version(SCALED_OBJECT[0])[0], "scaledobjects", "list")
    yield PolicyRule(split_api_version(VERTICAL[0])[0], "verticalpodautoscalers", "list")
    yield PolicyRule("", "pods", "list")
    yield PolicyRule("", "events", "list")
    yield PolicyRule(RESOURCE_METRICS, "pods", "list")
    yield PolicyRule(CUSTOM_METRICS, "*", "get")
    yield PolicyRule(EXTERNAL_METRICS, "*", "list")
