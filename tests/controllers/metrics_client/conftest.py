"""An API server with fixed responses by path, which records its requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest

CUSTOM: dict[str, Any] = {
    "versions": [
        {"groupVersion": "custom.metrics.k8s.io/v1beta2", "version": "v1beta2"},
        {"groupVersion": "custom.metrics.k8s.io/v1beta1", "version": "v1beta1"},
    ],
    "preferredVersion": {"groupVersion": "custom.metrics.k8s.io/v1beta2", "version": "v1beta2"},
}


@dataclass
class Paths:
    """Responses by path; other paths do not exist."""

    content: dict[str, Manifest | ApiError] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        del most_bytes
        self.asked.append((path, dict(query)))
        found = self.content.get(path)
        if found is None:
            raise NotFoundError(f"GET {path}: HTTP 404 without a Status that gives the reason", code=404)
        if isinstance(found, ApiError):
            raise found
        return found

    def holds(self, path: str, *items: Any) -> None:
        """Set the items of a list at a path."""
        self.content[path] = {"items": list(items)}


@pytest.fixture
def paths() -> Paths:
    return Paths({"/apis/custom.metrics.k8s.io": CUSTOM})


@pytest.fixture
def served(paths: Paths) -> RESTMetricsClient:
    return RESTMetricsClient(paths)
