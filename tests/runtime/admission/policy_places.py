"""Clusters for tests of admission policies, the embedded one and a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from kubernetes.client import V1ConfigMap
from pydantic import BaseModel

from ocf.cluster import Cluster
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Match, Policy
from ocf.runtime.admission.policies import apply_policies
from ocf_server import EmbeddedCluster
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.testing.envtest.fixtures import Envtest

MANAGER: Final = "test"


@dataclass(frozen=True)
class Place:
    """A cluster and a namespace of it in which no other test writes."""

    cluster: Cluster
    namespace: str

    def policy(self, model: type[BaseModel] = V1ConfigMap, **settings: Any) -> Policy:
        """Return a policy of objects that have the label of this test, unless it is said otherwise."""
        match = settings.pop("match", Match())
        labelled = replace(match, objects=match.objects or {"matchLabels": {"test": self.namespace}})
        return Policy.of(model, f"policy-{self.namespace}", match=labelled, **settings)

    def object(self, name: str = "one", *, namespace: str = "", **fields: Any) -> Manifest:
        metadata = {"name": name, "namespace": namespace or self.namespace, "labels": {"test": self.namespace}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}

    def config(self, *keys: str, **settings: str) -> Manifest:
        return self.object(data=dict.fromkeys(keys, ""), **settings)

    async def create(self, manifest: Manifest, **options: Any) -> Manifest:
        return await self.cluster.create(manifest, field_manager=MANAGER, **options)

    async def enforce(self, policy: Policy, denied: Manifest, namespace: str = "") -> ApiError:
        """Apply a policy and wait until an object is denied by it; return the error."""
        await apply_policies(self.cluster, [policy], namespace=namespace, field_manager=MANAGER)

        async def error() -> ApiError | None:
            try:
                await self.create(denied, dry_run=True)
            except ApiError as error:
                return error
            return None

        found = await eventually(error)
        assert found is not None
        return found

    async def mutate(self, policy: Policy, manifest: Manifest, holds: Callable[[Manifest], bool]) -> Manifest:
        """Apply a policy and return an object once it changes it."""
        await apply_policies(self.cluster, [policy], field_manager=MANAGER)
        return await eventually(lambda: self.create(manifest, dry_run=True), holds)


async def clean(place: Place) -> None:
    for kind in ("Validating", "Mutating"):
        for part in ("Binding", ""):
            name = f"policy-{place.namespace}"
            key = ObjectKey("admissionregistration.k8s.io/v1", f"{kind}AdmissionPolicy{part}", name, "")
            try:
                await place.cluster.delete(key)
            except NotFoundError:
                continue


@asynccontextmanager
async def opened_place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    if request.param == "embedded":
        yield Place(EmbeddedCluster(namespaces=["shop"]), "shop")
        return
    envtest: Envtest = request.getfixturevalue("envtest")
    async with await envtest.plane.cluster() as cluster:
        place = Place(cluster, envtest.namespace)
        try:
            yield place
        finally:
            await clean(place)
