"""The garbage collector, and the deletion of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import ListOptions, Propagation

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Env


def owned_by(*owners: Manifest, blocking: bool = False, finalizers: str = "") -> str:
    """Return the metadata of a dependent."""
    references = ", ".join(
        f"{{apiVersion: {owner['apiVersion']}, kind: {owner['kind']}, name: {owner['metadata']['name']}, "
        f"uid: {owner['metadata']['uid']}{', blockOwnerDeletion: true' if blocking else ''}}}"
        for owner in owners
    )
    return f"metadata: {{ownerReferences: [{references}], finalizers: [{finalizers}]}}"


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Widget"])
@pytest.mark.promise("conformance")
async def test_dependents_are_deleted_with_their_owner(collecting: Env, kind: str) -> None:
    owner = await collecting.create(kind, name="owner")
    await collecting.create("ConfigMap", owned_by(owner))
    await collecting.delete(kind, "owner")

    await collecting.gone("ConfigMap")


async def test_dependents_of_dependents_are_deleted_too(collecting: Env) -> None:
    first = await collecting.create("Widget", name="first")
    second = await collecting.create("ConfigMap", owned_by(first), "second")
    await collecting.create("Secret", owned_by(second), "third")
    await collecting.delete("Widget", "first")

    await collecting.gone("ConfigMap", "second")
    await collecting.gone("Secret", "third")


async def test_dependents_of_a_cluster_scoped_owner_are_deleted_too(collecting: Env) -> None:
    owner = await collecting.create("Gadget")
    await collecting.create("ConfigMap", owned_by(owner))
    await collecting.delete("Gadget")

    await collecting.gone("ConfigMap")


async def test_a_dependent_stays_while_one_owner_exists(collecting: Env) -> None:
    """It loses the reference to the deleted owner."""
    going, staying = await collecting.create("Widget", name="going"), await collecting.create("Widget", name="staying")
    await collecting.create("ConfigMap", owned_by(going, staying))
    await collecting.delete("Widget", "going")
    left = [staying["metadata"]["uid"]]

    def judged(live: Manifest | None) -> bool:
        assert live is not None
        return [each["uid"] for each in live["metadata"]["ownerReferences"]] == left

    await collecting.until("ConfigMap", judged)


async def test_a_dependent_with_a_finalizer_waits_for_it(collecting: Env) -> None:
    owner = await collecting.create("Widget", name="owner")
    await collecting.create("ConfigMap", owned_by(owner, finalizers="a.io/x"))
    await collecting.delete("Widget", "owner")
    await collecting.until("ConfigMap", lambda live: live is not None and "deletionTimestamp" in live["metadata"])
    await collecting.merge("ConfigMap", "metadata: {finalizers: null}")

    assert not await collecting.exists("ConfigMap")


async def test_orphans_stay_without_the_owner_reference(collecting: Env) -> None:
    owner = await collecting.create("Widget", name="owner")
    await collecting.create("ConfigMap", owned_by(owner))
    await collecting.delete("Widget", "owner", propagation=Propagation.ORPHAN)
    await collecting.gone("Widget", "owner")

    assert "ownerReferences" not in (await collecting.get("ConfigMap"))["metadata"]


async def test_foreground_deletion_deletes_dependents_first(collecting: Env) -> None:
    owner = await collecting.create("Widget", name="owner")
    await collecting.create("ConfigMap", owned_by(owner, blocking=True, finalizers="a.io/x"))
    await collecting.delete("Widget", "owner", propagation=Propagation.FOREGROUND)
    await collecting.until("ConfigMap", lambda live: live is not None and "deletionTimestamp" in live["metadata"])
    assert (await collecting.get("Widget", "owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]

    await collecting.merge("ConfigMap", "metadata: {finalizers: null}")
    await collecting.gone("Widget", "owner")


async def test_foreground_deletion_waits_only_for_blocking_dependents(collecting: Env) -> None:
    owner = await collecting.create("Widget", name="owner")
    await collecting.create("ConfigMap", owned_by(owner, finalizers="a.io/x"))
    await collecting.delete("Widget", "owner", propagation=Propagation.FOREGROUND)
    await collecting.gone("Widget", "owner")

    await collecting.until("ConfigMap", lambda live: live is not None and "deletionTimestamp" in live["metadata"])


async def test_an_owner_is_identified_by_its_uid(collecting: Env) -> None:
    """A new object of the same name is not an owner."""
    old = await collecting.create("Widget", name="owner")
    await collecting.delete("Widget", "owner")
    await collecting.create("Widget", name="owner")
    await collecting.create("ConfigMap", owned_by(old))

    await collecting.gone("ConfigMap")


class TestNamespaces:
    async def test_a_namespace_is_deleted_after_its_objects(self, collecting: Env) -> None:
        home = (await collecting.create("Namespace"))["metadata"]["name"]
        inside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": home}}
        await collecting.cluster.create(inside, field_manager="author")
        await collecting.delete("Namespace")
        await collecting.gone("Namespace")

        assert (await collecting.cluster.list("v1", "ConfigMap", ListOptions(namespace=home))).items == ()

    async def test_a_namespace_waits_for_finalizers_of_its_objects(self, collecting: Env) -> None:
        home = await collecting.create("Namespace")
        metadata = {"name": "demo", "namespace": home["metadata"]["name"], "finalizers": ["a.io/x"]}
        held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        await collecting.cluster.create(held, field_manager="author")
        await collecting.delete("Namespace")

        assert (await collecting.get("Namespace"))["status"]["phase"] == "Terminating"
        with collecting.error(403, "Forbidden", None, *_ENDING):
            await collecting.cluster.create({**held, "metadata": {**metadata, "name": "late"}}, field_manager="author")

    async def test_an_object_cannot_be_created_in_a_missing_namespace(self, collecting: Env) -> None:
        nowhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": "nowhere"}}

        with collecting.error(404, "NotFound", 'namespaces "nowhere" not found'):
            await collecting.cluster.create(nowhere, field_manager="author")


_ENDING = ("NamespaceTerminating metadata.namespace: namespace <namespace>-demo is being terminated",)
