"""Fields that a create or an update cannot set."""

from ocf.objects import Manifest
from ocf_server import EmbeddedCluster

HELD = {"holderIdentity": "a"}


def lease(**spec: str) -> Manifest:
    metadata = {"name": "lock", "namespace": "shop"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {**HELD, **spec}}


async def test_fields_of_a_feature_that_is_off_are_removed(cluster: EmbeddedCluster) -> None:
    created = await cluster.create(lease(strategy="OldestEmulationVersion"), field_manager="ours")
    changed = lease(preferredHolder="b")
    changed["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    updated = await cluster.update(changed, field_manager="ours")

    assert (created["spec"], updated["spec"]) == (HELD, HELD)


async def test_an_update_cannot_change_the_finalizers_of_a_namespace(cluster: EmbeddedCluster) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}, "spec": {"finalizers": ["a/b"]}}
    updated = await cluster.update(namespace, field_manager="ours")

    assert updated["spec"] == {"finalizers": ["kubernetes"]}
