"""The garbage collector, and the deletion of namespaces.

Reports of what goes wrong: https://github.com/kubernetes/kubernetes/issues/77081 (a second delete in the foreground),
https://github.com/kubernetes/kubernetes/issues/111725 (dependents end before the finalizers of their owner),
https://github.com/zilliztech/milvus-operator/issues/52 (an owner that waits for its foreground deletion).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import ListOptions, Propagation
from ocf.objects import ObjectKey

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


async def test_foreground_deletion_leaves_the_grace_period_of_a_pod(collecting: Env) -> None:
    """The garbage collector removes its finalizer, but not the pod, which its kubelet still stops."""
    await collecting.create("Pod", "spec: {nodeName: gone, containers: [{name: web, image: 'web:1'}]}")
    await collecting.delete("Pod", propagation=Propagation.FOREGROUND)
    await collecting.until("Pod", lambda live: live is not None and "finalizers" not in live["metadata"])
    assert (await collecting.get("Pod"))["metadata"]["deletionGracePeriodSeconds"] == 30

    await collecting.delete("Pod", grace_period_seconds=0)
    await collecting.gone("Pod")


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

    @pytest.mark.parametrize("propagation", list(Propagation))
    async def test_a_namespace_is_deleted_with_every_propagation(
        self, collecting: Env, propagation: Propagation
    ) -> None:
        """With `orphan`, too: what is inside is deleted by the namespace controller, not as a dependent."""
        home = (await collecting.create("Namespace"))["metadata"]["name"]
        inside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": home}}
        await collecting.cluster.create(inside, field_manager="author")
        await collecting.delete("Namespace", propagation=propagation)
        await collecting.gone("Namespace")

        assert (await collecting.cluster.list("v1", "ConfigMap", ListOptions(namespace=home))).items == ()

    @pytest.mark.parametrize("kind", ["Gadget", "ConfigMap"])
    async def test_foreground_deletion_waits_for_blocking_dependents(self, collecting: Env, kind: str) -> None:
        """They may be outside of the namespace, or inside of it, where they are also its contents."""
        home = await collecting.create("Namespace")
        held = collecting.manifest(kind, owned_by(home, blocking=True, finalizers="a.io/x"))
        if kind == "ConfigMap":
            held["metadata"]["namespace"] = home["metadata"]["name"]
        await collecting.cluster.create(held, field_manager="author")
        await collecting.delete("Namespace", propagation=Propagation.FOREGROUND)
        await collecting.ending(ObjectKey.of(held))
        assert (await collecting.get("Namespace"))["metadata"]["finalizers"] == ["foregroundDeletion"]

        await collecting.release(ObjectKey.of(held))
        await collecting.gone("Namespace")

    async def test_blocking_dependents_inside_end_with_the_namespace(self, collecting: Env) -> None:
        home = (await collecting.create("Namespace"))["metadata"]["name"]
        owner = collecting.manifest("Widget", None, "owner")
        owner["metadata"]["namespace"] = home
        owner = await collecting.cluster.create(owner, field_manager="author")
        held = collecting.manifest("ConfigMap", owned_by(owner, blocking=True, finalizers="a.io/x"))
        held["metadata"]["namespace"] = home
        await collecting.cluster.create(held, field_manager="author")
        await collecting.delete("Namespace", propagation=Propagation.FOREGROUND)
        await collecting.ending(ObjectKey.of(held))

        await collecting.release(ObjectKey.of(held))
        await collecting.gone("Namespace")

    async def test_orphans_of_a_namespace_lose_the_owner_reference(self, collecting: Env) -> None:
        home = await collecting.create("Namespace")
        await collecting.create("Gadget", owned_by(home, blocking=True))
        await collecting.delete("Namespace", propagation=Propagation.ORPHAN)
        await collecting.gone("Namespace")

        assert "ownerReferences" not in (await collecting.get("Gadget"))["metadata"]

    @pytest.mark.parametrize("propagation", [Propagation.FOREGROUND, Propagation.ORPHAN])
    async def test_another_finalizer_of_a_namespace_stays(self, collecting: Env, propagation: Propagation) -> None:
        """The garbage collector and the namespace controller remove only their own ones."""
        await collecting.create("Namespace", "metadata: {finalizers: [a.io/x]}")
        await collecting.delete("Namespace", propagation=propagation)

        def ended(live: Manifest | None) -> bool:
            return (
                live is not None and live["metadata"]["finalizers"] == ["a.io/x"] and "finalizers" not in live["spec"]
            )

        await collecting.until("Namespace", ended)
        await collecting.merge("Namespace", "metadata: {finalizers: null}")
        await collecting.gone("Namespace")

    async def test_a_second_delete_does_not_change_the_propagation(self, collecting: Env) -> None:
        """As long as there are contents, and whatever it asks for."""
        home = await collecting.create("Namespace")
        held = collecting.manifest("ConfigMap", owned_by(home, blocking=True, finalizers="a.io/x"))
        held["metadata"]["namespace"] = home["metadata"]["name"]
        await collecting.cluster.create(held, field_manager="author")
        await collecting.delete("Namespace", propagation=Propagation.FOREGROUND)
        await collecting.delete("Namespace", propagation=Propagation.ORPHAN)
        assert (await collecting.get("Namespace"))["metadata"]["finalizers"] == ["foregroundDeletion"]

        await collecting.ending(ObjectKey.of(held))
        await collecting.release(ObjectKey.of(held))
        await collecting.gone("Namespace")

    async def test_an_object_cannot_be_created_in_a_missing_namespace(self, collecting: Env) -> None:
        nowhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": "nowhere"}}

        with collecting.error(404, "NotFound", 'namespaces "nowhere" not found'):
            await collecting.cluster.create(nowhere, field_manager="author")


_ENDING = ("NamespaceTerminating metadata.namespace: namespace <namespace>-demo is being terminated",)
