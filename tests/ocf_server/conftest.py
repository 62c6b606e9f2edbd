"""Fixtures: a cluster with a fixed clock, and builders of common objects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ocf.objects import Manifest
from ocf_server import CustomKind, EmbeddedCluster


@dataclass
class FixedClock:
    """Returns the same instant until it is advanced."""

    instant: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.instant

    def advance(self, seconds: float) -> None:
        self.instant += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def cluster(clock: FixedClock) -> EmbeddedCluster:
    kinds = [
        CustomKind("example.com", "v1", "Widget"),
        CustomKind("example.com", "v1", "Gadget", namespaced=False, status=False),
    ]
    return EmbeddedCluster(kinds=kinds, namespaces=("shop", "other"), now=clock)


@pytest.fixture
def deployment() -> Callable[..., Manifest]:
    def build(replicas: int | None = 3, name: str = "web", **metadata: Any) -> Manifest:
        manifest: Manifest = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "shop", **metadata},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]},
                },
            },
        }
        if replicas is None:
            del manifest["spec"]["replicas"]
        return manifest

    return build


@pytest.fixture
def config_map() -> Callable[..., Manifest]:
    def build(name: str = "settings", data: dict[str, str] | None = None, **metadata: Any) -> Manifest:
        manifest: Manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "shop", **metadata},
        }
        if data is not None:
            manifest["data"] = data
        return manifest

    return build
