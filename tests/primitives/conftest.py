"""Baselines that the tests of the primitives start from."""

from typing import Any

import pytest

from ocf.objects import Manifest


@pytest.fixture
def hpa_base() -> Manifest:
    """A small autoscaler."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "backend-hpa", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "backend"},
            "minReplicas": 2,
            "maxReplicas": 10,
        },
    }


@pytest.fixture
def deployment_base() -> Manifest:
    """A small Deployment with two containers and one init container."""
    containers: list[dict[str, Any]] = [{"name": "app", "image": "app:1"}, {"name": "sidecar", "image": "sidecar:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "backend", "namespace": "shop"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "backend"}},
            "template": {
                "metadata": {"labels": {"app": "backend"}},
                "spec": {"containers": containers, "initContainers": [{"name": "setup", "image": "setup:1"}]},
            },
        },
    }
