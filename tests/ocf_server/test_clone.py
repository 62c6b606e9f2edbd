"""Clones of an embedded cluster: equal to it at first, and independent of it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Propagation, Subresource, WatchOptions
from ocf.errors import ApiError, ExpiredError, InvalidError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf_server import EmbeddedCluster
from tests.ocf_server.conftest import FixedClock

NAMESPACE: Final = "shop"
OWNER: Final = ObjectKey("example.com/v1", "Stall", "demo", NAMESPACE)
DEFINITION: Final = ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", "stalls.example.com")
SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", NAMESPACE)
SERVICE: Final = ObjectKey("v1", "Service", "web", NAMESPACE)
KINDS: Final = (
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("example.com/v1", "Stall"),
    ("v1", "ConfigMap"),
    ("v1", "Namespace"),
    ("v1", "Service"),
)

Step = Callable[[EmbeddedCluster], Awaitable[object]]


def named(key: ObjectKey, **content: Any) -> Manifest:
    metadata = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}


def definition(**fields: str) -> Manifest:
    spec = {"type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"plural": "stalls", "singular": "stall", "kind": "Stall", "listKind": "StallList"}
    return named(
        DEFINITION, spec={"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    )


@pytest.fixture
async def prepared(clock: FixedClock) -> EmbeddedCluster:
    """A cluster with a definition, an owner, a dependent, and a deleted object in its history."""
    cluster = EmbeddedCluster(namespaces=[NAMESPACE], now=clock)
    await cluster.apply(definition(size="integer", name="string"), field_manager="user")
    owner = await cluster.create(named(OWNER, spec={"size": 1, "name": "a"}), field_manager="user")
    reference = {"apiVersion": OWNER.api_version, "kind": OWNER.kind, "name": OWNER.name, "controller": True}
    settings = named(SETTINGS, data={"a": "1"})
    settings["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    await cluster.apply(settings, field_manager="ours")
    await cluster.create(named(SERVICE, spec={"ports": [{"port": 80}]}), field_manager="user")
    await cluster.create(named(SETTINGS._replace(name="old")), field_manager="user")
    await cluster.delete(SETTINGS._replace(name="old"))
    return cluster


async def merge(
    cluster: EmbeddedCluster, key: ObjectKey, patch: Manifest, subresource: Subresource | None = None
) -> Any:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="other", subresource=subresource)
    return await cluster.patch(key, patch, options)


async def create_generated(cluster: EmbeddedCluster) -> Manifest:
    manifest = named(SETTINGS)
    manifest["metadata"] = {"generateName": "settings-", "namespace": NAMESPACE}
    return await cluster.create(manifest, field_manager="user")


async def redefine(cluster: EmbeddedCluster) -> list[Manifest]:
    """Remove a field from the schema, which prunes the owner, and write the owner."""
    defined = await cluster.apply(definition(size="integer"), field_manager="user")
    return [defined, await cluster.get(OWNER), await merge(cluster, OWNER, {"spec": {"size": 2, "name": "b"}})]


async def define_another(cluster: EmbeddedCluster) -> Manifest:
    """Define another kind, and create an object of it."""
    other = definition()
    other["metadata"] = {"name": "carts.example.com"}
    other["spec"]["names"] = {"plural": "carts", "singular": "cart", "kind": "Cart", "listKind": "CartList"}
    await cluster.create(other, field_manager="user")
    return await cluster.create(named(OWNER._replace(kind="Cart")), field_manager="user")


async def forbid(cluster: EmbeddedCluster) -> str:
    """Add a policy that rejects every ConfigMap; return the message of a rejection."""
    api_version = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    policy = ObjectKey(api_version, "ValidatingAdmissionPolicy", "never")
    await cluster.create(named(policy, spec=spec), field_manager="user")
    binding = policy._replace(kind="ValidatingAdmissionPolicyBinding")
    await cluster.create(
        named(binding, spec={"policyName": "never", "validationActions": ["Deny"]}), field_manager="user"
    )
    with pytest.raises(InvalidError) as rejected:
        await create_generated(cluster)
    return str(rejected.value)


async def read_history(cluster: EmbeddedCluster) -> list[Any]:
    """Read the changes since the beginning from the log."""
    return [event async for event in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1", timeout=0))]


async def names(cluster: EmbeddedCluster) -> list[str]:
    """Return the names of the ConfigMaps."""
    found = await cluster.list("v1", "ConfigMap", ListOptions(namespace=NAMESPACE))
    return [item["metadata"]["name"] for item in found.items]


async def dependent(cluster: EmbeddedCluster) -> Manifest:
    """Return another dependent of the owner, which does not exist yet."""
    late = named(SETTINGS._replace(name="late"))
    late["metadata"]["ownerReferences"] = (await cluster.get(SETTINGS))["metadata"]["ownerReferences"]
    return late


async def compact(cluster: EmbeddedCluster) -> Any:
    cluster.compact()
    return await cluster.list("v1", "ConfigMap")


STEPS: Final[dict[str, Step]] = {
    "create": create_generated,
    "change": lambda cluster: merge(cluster, SETTINGS, {"data": {"a": "2"}}),
    "change of a status": lambda cluster: merge(cluster, OWNER, {"status": {"a": 1}}, Subresource.STATUS),
    "allocation": lambda cluster: cluster.create(
        named(SERVICE._replace(name="api"), spec={"ports": [{"port": 80}]}), field_manager="user"
    ),
    "deletion": lambda cluster: cluster.delete(SERVICE),
    "deletion of an owner": lambda cluster: cluster.delete(OWNER),
    "foreground deletion": lambda cluster: cluster.delete(OWNER, DeleteOptions(propagation=Propagation.FOREGROUND)),
    "deletion of a definition": lambda cluster: cluster.delete(DEFINITION),
    "deletion of a namespace": lambda cluster: cluster.delete(ObjectKey("v1", "Namespace", NAMESPACE)),
    "redefinition": redefine,
    "another definition": define_another,
    "policy": forbid,
    "history": read_history,
    "compaction": compact,
}


async def state(cluster: EmbeddedCluster) -> list[object]:
    """Return the version of a cluster, all objects of the kinds that the steps change, and what a new one would be."""
    found: list[object] = [cluster.resource_version]
    for kind in KINDS:
        try:
            found.append((await cluster.list(*kind)).items)
        except ApiError as error:
            found.append(str(error))
    another = named(OWNER._replace(name="another"), spec={"size": 1, "name": "a"})
    with suppress(ApiError):
        found.append((await cluster.create(another, field_manager="user", dry_run=True))["spec"])
    return copy_json(found)  # type: ignore[no-any-return]  # a list, as given


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
class TestClones:
    async def test_clones_answer_as_the_original_whatever_others_do(
        self, prepared: EmbeddedCluster, step: Step
    ) -> None:
        first, second = prepared.clone(), prepared.clone()

        assert await step(first) == await step(prepared) == await step(second)
        assert await state(first) == await state(prepared) == await state(second)

    async def test_a_change_of_a_clone_does_not_change_the_original(
        self, prepared: EmbeddedCluster, step: Step
    ) -> None:
        before, requests = await state(prepared), len(prepared.requests)

        await step(prepared.clone())

        assert len(prepared.requests) == requests
        assert await state(prepared) == before

    async def test_a_change_of_the_original_does_not_change_a_clone(
        self, prepared: EmbeddedCluster, step: Step
    ) -> None:
        clone = prepared.clone()
        before = await state(clone)

        await step(prepared)

        assert await state(clone) == before


async def test_an_owner_that_was_deleted_is_deleted_in_a_clone(prepared: EmbeddedCluster) -> None:
    late = await dependent(prepared)
    await prepared.delete(OWNER)
    prepared.compact()
    clone = prepared.clone()

    for cluster in (clone, prepared):
        await cluster.create(late, field_manager="user")

    assert await state(clone) == await state(prepared)
    assert await names(clone) == []


async def test_an_owner_that_was_deleted_in_a_clone_is_not_deleted_in_the_original(prepared: EmbeddedCluster) -> None:
    late = await dependent(prepared)
    await prepared.clone().delete(OWNER)
    await prepared.create(late, field_manager="user")

    assert await names(prepared) == ["late", "settings"]


async def test_the_history_of_a_clone_begins_with_that_of_the_original(prepared: EmbeddedCluster) -> None:
    prepared.compact()

    with pytest.raises(ExpiredError):
        await read_history(prepared.clone())


async def test_a_list_is_continued_in_a_clone(prepared: EmbeddedCluster) -> None:
    await prepared.create(named(SETTINGS._replace(name="a")), field_manager="user")
    page = await prepared.list("v1", "ConfigMap", ListOptions(namespace=NAMESPACE, limit=1))
    await prepared.delete(SETTINGS)
    rest = ListOptions(namespace=NAMESPACE, continue_token=page.continue_token)

    found = [(await cluster.list("v1", "ConfigMap", rest)).items for cluster in (prepared.clone(), prepared)]

    assert found[0] == found[1]
    assert [item["metadata"]["name"] for item in found[0]] == ["settings"]


async def test_a_watch_of_the_original_reports_no_change_of_a_clone(prepared: EmbeddedCluster) -> None:
    version = prepared.resource_version
    events = prepared.watch("v1", "ConfigMap", WatchOptions(resource_version=version))
    first = prepared.watch("v1", "ConfigMap", WatchOptions(resource_version="0"))
    await anext(first)
    clone = prepared.clone()
    await merge(clone, SETTINGS, {"data": {"a": "of the clone"}})
    await merge(prepared, SETTINGS, {"data": {"a": "of the original"}})

    assert (await anext(events)).object["data"] == {"a": "of the original"}
    await first.aclose()
    await events.aclose()


def test_the_request_log_of_a_clone_is_empty() -> None:
    cluster = EmbeddedCluster()

    assert len(cluster.clone().requests) == 0


def test_a_clone_has_the_apply_cache_of_its_own() -> None:
    cluster = EmbeddedCluster()
    cluster.apply_cache.remember("uid", "manager", {"spec.a": (1, 2)})
    clone = cluster.clone()
    cluster.apply_cache.remember("uid", "manager", {})

    assert clone.apply_cache.rewrites("uid", "manager") == {"spec.a": (1, 2)}
