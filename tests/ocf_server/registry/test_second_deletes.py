"""Further deletes of an object that is being deleted, with another propagation policy.

The tables are what a real API server (1.36.3) stored, with its namespace controller and its garbage collector where the
cluster collects garbage. Public reports: https://github.com/kubernetes/kubernetes/issues/65569 (only a further delete
in the background ends a foreground deletion), https://github.com/kubernetes/kubernetes/issues/77081.
"""

from itertools import product
from typing import Final

import pytest

from ocf.cluster import DeleteOptions, Propagation
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

OWN: Final = "example.com/own"
ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
POLICIES: Final[tuple[Propagation | None, ...]] = (None, *Propagation)
SETS: Final = {Propagation.ORPHAN: [ORPHAN], Propagation.FOREGROUND: [FOREGROUND], Propagation.BACKGROUND: [], None: []}


def config_map(*finalizers: str) -> Manifest:
    metadata = {"name": "one", "namespace": "default", "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def finalizers_after(cluster: EmbeddedCluster, key: ObjectKey, policy: Propagation | None) -> list[str] | None:
    """Return the finalizers after a delete; None if the object is gone."""
    await cluster.delete(key, DeleteOptions(propagation=policy))
    try:
        return list((await cluster.get(key))["metadata"].get("finalizers", ()))
    except NotFoundError:
        return None


@pytest.mark.parametrize("own", [[], [OWN]], ids=["without other finalizers", "with another finalizer"])
@pytest.mark.parametrize(("first", "second"), list(product(POLICIES, POLICIES)))
async def test_the_policy_of_a_further_delete_replaces_the_earlier_one(
    first: Propagation | None, second: Propagation | None, own: list[str]
) -> None:
    """Without a policy the earlier one stays; an object without finalizers is gone at once."""
    cluster = EmbeddedCluster(collect=False)
    key = ObjectKey.of(await cluster.create(config_map(*own), field_manager="user"))
    once = await finalizers_after(cluster, key, first)
    assert once == ([*own, *SETS[first]] or None)
    if once is None:
        return
    kept = SETS[first] if second is None else SETS[second]
    assert await finalizers_after(cluster, key, second) == ([*own, *kept] or None)


@pytest.mark.parametrize("sent", [[ORPHAN, OWN], [OWN, FOREGROUND], [ORPHAN]])
@pytest.mark.parametrize("policy", list(Propagation))
async def test_a_policy_replaces_the_finalizers_of_the_user(sent: list[str], policy: Propagation) -> None:
    cluster = EmbeddedCluster(collect=False)
    key = ObjectKey.of(await cluster.create(config_map(*sent), field_manager="user"))
    own = [name for name in sent if name == OWN]
    after = await finalizers_after(cluster, key, policy)
    assert (None if after is None else sorted(after)) == (sorted([*own, *SETS[policy]]) or None)


@pytest.mark.parametrize("second", POLICIES)
async def test_a_further_delete_of_a_namespace_changes_nothing_before_its_content_is_gone(
    second: Propagation | None,
) -> None:
    cluster = EmbeddedCluster(namespaces=["town"])
    metadata = {"name": "kept", "namespace": "town", "finalizers": [OWN]}
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="user")
    key = ObjectKey("v1", "Namespace", "town")
    await cluster.delete(key)
    before = await cluster.get(key)
    assert await finalizers_after(cluster, key, second) == []
    assert await cluster.get(key) == before


@pytest.mark.parametrize(
    ("second", "owner_stays", "references"),
    [
        pytest.param(None, True, 1, id="none"),
        pytest.param(Propagation.FOREGROUND, True, 1, id="foreground"),
        pytest.param(Propagation.BACKGROUND, False, 1, id="background"),
        pytest.param(Propagation.ORPHAN, False, 0, id="orphan"),
    ],
)
@pytest.mark.parametrize("kind", ["Namespace", "ConfigMap"])
async def test_a_further_delete_ends_a_foreground_deletion(
    kind: str, second: Propagation | None, *, owner_stays: bool, references: int
) -> None:
    """A finalizer keeps the dependent, which blocks its owner; it is deleted already, or loses its reference."""
    cluster = EmbeddedCluster(namespaces=["town"])
    where = {"namespace": "town"} if kind == "ConfigMap" else {}
    owner = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "owner", **where}}
    live = await cluster.create(owner, field_manager="user")
    reference = {
        "apiVersion": "v1",
        "kind": kind,
        "name": "owner",
        "uid": live["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    metadata = {"name": "dependent", "finalizers": [OWN], "ownerReferences": [reference], **where}
    of = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"} if kind == "Namespace" else None
    dependent = {**(of or {"apiVersion": "v1", "kind": "ConfigMap"}), "metadata": metadata}
    await cluster.create(dependent, field_manager="user")
    key = ObjectKey.of(live)
    assert await finalizers_after(cluster, key, Propagation.FOREGROUND) == [FOREGROUND]
    assert (await finalizers_after(cluster, key, second) is not None) is owner_stays
    found = (await cluster.get(ObjectKey.of(dependent)))["metadata"]
    assert "deletionTimestamp" in found
    assert len(found.get("ownerReferences", ())) == references
